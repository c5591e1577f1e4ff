//! Parts that the stories share: a store with one table of mail, and the number of orders to try.
//!
//! Invariant: every point at which another task could run is Shuttle's; SQLite itself runs without
//! a switch in between.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hive_broker::clock::ManualClock;
use hive_broker::store::waiter::{Poll, Progress};
use hive_broker::store::{
    AgentKey, CommandError, Committed, Effect, SteppedStore, Store, StoreError, Tx,
};
use hive_broker::sync::Notify;
use rusqlite::Connection;
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};
use tempfile::TempDir;

pub(crate) const AGENT: AgentKey = AgentKey(1);
pub(crate) const OTHER: AgentKey = AgentKey(2);

/// Orders tried of each story, half by chance and half by priorities (Burckhardt et al., ASPLOS
/// 2010). `HIVE_INTERLEAVINGS` asks for another number.
const ORDERS: usize = 300;
/// Number of priority changes in a run.
const PRIORITY_CHANGES: usize = 3;
/// SQLite's parser and its pages live on the stack.
const STACK_BYTES: usize = 1 << 20;

/// Runs a story in many orders. One that fails prints the schedule that Shuttle replays.
pub(crate) fn explore(story: fn()) {
    let asked = std::env::var("HIVE_INTERLEAVINGS").ok().and_then(|text| text.parse().ok());
    let orders: usize = asked.unwrap_or(ORDERS);
    let mut config = Config::new();
    config.stack_size = STACK_BYTES;
    Runner::new(RandomScheduler::new(orders / 2), config.clone()).run(story);
    Runner::new(PctScheduler::new(PRIORITY_CHANGES, orders / 2), config).run(story);
}

/// The errors of a story's command.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The store could not.
    Store(StoreError),
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
        let Self::Store(error) = self;
        Some(error)
    }
}

/// Returns the error of a disk without room.
pub(crate) fn disk_full() -> Failed {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL), None)
        .into()
}

/// Records the commits.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    last_event: AtomicU64,
    pub(crate) due: Notify,
}

impl Commits {
    pub(crate) fn last_event(&self) -> u64 {
        self.last_event.load(Ordering::SeqCst)
    }

    pub(crate) fn set_last_event(&self, last_event: u64) {
        self.last_event.store(last_event, Ordering::SeqCst);
    }
}

impl Committed for Commits {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        self.set_last_event(last_event);
        if !effects.is_empty() {
            self.due.notify_one();
        }
    }

    fn answered(&self, _: u64) {}
}

/// An open store, and its directory.
pub(crate) struct Story {
    pub(crate) store: Arc<Store>,
    pub(crate) commits: Arc<Commits>,
    dir: TempDir,
}

impl Story {
    pub(crate) fn open() -> Self {
        let (dir, commits) = (directory(), Arc::new(Commits::default()));
        let committed: Arc<dyn Committed> = Arc::<Commits>::clone(&commits);
        let store = Store::open(dir.path(), Arc::new(ManualClock::new("boot")), committed)
            .expect("it opens");
        Self { store: Arc::new(store), commits, dir }
    }

    pub(crate) fn by_hand() -> (Self, SteppedStore) {
        let (dir, commits) = (directory(), Arc::new(Commits::default()));
        let committed: Arc<dyn Committed> = Arc::<Commits>::clone(&commits);
        let (store, hand) =
            Store::open_stepped(dir.path(), Arc::new(ManualClock::new("boot")), committed)
                .expect("it opens");
        (Self { store: Arc::new(store), commits, dir }, hand)
    }

    /// Returns the number of messages in the file.
    pub(crate) fn count_on_disk(&self) -> u32 {
        let conn = Connection::open(self.dir.path().join("hive.db")).expect("the file is there");
        conn.query_row("SELECT count(*) FROM mail", [], |row| row.get(0)).expect("a number")
    }

    /// Ends the store before its directory goes.
    pub(crate) fn close(self) {
        self.store.close();
    }
}

/// A directory in memory with a database that has the stories' table.
fn directory() -> TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let dir = dir.expect("a directory");
    let conn = Connection::open(dir.path().join("hive.db")).expect("a file");
    conn.execute_batch("CREATE TABLE mail (id INTEGER PRIMARY KEY, agent INTEGER, body TEXT, taken INTEGER DEFAULT 0)")
        .expect("a table");
    dir
}

/// Puts a message in; answers the number of its event.
pub(crate) fn say(tx: &Tx<'_>, agent: AgentKey, body: &str) -> Result<u64, Failed> {
    tx.connection().execute("INSERT INTO mail (agent, body) VALUES (?1, ?2)", (agent.0, body))?;
    tx.after_commit(Effect::Hint(agent));
    Ok(tx.next_event())
}

/// Sends a message, by the way that mail goes.
pub(crate) async fn give(
    store: &Store,
    agent: AgentKey,
    body: &'static str,
) -> Result<u64, Failed> {
    store.write_after_checks(move |tx| say(tx, agent, body)).await
}

/// Returns a poll that takes the oldest message of an agent.
pub(crate) fn look(
    agent: AgentKey,
) -> impl FnMut(&Tx<'_>) -> Result<Poll<Option<String>>, Failed> + Send + 'static {
    move |tx| {
        let oldest = "SELECT id, body FROM mail WHERE agent = ?1 AND taken = 0 ORDER BY id LIMIT 1";
        let found = tx.connection().query_row(oldest, [agent.0], |row| {
            Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
        });
        match found {
            Ok((id, body)) => {
                tx.connection().execute("UPDATE mail SET taken = 1 WHERE id = ?1", [id])?;
                Ok(Poll::Ready(Some(body)))
            }
            Err(rusqlite::Error::QueryReturnedNoRows) => {
                Ok(Poll::Pending { so_far: None, next_due: None })
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// Waits for a message and takes it.
pub(crate) async fn take(store: &Store, agent: AgentKey) -> Result<String, Failed> {
    let mut waiter = store.wait(agent, look(agent)).await;
    loop {
        match waiter.next().await {
            Progress::Done(found) => {
                return found.map(|body| body.expect("what is found is a message"));
            }
            Progress::Waiting { .. } => {}
        }
    }
}

/// Whether a message is there.
pub(crate) fn heard(conn: &Connection, body: &str) -> Result<bool, Failed> {
    let count: u32 =
        conn.query_row("SELECT count(*) FROM mail WHERE body = ?1", [body], |row| row.get(0))?;
    Ok(count == 1)
}

/// Counts the messages that no consumer has taken.
pub(crate) fn untaken(conn: &Connection) -> Result<u32, Failed> {
    Ok(conn.query_row("SELECT count(*) FROM mail WHERE taken = 0", [], |row| row.get(0))?)
}

/// A mistake that this thread makes on purpose until this is dropped.
pub(crate) struct Planted;

impl Planted {
    pub(crate) fn new(bug: hive_fault::Bug) -> Self {
        hive_fault::plant(Some(bug));
        Self
    }
}

impl Drop for Planted {
    fn drop(&mut self) {
        hive_fault::plant(None);
    }
}
