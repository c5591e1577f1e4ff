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

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot, watch};

use super::reader::Readers;
use super::tx::Counters;
use super::{CommandError, Committed, Health, StoreError, Tx, open};
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
}

/// The queue's near end.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Mutex<Option<mpsc::Sender<Box<dyn Job>>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(parts: Parts) -> std::io::Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE_COMMANDS);
        let thread = std::thread::Builder::new().name("writer".into()).spawn(move || run(parts, jobs))?;
        Ok(Self { queue: Mutex::new(Some(queue)), thread: Mutex::new(Some(thread)) })
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
            Some(queue) => queue.send(job).await.is_ok(),
            None => false,
        };
        if !queued {
            return Err(StoreError::Closed.into());
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
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

/// What became of a command.
enum Ran {
    /// Keep its changes.
    Keep,
    /// Take its changes back.
    Undo,
    /// The disk or memory failed: the whole batch is void.
    Void(Arc<str>),
}

trait Job: Send {
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
fn is_fatal(error: &rusqlite::Error) -> bool {
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
}

/// The thread: batches until the queue is closed and empty.
fn run(parts: Parts, mut jobs: mpsc::Receiver<Box<dyn Job>>) {
    let Parts { path, conn, clock, committed, faults, readers } = parts;
    let counters = Counters::default();
    let mut faulted = counters.load(&conn).err().map(|error| Arc::<str>::from(error.to_string()));
    let mut open = Open { conn, counters };
    while let Some(first) = jobs.blocking_recv() {
        if let Some(problem) = &faulted {
            first.void(problem);
        } else if let Err(problem) = batch(&open, first, &mut jobs, clock.as_ref(), committed.as_ref()) {
            tracing::error!(%problem, "the database failed; nothing is accepted or answered until it has recovered");
            faults.send_replace(Health::Faulted(Arc::clone(&problem)));
            faulted = Some(problem);
        }
        if faulted.is_some() {
            // Nothing of the old connection is trusted: what it shows may never have been synced.
            readers.clear();
            match recover(&path, open, &mut jobs, faulted.as_ref().expect("faulted")) {
                Ok(recovered) => open = recovered,
                Err(()) => return,
            }
            tracing::warn!("the database has recovered");
            faulted = None;
            faults.send_replace(Health::Ok);
        }
    }
    if let Err(error) = open::sync(&open.conn) {
        tracing::warn!(%error, "the log could not be folded into the database; the next start will do it");
    }
}

/// Runs the first job and all that wait behind it in one transaction.
fn batch(
    open: &Open,
    first: Box<dyn Job>,
    jobs: &mut mpsc::Receiver<Box<dyn Job>>,
    clock: &dyn Clock,
    committed: &dyn Committed,
) -> Result<(), Arc<str>> {
    let conn = &open.conn;
    let tx = Tx::new(conn, &open.counters, clock.now());
    let start = tx.mark();
    let mut done: Vec<Box<dyn Job>> = Vec::new();
    let mut next = Some(first);
    let mut trouble: Option<Arc<str>> = statement(conn, "BEGIN IMMEDIATE").err().map(|error| error.to_string().into());
    while trouble.is_none()
        && let Some(mut job) = next.take()
    {
        trouble = one(&tx, job.as_mut()).err();
        done.push(job);
        if trouble.is_none() && done.len() < BATCH_COMMANDS {
            next = jobs.try_recv().ok();
        }
    }
    done.extend(next);
    if trouble.is_none() {
        trouble = statement(conn, "COMMIT").err().map(|error| error.to_string().into());
    }
    match trouble {
        None => {
            let (effects, acts) = tx.into_effects();
            acts.run();
            committed.committed(&effects, open.counters.last_event());
            done.into_iter().for_each(Job::commit);
            Ok(())
        }
        Some(problem) => {
            // Nobody was told of these numbers. Whether the rows are there after all, the counters learn when they are read again.
            tx.reset(start);
            done.into_iter().for_each(|job| job.void(&problem));
            Err(problem)
        }
    }
}

/// Runs one job in a savepoint.
fn one(tx: &Tx<'_>, job: &mut dyn Job) -> Result<(), Arc<str>> {
    let mark = tx.mark();
    let text = |error: rusqlite::Error| Arc::<str>::from(error.to_string());
    statement(tx, "SAVEPOINT command").map_err(text)?;
    match job.run(tx) {
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
fn recover(path: &Path, faulted: Open, jobs: &mut mpsc::Receiver<Box<dyn Job>>, problem: &Arc<str>) -> Result<Open, ()> {
    let Open { conn, counters } = faulted;
    drop(conn);
    loop {
        let opened = open::connect(path).and_then(|conn| {
            open::sync(&conn)?;
            counters.load(&conn)?;
            Ok(conn)
        });
        match opened {
            Ok(conn) => return Ok(Open { conn, counters }),
            Err(error) => tracing::warn!(%error, "the database still cannot be used"),
        }
        loop {
            match jobs.try_recv() {
                Ok(job) => job.void(problem),
                Err(mpsc::error::TryRecvError::Empty) => break,
                Err(mpsc::error::TryRecvError::Disconnected) => return Err(()),
            }
        }
        std::thread::sleep(RECOVERY_PAUSE);
    }
}
