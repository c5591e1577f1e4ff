//! The one writer: a thread that owns the write connection and commits queued commands together.
//!
//! ```text
//!   queue ──► BEGIN, command, command, … ──► COMMIT (one sync) ──► effects ──► replies
//!                                              │ fails
//!                                              └──► all answered "unknown", reopen, checkpoint, only then go on
//! ```
//!
//! It drains the queue and never waits for it to fill: the sync is the batching window. Each command runs in a savepoint, so one that
//! fails takes back only itself. Invariant: no reply leaves before the commit of its batch; after a failed commit nothing is answered
//! from the file until a checkpoint has succeeded.

use std::collections::{BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot, watch};

use super::look::{Look, Looking, Running, Seen, Waiting};
use super::reader::Readers;
use super::tx::Counters;
use super::{AgentKey, CommandError, Committed, Health, StoreError, Tx, open};
use crate::clock::Clock;

/// Commands waiting for the writer; more callers wait for a place.
const QUEUE_COMMANDS: usize = 4096;
/// Most commands of one commit, so that the first of them does not wait long for the last.
const BATCH_COMMANDS: usize = 512;
/// Pause between attempts to open a faulted database again.
const RECOVERY_PAUSE: Duration = Duration::from_millis(500);

pub(super) struct Parts {
    pub(super) path: PathBuf,
    pub(super) conn: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) committed: Arc<dyn Committed>,
    pub(super) faults: watch::Sender<Health>,
    pub(super) readers: Arc<Readers>,
    pub(super) attention: Arc<AtomicBool>,
}

