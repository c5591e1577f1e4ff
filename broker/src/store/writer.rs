//! The one writer's queue: commands and looks go in, answers come out after the commit.
//!
//! ```text
//!   queue ──► BEGIN, command, command, … ──► COMMIT (one sync) ──► effects ──► replies
//!                                              │ fails
//!                                              └──► all answered "unknown", reopen, checkpoint, only then go on
//! ```
//!
//! A thread of its own works the queue off with a [`Committer`]; a simulation does it by hand
//! instead. The queue is drained and never waited for to fill: the sync is the batching window.
//! Invariant: who has queued something hears of it exactly once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::ErrorCode;

use super::committer::{Committer, Parts};
use super::hand::Hand;
use super::look::{Look, Looking, Running, Seen};
use super::reply::{Reply, reply};
use super::{AgentKey, CommandError, StoreError, Tx};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, MutexGuard, PoisonError, mpsc};

/// Commands waiting for the writer; more callers wait for a place.
const QUEUE_COMMANDS: usize = 4096;
/// Most commands of one commit, so that the first of them does not wait long for the last.
const BATCH_COMMANDS: usize = 512;
/// Pause between attempts to open a faulted database again.
const RECOVERY_PAUSE: Duration = Duration::from_millis(500);

/// The queue's near end, shared by the store and the looks that wait; closed for all of them at
/// once.
#[derive(Debug)]
pub(super) struct Queue(Mutex<Option<mpsc::Sender<Item>>>);

impl Queue {
    /// Queues an item, waiting for a place; `false` once the queue is closed.
    pub(super) async fn send(&self, item: Item) -> bool {
        let sender = lock(&self.0).clone();
        match sender {
            Some(sender) => sender.send(item).await.is_ok(),
            None => false,
        }
    }

    /// Queues an item if there is a place for it.
    pub(super) fn try_send(&self, item: Item) {
        if let Some(sender) = &*lock(&self.0) {
            drop(sender.try_send(item));
        }
    }

    fn close(&self) {
        drop(lock(&self.0).take());
    }
}

/// The writer, as the store holds it.
#[derive(Debug)]
pub(super) struct Writer {
    queue: Arc<Queue>,
    last_look: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(super) fn start(parts: Parts) -> std::io::Result<Self> {
        let (writer, items) = Self::new();
        let committer = Committer::new(parts);
        let thread =
            thread::Builder::new().name("writer".into()).spawn(move || run(committer, items))?;
        *lock(&writer.thread) = Some(thread);
        Ok(writer)
    }

    /// A queue that is worked off by hand.
    pub(super) fn by_hand(parts: Parts) -> (Self, Hand) {
        let (writer, items) = Self::new();
        (writer, Hand::new(Committer::new(parts), items))
    }

    fn new() -> (Self, mpsc::Receiver<Item>) {
        let (queue, items) = mpsc::channel(QUEUE_COMMANDS);
        let queue = Arc::new(Queue(Mutex::new(Some(queue))));
        (Self { queue, last_look: AtomicU64::new(0), thread: Mutex::default() }, items)
    }

    pub(super) async fn write<T, E, F>(&self, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let (reply, answer) = reply();
        let job = Box::new(Pending { command: Some(command), answer: None, reply });
        if !self.queue.send(Item::Job(job)).await {
            return Err(StoreError::Closed.into());
        }
        answer.await.unwrap_or_else(|| Err(StoreError::Closed.into()))
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
        // A writer that is gone drops the look, which its caller then hears.
        self.queue.send(Item::Look(id, agent, Box::new(Running::new(look, answers)))).await;
        Looking::new(id, Arc::clone(&self.queue), answered)
    }

    /// Lets the thread finish what is queued, and waits for it.
    pub(super) fn close(&self) {
        self.queue.close();
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The thread: batches until the queue is closed and empty.
fn run(mut committer: Committer, mut items: mpsc::Receiver<Item>) {
    loop {
        while !committer.is_open() && !committer.recover() {
            // Who comes meanwhile is refused at once.
            loop {
                match items.try_recv() {
                    Ok(item) => committer.refuse(item),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return,
                }
            }
            thread::sleep(RECOVERY_PAUSE);
        }
        let Some(first) = committer.left_over().or_else(|| items.blocking_recv()) else { break };
        committer.batch(first, &mut items, BATCH_COMMANDS);
    }
    committer.close();
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
    pub(super) fn void(self, problem: &Arc<str>) {
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
    reply: Reply<Result<T, E>>,
}

impl<F, T, E> Job for Pending<F, T, E>
where
    F: FnOnce(&Tx<'_>) -> Result<T, E> + Send,
    T: Send + 'static,
    E: CommandError,
{
    fn run(&mut self, tx: &Tx<'_>) -> Ran {
        let command = self.command.take().expect("a job runs once");
        // A panic is a bug in one command; the others and the daemon go on.
        let answer = catch_unwind(AssertUnwindSafe(|| command(tx)))
            .unwrap_or_else(|_| Err(StoreError::Panicked.into()));
        let ran = match answer.as_ref().map_err(CommandError::storage) {
            Ok(_) => Ran::Keep,
            Err(Some(StoreError::Sql(error))) if is_fatal(error) => {
                Ran::Void(error.to_string().into())
            }
            Err(_) => Ran::Undo,
        };
        self.answer = Some(answer);
        ran
    }

    fn commit(self: Box<Self>) {
        let answer = self.answer.expect("a committed job has run");
        // The caller may be gone; its command stands all the same, and a retry with its request id
        // finds it.
        self.reply.send(answer);
    }

    fn void(self: Box<Self>, problem: &Arc<str>) {
        self.reply.send(Err(StoreError::Unavailable { problem: Arc::clone(problem) }.into()));
    }
}

/// Errors that are the disk's, the memory's or the file's, not the command's.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
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
