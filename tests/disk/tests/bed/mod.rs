//! A store on a disk, stepped by hand: only what a test calls happens, and no call waits.
//!
//! Invariant: a caller got each answer in `told` and `seen`, so it must stay true for ever.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use hive_broker::clock::ManualClock;
use hive_broker::store::message::{NewMessage, To};
use hive_broker::store::{
    AgentKey, CommandError, Committed, Effect, Health, OpenError, Step, SteppedStore, Store,
    StoreError, Tx, message,
};
use hive_core::id::MessageId;
use hive_core::message::Origin;
use hive_disk::{Action, Disk, Fault, Op, Verdict};
use rand::{Rng, SeedableRng as _};
use rand_xorshift::XorShiftRng;

pub(crate) fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory for a test")
}

#[derive(Debug)]
pub(crate) enum Failed {
    Store(StoreError),
    OnPurpose,
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl CommandError for Failed {
    fn storage(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }
}

impl Failed {
    pub(crate) fn is_unavailable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unavailable { .. }))
    }
}

/// A listener that ignores commits.
pub(crate) struct Nobody;

impl Committed for Nobody {
    fn committed(&self, _: &[Effect], _: u64) {}

    fn answered(&self, _: u64) {}
}

pub(crate) struct Open {
    pub(crate) store: Store,
    pub(crate) hand: SteppedStore,
}

type Judge = Arc<dyn Fn(u64, &Op, &Disk) -> Verdict + Send + Sync>;

/// The image left by a power cut during a run.
type Cut = Arc<Mutex<Option<(tempfile::TempDir, Disk)>>>;

/// A disk, the store on it while it is open, and the answers that callers got.
pub(crate) struct Bed {
    dir: tempfile::TempDir,
    pub(crate) disk: Disk,
    open: Option<Open>,
    cut: Cut,
    judge: Option<Judge>,
    pub(crate) asked: Arc<AtomicU64>,
    pub(crate) told: BTreeMap<u64, String>,
    pub(crate) seen: BTreeMap<u64, String>,
}

impl Bed {
    pub(crate) fn new() -> Self {
        let mut bed = Self::unopened();
        bed.start().expect("a new database opens");
        bed
    }

