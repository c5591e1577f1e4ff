//! The queue of the writer, and its items.
//!
//! Invariant: each queued item is notified exactly once, of its commit or of its abort.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use super::tx::Tx;
use crate::store::effect::Committed;
use crate::store::error::{CommandError, StoreError, is_fatal};
use crate::store::key::AgentKey;
use crate::sync::{self, Mutex, MutexGuard, PoisonError, mpsc};

/// The sending end of the queue, shared by the store and its waiters; closed for all of them at
/// once.
#[derive(Debug)]
pub(super) struct Queue {
    sender: Mutex<Option<mpsc::Sender<Item>>>,
    /// `None` if what is queued is stepped.
    runner: Option<Arc<dyn Runner>>,
}

impl Queue {
    /// Returns both ends of a queue with this many slots.
    pub(super) fn new(
        slots: usize,
        runner: Option<Arc<dyn Runner>>,
    ) -> (Arc<Self>, mpsc::Receiver<Item>) {
        let (sender, items) = mpsc::channel(slots);
        (Arc::new(Self { sender: Mutex::new(Some(sender)), runner }), items)
    }

    /// Queues an item, and waits for a slot; `None` once the queue is closed.
    pub(super) async fn send(&self, item: Item) -> Option<Sent> {
        let sender = lock(&self.sender).clone()?;
        sender.send(item).await.ok()?;
        drop(sender);
        Some(Sent(self.runner.as_ref().and_then(|runner| runner.serve())))
    }

    /// Queues an item if there is a free slot.
    pub(super) fn try_send(&self, item: Item) {
        if let Some(sender) = &*lock(&self.sender) {
            drop(sender.try_send(item));
        }
        if let Some(runner) = &self.runner {
            runner.call();
        }
    }

    pub(super) fn close(&self) {
        drop(lock(&self.sender).take());
        if let Some(runner) = &self.runner {
            runner.close();
        }
    }
}

/// What runs queued items. It is asked to by those that queue them, after that.
pub(super) trait Runner: Send + Sync + std::fmt::Debug {
    /// Runs what is queued on this thread, if callers may at present, and returns what is then due.
    /// If they may not, the one that runs the batches does.
    fn serve(&self) -> Option<Announce>;
    /// Has what is queued run, but not on this thread.
    fn call(&self);
    /// Has the queue, which was closed, finished.
    fn close(&self);
}

/// Notifies the watchers of a batch when it is dropped.
#[must_use = "the watchers run when it is dropped"]
pub(super) struct Announce {
    committed: Arc<dyn Committed>,
    last_event: u64,
}

impl Announce {
    pub(super) fn new(committed: Arc<dyn Committed>, last_event: u64) -> Self {
        Self { committed, last_event }
    }
}

impl Drop for Announce {
    fn drop(&mut self) {
        self.committed.answered(self.last_event);
    }
}

/// What was queued; the watchers of its batch run when it is dropped.
pub(super) struct Sent(Option<Announce>);

impl Sent {
    /// If the caller has run the batch, lets the tasks that it woke run first: mail goes out before
    /// the receipt of it, and the watchers run after both.
    pub(super) async fn mail_first(self) {
        if self.0.is_some() {
            sync::yield_now().await;
        }
    }
}

/// The largest size of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    /// Queued items.
    pub(super) items: usize,
    /// Changes after which it takes no further item.
    pub(super) changes: u64,
    /// Polls of woken waiters. Another item of the queue waits for these at most.
    pub(super) polls: usize,
}

/// An item of the queue.
pub(super) enum Item {
    /// A command.
    Job(Box<dyn Job>),
    /// A new waiter, by its number, for wakes of this agent.
    Wait(u64, AgentKey, Box<dyn Pollable>),
    /// The waiter with this number is to be polled.
    Retry(u64),
    /// The waiter with this number is to end.
    Cancel(u64),
}

impl Item {
    /// Notifies the caller that the item was not run, because the database cannot be used.
    pub(super) fn abort(self, problem: &Arc<str>) {
        match self {
            Self::Job(job) => job.abort(problem),
            Self::Wait(_, _, mut waiter) => waiter.abort(problem),
            Self::Retry(_) | Self::Cancel(_) => {}
        }
    }
}

/// How the changes of a command are undone if it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Undo {
    /// By a savepoint, which costs more than most commands write.
    Savepoint,
    /// Not at all, because the command checks before it writes. If it fails after it has written,
    /// the whole batch is aborted.
    Nothing,
}

/// The fate of the changes of a command.
pub(super) enum Ran {
    /// The changes stay in the batch.
    Keep,
    /// The changes are rolled back.
    Undo,
    /// The disk or memory failed: the whole batch is aborted.
    Abort(Arc<str>),
}

/// Runs a command, and decides what happens to its changes. A panic is a bug in one command; the
/// others and the daemon continue.
pub(super) fn catch<T, E: CommandError>(
    command: impl FnOnce() -> Result<T, E>,
) -> (Result<T, E>, Ran) {
    let result = catch_unwind(AssertUnwindSafe(command))
        .unwrap_or_else(|_| Err(StoreError::Panicked.into()));
    let ran = match result.as_ref().map_err(CommandError::storage) {
        Ok(_) => Ran::Keep,
        Err(Some(StoreError::Sql(error))) if is_fatal(error) => {
            Ran::Abort(error.to_string().into())
        }
        Err(_) => Ran::Undo,
    };
    (result, ran)
}

/// A command.
pub(super) trait Job: Send {
    /// Returns how its changes are undone.
    fn undo(&self) -> Undo;
    /// Runs the command and keeps its answer.
    fn run(&mut self, tx: &Tx<'_>) -> Ran;
    /// Sends the answer, because the batch is on disk.
    fn commit(self: Box<Self>);
    /// Sends an error, because the batch was aborted.
    fn abort(self: Box<Self>, problem: &Arc<str>);
}

/// A waiter at the writer.
pub(super) trait Pollable: Send {
    /// Returns how its changes are undone.
    fn undo(&self) -> Undo;
    /// Polls it, because its caller asked for it or because its agent was woken.
    fn run(&mut self, tx: &Tx<'_>, is_asked: bool) -> Ran;
    /// Returns whether it was ready, or failed, in this batch.
    fn has_result(&self) -> bool;
    /// Returns whether it goes on after its result of this batch.
    fn stands(&self) -> bool;
    /// Returns whether its caller still waits.
    fn is_wanted(&self) -> bool;
    /// Sends the result of the last poll, because the batch is on disk.
    fn commit(&mut self);
    /// Drops the result of the last poll, because the batch was aborted; returns whether there was
    /// one.
    fn reset(&mut self) -> bool;
    /// Sends an error.
    fn abort(&mut self, problem: &Arc<str>);
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