/// The queue's near end.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Item>>>,
    last_look: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(parts: Parts) -> std::io::Result<Self> {
        let (queue, items) = mpsc::channel(QUEUE_COMMANDS);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || run(parts, items))?;
        Ok(Self { queue: Mutex::new(Some(queue)), last_look: AtomicU64::new(0), thread: Mutex::new(Some(thread)) })
    }

    pub(super) async fn write<T, E, F>(&self, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending { command: Some(command), answer: None, reply });
        let queue = lock(&self.queue).clone();
        let queued = match queue {
            Some(queue) => queue.send(Item::Job(job)).await.is_ok(),
            None => false,
        };
        if !queued {
            return Err(StoreError::Closed.into());
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Queues a look that waits for an agent's wake where it finds nothing.
    pub(super) async fn look<T, E, F>(&self, agent: AgentKey, look: F) -> Looking<T, E>
    where
        F: FnMut(&Tx<'_>) -> Result<Seen<T>, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let (answers, answered) = mpsc::unbounded_channel();
        let id = self.last_look.fetch_add(1, Ordering::Relaxed);
        let queue = lock(&self.queue).clone();
        if let Some(queue) = &queue {
            // A writer that is gone drops the look, which its caller then hears.
            drop(queue.send(Item::Look(id, agent, Box::new(Running::new(look, answers)))).await);
        }
        Looking::new(id, queue.map(|queue| queue.downgrade()), answered)
    }

    /// Lets the thread finish what is queued, and waits for it.
    pub(super) fn close(&self) {
        drop(lock(&self.queue).take());
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the writer's thread panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// What is queued.
pub(super) enum Item {
    /// A command.
    Job(Box<dyn Job>),
    /// A look that waits for this agent's wake where it finds nothing.
    Look(u64, AgentKey, Box<dyn Look>),
    /// That look again.
    Again(u64),
    /// That look no more.
    Stop(u64),
}

impl Item {
    /// It is not done, for the database cannot be used.
    fn void(self, problem: &Arc<str>) {
        match self {
            Self::Job(job) => job.void(problem),
            Self::Look(_, _, mut look) => look.void(problem),
            Self::Again(_) | Self::Stop(_) => {}
        }
    }
}

/// What became of a command.
pub(super) enum Ran {
    /// Keep its changes.
    Keep,
    /// Take its changes back.
    Undo,
    /// The disk or memory failed: the whole batch is void.
    Void(Arc<str>),
}

pub(super) trait Job: Send {
    /// Runs the command and keeps its answer.
    fn run(&mut self, tx: &Tx<'_>) -> Ran;
    /// The batch is on disk: send the answer.
    fn commit(self: Box<Self>);
    /// The batch is void.
    fn void(self: Box<Self>, problem: &Arc<str>);
}

struct Pending<F, T, E> {
    command: Option<F>,
    answer: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Job for Pending<F, T, E>
where
    F: FnOnce(&Tx<'_>) -> Result<T, E> + Send,
    T: Send,
    E: CommandError,
{
    fn run(&mut self, tx: &Tx<'_>) -> Ran {
        let command = self.command.take().expect("a job runs once");
        // A panic is a bug in one command; the others and the daemon go on.
        let answer = catch_unwind(AssertUnwindSafe(|| command(tx))).unwrap_or_else(|_| Err(StoreError::Panicked.into()));
        let ran = match answer.as_ref().map_err(CommandError::storage) {
            Ok(_) => Ran::Keep,
            Err(Some(StoreError::Sql(error))) if is_fatal(error) => Ran::Void(error.to_string().into()),
            Err(_) => Ran::Undo,
        };
        self.answer = Some(answer);
        ran
    }

    fn commit(self: Box<Self>) {
        let answer = self.answer.expect("a committed job has run");
        // The caller may be gone; its command stands all the same, and a retry with its request id finds it.
        drop(self.reply.send(answer));
    }

    fn void(self: Box<Self>, problem: &Arc<str>) {
        drop(self.reply.send(Err(StoreError::Unavailable { problem: Arc::clone(problem) }.into())));
    }
}

/// Errors that are the disk's, the memory's or the file's, not the command's.
pub(super) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
        )
    )
}

/// Everything a batch works on; gone while the database is faulted.
struct Open {
    conn: Connection,
    counters: Counters,
    attention: Arc<AtomicBool>,
}

/// The thread: batches until the queue is closed and empty.
fn run(parts: Parts, mut items: mpsc::Receiver<Item>) {
    let Parts { path, conn, clock, committed, faults, readers, attention } = parts;
    let counters = Counters::default();
    let mut faulted = counters.load(&conn).err().map(|error| Arc::<str>::from(error.to_string()));
    let mut open = Open { conn, counters, attention };
    let mut waiting = Waiting::default();
    let mut backlog = VecDeque::new();
    while let Some(first) = backlog.pop_front().or_else(|| items.blocking_recv()) {
        if let Some(problem) = &faulted {
            first.void(problem);
        } else if let Item::Stop(id) = first {
            // Nothing to write: it is not worth a transaction.
            waiting.stop(id);
        } else if let Err((problem, jobs)) = batch(&open, first, &mut items, &mut waiting, clock.as_ref(), committed.as_ref()) {
            tracing::error!(%problem, "the database failed; nothing is accepted or answered until it has recovered");
            // First of all nobody reads any more: who hears that their command is void must not find it in the file.
            faults.send_replace(Health::Faulted(Arc::clone(&problem)));
            jobs.into_iter().for_each(|job| job.void(&problem));
            faulted = Some(problem);
        }
        if let Some(problem) = faulted.take() {
            // Nothing of the old connection is trusted: what it shows may never have been synced.
            readers.clear();
            match recover(&path, open, &mut items, &problem) {
                Ok(recovered) => open = recovered,
                Err(()) => return,
            }
            tracing::warn!("the database has recovered");
            backlog.extend(waiting.again());
            faults.send_replace(Health::Ok);
        }
    }
    if let Err(error) = open::sync(&open.conn) {
        tracing::warn!(%error, "the log could not be folded into the database; the next start will do it");
    }
}

/// What went wrong with a batch, and the jobs that have to be told.
type Void = (Arc<str>, Vec<Box<dyn Job>>);

/// Runs the first item, all that are queued behind it, and the looks that they wake, in one transaction. Where that fails, its jobs are
/// still to be told.
fn batch(
    open: &Open,
    first: Item,
    items: &mut mpsc::Receiver<Item>,
    waiting: &mut Waiting,
    clock: &dyn Clock,
    committed: &dyn Committed,
) -> Result<(), Void> {
    let tx = Tx::new(&open.conn, &open.counters, clock.now(), open.attention.load(Ordering::Relaxed));
    let start = tx.mark();
    let (mut jobs, mut looked) = (Vec::new(), BTreeSet::new());
    let ran = run_all(&tx, first, items, waiting, &mut jobs, &mut looked);
    match ran.and_then(|()| statement(&tx, "COMMIT").map_err(text)) {
        Ok(()) => {
            let (effects, acts) = tx.into_effects();
            acts.run();
            committed.committed(&effects, open.counters.last_event());
            jobs.into_iter().for_each(Job::commit);
            for id in looked {
                waiting.commit(id);
            }
            Ok(())
        }
        Err(problem) => {
            // Nobody was told of these numbers. Whether the rows are there after all, the counters learn when they are read again.
            tx.reset(start);
            Err((problem, jobs))
        }
    }
}

fn run_all(
    tx: &Tx<'_>,
    first: Item,
    items: &mut mpsc::Receiver<Item>,
    waiting: &mut Waiting,
    jobs: &mut Vec<Box<dyn Job>>,
    looked: &mut BTreeSet<u64>,
) -> Result<(), Arc<str>> {
    let mut next = Some(first);
    let mut count = 0;
    if let Err(error) = statement(tx, "BEGIN IMMEDIATE") {
        let problem = text(error);
        if let Some(item) = next {
            item.void(&problem);
        }
        return Err(problem);
    }
    while let Some(item) = next {
        match item {
            Item::Job(job) => {
                jobs.push(job);
                if let Some(job) = jobs.last_mut() {
                    one(tx, |tx| job.run(tx))?;
                }
            }
            Item::Look(id, agent, look) => {
                waiting.insert(id, agent, look);
                look_at(tx, waiting, id, looked)?;
            }
            Item::Again(id) => look_at(tx, waiting, id, looked)?,
            Item::Stop(id) => waiting.stop(id),
        }
        count += 1;
        next = if count < BATCH_COMMANDS { items.try_recv().ok() } else { None };
    }
    for agent in tx.woken() {
        for id in waiting.of(agent) {
            look_at(tx, waiting, id, looked)?;
        }
    }
    Ok(())
}

/// Runs a look, if it still waits and is still wanted.
fn look_at(tx: &Tx<'_>, waiting: &mut Waiting, id: u64, looked: &mut BTreeSet<u64>) -> Result<(), Arc<str>> {
    let Some(look) = waiting.get(id).filter(|look| !look.is_over()) else { return Ok(()) };
    if !look.is_wanted() {
        waiting.remove(id);
        return Ok(());
    }
    looked.insert(id);
    one(tx, |tx| look.run(tx))
}

fn text(error: rusqlite::Error) -> Arc<str> {
    error.to_string().into()
}

/// Runs one command in a savepoint.
fn one(tx: &Tx<'_>, command: impl FnOnce(&Tx<'_>) -> Ran) -> Result<(), Arc<str>> {
    let mark = tx.mark();
    statement(tx, "SAVEPOINT command").map_err(text)?;
    match command(tx) {
        Ran::Keep => statement(tx, "RELEASE command").map_err(text),
        Ran::Undo => {
            tx.reset(mark);
            statement(tx, "ROLLBACK TO command").and_then(|()| statement(tx, "RELEASE command")).map_err(text)
        }
        Ran::Void(problem) => Err(problem),
    }
}

fn statement(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(|_| ())
}

/// Opens the database again, as often as it takes; commands that come meanwhile are refused. `Err` when the queue was closed.
fn recover(path: &Path, faulted: Open, items: &mut mpsc::Receiver<Item>, problem: &Arc<str>) -> Result<Open, ()> {
    let Open { conn, counters, attention } = faulted;
    drop(conn);
    loop {
        let opened = open::connect(path).and_then(|conn| {
            open::sync(&conn)?;
            counters.load(&conn)?;
            Ok(conn)
        });
        match opened {
            Ok(conn) => return Ok(Open { conn, counters, attention }),
            Err(error) => tracing::warn!(%error, "the database still cannot be used"),
        }
        loop {
            match items.try_recv() {
                Ok(item) => item.void(problem),
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(()),
            }
        }
        std::thread::sleep(RECOVERY_PAUSE);
    }
}