    /// Creates a bed without a database.
    pub(crate) fn unopened() -> Self {
        let dir = directory();
        let disk = Disk::over(dir.path());
        Self {
            dir,
            disk,
            open: None,
            cut: Cut::default(),
            judge: None,
            asked: Arc::default(),
            told: BTreeMap::new(),
            seen: BTreeMap::new(),
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn open(&mut self) -> &mut Open {
        self.open.as_mut().expect("the store is open")
    }

    pub(crate) fn start(&mut self) -> Result<(), OpenError> {
        self.open = None;
        let (store, hand) = Store::open_stepped(
            self.dir.path(),
            Arc::new(ManualClock::new("boot-0")),
            Arc::new(Nobody),
        )?;
        self.open = Some(Open { store, hand });
        Ok(())
    }

    /// Kills the broker and starts it again on what is left.
    pub(crate) fn restart(&mut self) -> Result<(), OpenError> {
        if let Some(Open { store, hand }) = self.open.take() {
            // Closed as a reader would, so that the log stays as it is.
            self.disk.fail([
                Fault::at(Action::Write),
                Fault::at(Action::Delete),
                Fault::at(Action::Truncate),
            ]);
            drop((store, hand));
            self.disk.heal();
        }
        self.start()
    }

    /// Stops the store cleanly.
    pub(crate) fn stop(&mut self) {
        let Open { store, hand } = self.open.take().expect("the store is open");
        hand.close();
        store.close();
    }

    /// Cuts the power; does not start the store again.
    pub(crate) fn cut_power(&mut self, rng: &mut dyn Rng) {
        let dir = directory();
        self.disk = self.disk.cut_power(rng, dir.path()).expect("an image");
        self.open = None;
        self.dir = dir;
    }

    /// Sets the judge of all further operations, including those after a kill. It gets the number
    /// of earlier operations on all disks of this bed, and the disk.
    pub(crate) fn on_each(
        &mut self,
        judge: impl Fn(u64, &Op, &Disk) -> Verdict + Send + Sync + 'static,
    ) {
        self.judge = Some(Arc::new(judge));
        self.judged();
    }

    fn judged(&mut self) {
        let Some(judge) = self.judge.clone() else { return };
        let (disk, asked) = (self.disk.clone(), Arc::clone(&self.asked));
        self.disk.on(move |op| judge(asked.fetch_add(1, Ordering::Relaxed), op, &disk));
    }

    /// Cuts the power at the operation of this number, unless the faults strike first.
    pub(crate) fn cut_power_at(
        &mut self,
        number: u64,
        seed: u64,
        faults: impl Fn(&Op) -> Verdict + Send + Sync + 'static,
    ) {
        let cut = Arc::clone(&self.cut);
        self.on_each(move |asked, op, disk| {
            if asked == number {
                let (dir, mut rng) = (directory(), XorShiftRng::seed_from_u64(seed));
                let left = disk.cut_power(&mut rng, dir.path()).expect("an image");
                *cut.lock().expect("one at a time") = Some((dir, left));
            }
            faults(op)
        });
    }

    /// Kills the broker at the operation of this number. What is left is an image as after a power
    /// cut.
    pub(crate) fn kill_at(&mut self, number: u64) {
        let cut = Arc::clone(&self.cut);
        self.on_each(move |asked, _, disk| {
            if asked == number {
                let dir = directory();
                let left = disk.kill(dir.path()).expect("an image");
                *cut.lock().expect("one at a time") = Some((dir, left));
            }
            Verdict::Proceed
        });
    }

    /// Returns whether the power was cut; then the image is ready, and the store is not started on
    /// it.
    pub(crate) fn was_cut(&mut self) -> bool {
        let Some((dir, left)) = self.cut.lock().expect("one at a time").take() else {
            return false;
        };
        self.open = None;
        (self.dir, self.disk) = (dir, left);
        true
    }

    /// Kills the broker; does not start the store again.
    pub(crate) fn kill(&mut self) {
        let dir = directory();
        self.disk = self.disk.kill(dir.path()).expect("an image");
        self.judged();
        self.open = None;
        self.dir = dir;
    }

    /// Writes these bodies in one batch; returns the result of each.
    pub(crate) fn say_all(&mut self, bodies: &[&str]) -> Vec<Result<u64, Failed>> {
        let Open { store, hand } = self.open.as_mut().expect("the store is open");
        let context = &mut Context::from_waker(Waker::noop());
        let mut writes: Vec<_> = bodies
            .iter()
            .map(|body| {
                let body = (*body).to_owned();
                Box::pin(store.write(move |tx| Ok::<_, Failed>(say(tx, &body)?)))
            })
            .collect();
        writes.iter_mut().for_each(|write| {
            assert!(write.as_mut().poll(context).is_pending(), "nothing is answered unwritten");
        });
        // A fold that failed after the last batch is recovered from first.
        if hand.step(bodies.len()) == (Step::Recovery { recovered: true }) {
            hand.step(bodies.len());
        }
        let mut answers = Vec::new();
        for (mut write, body) in writes.into_iter().zip(bodies) {
            let Poll::Ready(answer) = write.as_mut().poll(context) else {
                panic!("it was in the batch")
            };
            if let Ok(id) = answer {
                let before = self.told.insert(id, (*body).to_owned());
                assert_eq!(before, None, "id {id} was given out before");
            }
            answers.push(answer);
        }
        answers
    }

    pub(crate) fn say(&mut self, body: &str) -> Result<u64, Failed> {
        self.say_all(&[body]).pop().expect("one answer")
    }

    /// Runs a command in a batch of its own.
    pub(crate) fn run<T: Send + 'static>(
        &mut self,
        command: impl FnOnce(&Tx<'_>) -> Result<T, Failed> + Send + 'static,
    ) -> Result<T, Failed> {
        let Open { store, hand } = self.open.as_mut().expect("the store is open");
        let context = &mut Context::from_waker(Waker::noop());
        let mut write = pin!(store.write(command));
        assert!(write.as_mut().poll(context).is_pending());
        hand.step(1);
        let Poll::Ready(answer) = write.poll(context) else { panic!("it was in the batch") };
        answer
    }

    /// Returns what a caller reads.
    pub(crate) fn read(&mut self) -> Result<BTreeMap<u64, String>, Failed> {
        let rows = self.look(rows)?;
        self.seen.extend(rows.clone());
        Ok(rows)
    }

    /// Does work on a connection that reads.
    fn look<T: Send + 'static>(
        &self,
        work: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, Failed> {
        let store = &self.open.as_ref().expect("the store is open").store;
        let context = &mut Context::from_waker(Waker::noop());
        let look = pin!(store.read(|conn, _| work(conn).map_err(Failed::from)));
        let Poll::Ready(found) = look.poll(context) else {
            panic!("a store that is worked by hand reads at once")
        };
        found
    }

    pub(crate) fn step(&mut self) -> Step {
        self.open().hand.step(512)
    }

    pub(crate) fn recover(&mut self) -> bool {
        self.step() == Step::Recovery { recovered: true }
    }

    pub(crate) fn is_faulted(&mut self) -> bool {
        matches!(&*self.open().store.health().borrow(), Health::Faulted(_))
    }

    /// Starts the store on what is left, and asserts that every answered message is there and
    /// nothing is broken.
    pub(crate) fn audit(&mut self, who: &str) {
        self.disk.heal();
        self.start().unwrap_or_else(|error| {
            panic!("{who}: the store opens: {error}: {:?}", std::error::Error::source(&error))
        });
        let sound = self.look(|conn| {
            conn.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
        });
        assert_eq!(sound.ok().as_deref(), Some("ok"), "{who}");
        let expected: Vec<_> = self.told.clone().into_iter().chain(self.seen.clone()).collect();
        let rows = self.read().expect("it is read");
        for (id, body) in expected {
            assert!(
                rows.get(&id) == Some(&body),
                "{who}: message {id} was answered, and it is not there"
            );
        }
        let next = self.say("after").expect("there is nothing wrong any more");
        assert!(
            rows.last_key_value().is_none_or(|(last, _)| next > *last),
            "{who}: no id is given twice"
        );
    }
}

pub(crate) fn rows(conn: &rusqlite::Connection) -> rusqlite::Result<BTreeMap<u64, String>> {
    let mut select = conn.prepare("SELECT id, body FROM message ORDER BY id")?;
    let rows = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
    rows.map(|row| row.map(|(id, body)| (u64::try_from(id).unwrap_or(0), body))).collect()
}

pub(crate) fn say(tx: &Tx<'_>, body: &str) -> rusqlite::Result<u64> {
    let id = tx.next_id();
    let message_id = MessageId::new(id).expect("not 0");
    let new = NewMessage::new(message_id, &Origin::System, To::One(AgentKey::OPERATOR), body);
    message::insert(tx, &new)?;
    Ok(id)
}
