//! Waiters: commands that wait for an event, above all for mail in an inbox.
//!
//! ```text
//!   waiter ──► polled in a batch ── pending ──► waits at the writer
//!                 │                                │ a batch wakes its agent
//!                 │ ready                          └──► polled in that same batch
//!                 ▼
//!          answered after the commit
//! ```
//!
//! So a message and the lease of a waiter on it are one commit and one sync. Invariant: a pending
//! poll has changed nothing. A ready waiter is answered after the commit; if the commit fails, it
//! stays, or is refused if it was new in the batch. A cancelled waiter always ends.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hive_core::time::BootTime;

use super::queue::{Item, Pollable, Queue, Ran, Undo, catch};
use super::tx::Tx;
use crate::store::error::{CommandError, StoreError};
use crate::store::key::AgentKey;
use crate::sync::mpsc;

/// The result of a poll.
#[derive(Debug)]
pub enum Poll<T> {
    /// The waiter is over.
    Ready(T),
    /// There is nothing yet; the poll changed nothing.
    Pending {
        /// The answer for a caller that does not wait.
        so_far: T,
        /// When to poll again, if the agent is not woken before.
        next_due: Option<BootTime>,
    },
}

/// The state of a waiter, as its caller gets it.
#[derive(Debug)]
pub enum Progress<T, E> {
    /// The waiter is over.
    Done(Result<T, E>),
    /// The waiter is pending.
    Waiting {
        /// The answer for a caller that does not wait.
        so_far: T,
        /// The time of the next retry, if no hint arrives before.
        next_due: Option<BootTime>,
    },
}

/// The caller's end of a waiter. Dropping it cancels the waiter.
#[derive(Debug)]
pub struct Waiter<T, E> {
    id: u64,
    queue: Arc<Queue>,
    progress: mpsc::UnboundedReceiver<Progress<T, E>>,
    is_over: bool,
}

impl<T, E: CommandError> Waiter<T, E> {
    pub(super) fn new(
        id: u64,
        queue: Arc<Queue>,
        progress: mpsc::UnboundedReceiver<Progress<T, E>>,
    ) -> Self {
        Self { id, queue, progress, is_over: false }
    }

    /// Waits for the next progress.
    pub async fn next(&mut self) -> Progress<T, E> {
        let next = self.progress.recv().await;
        let next = next.unwrap_or_else(|| Progress::Done(Err(StoreError::Closed.into())));
        self.is_over = matches!(next, Progress::Done(_));
        next
    }

    /// Requests a poll now.
    pub async fn retry(&self) {
        self.queue(Item::Retry(self.id)).await;
    }

    /// Cancels it; returns the result if it was ready before.
    pub async fn cancel(mut self) -> Option<Result<T, E>> {
        self.is_over = true;
        self.queue(Item::Cancel(self.id)).await;
        loop {
            match self.progress.recv().await? {
                Progress::Done(result) => return Some(result),
                Progress::Waiting { .. } => {}
            }
        }
    }

    async fn queue(&self, item: Item) {
        // A writer that has ended drops the waiter, which `next` reports.
        self.queue.send(item).await;
    }
}

impl<T, E> Drop for Waiter<T, E> {
    fn drop(&mut self) {
        if !self.is_over {
            // If the queue is full, the writer removes the waiter before its next poll.
            self.queue.try_send(Item::Cancel(self.id));
        }
    }
}

/// The writer's end of a waiter, with the result of its last poll.
pub(super) struct Polled<F, T, E> {
    undo: Undo,
    poll: F,
    result: Option<Result<Poll<T>, E>>,
    progress: mpsc::UnboundedSender<Progress<T, E>>,
}

impl<F, T, E> Polled<F, T, E> {
    pub(super) fn new(
        undo: Undo,
        poll: F,
        progress: mpsc::UnboundedSender<Progress<T, E>>,
    ) -> Self {
        Self { undo, poll, result: None, progress }
    }
}

impl<F, T, E> Pollable for Polled<F, T, E>
where
    F: FnMut(&Tx<'_>) -> Result<Poll<T>, E> + Send,
    T: Send,
    E: CommandError,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, tx: &Tx<'_>) -> Ran {
        let poll = &mut self.poll;
        let (result, ran) = catch(|| poll(tx));
        self.result = Some(result);
        ran
    }

    fn is_over(&self) -> bool {
        matches!(self.result, Some(Ok(Poll::Ready(_)) | Err(_)))
    }

    fn is_wanted(&self) -> bool {
        !self.progress.is_closed()
    }

    fn commit(&mut self) {
        let progress = match self.result.take() {
            Some(Ok(Poll::Ready(found))) => Progress::Done(Ok(found)),
            Some(Ok(Poll::Pending { so_far, next_due })) => Progress::Waiting { so_far, next_due },
            Some(Err(error)) => Progress::Done(Err(error)),
            None => return,
        };
        // If the caller is gone, its rows stay, and a retry with its request id finds them.
        drop(self.progress.send(progress));
    }

    fn reset(&mut self) {
        self.result = None;
    }

    fn abort(&mut self, problem: &Arc<str>) {
        let error = StoreError::unavailable(problem).into();
        drop(self.progress.send(Progress::Done(Err(error))));
    }
}

/// A waiter that the writer keeps.
struct Kept {
    agent: AgentKey,
    waiter: Box<dyn Pollable>,
    /// Whether its caller has been notified that it waits. If not, it is refused with its batch, as
    /// a command is.
    is_notified: bool,
    /// Whether its caller cancelled it in the batch in which it was ready. If that batch is
    /// aborted, only the next poll can find the result again.
    is_cancelled: bool,
}

/// The waiters at the writer, oldest first.
#[derive(Default)]
pub(super) struct Waiters {
    waiters: BTreeMap<u64, Kept>,
    agents: BTreeMap<AgentKey, BTreeSet<u64>>,
}

impl Waiters {
    pub(super) fn insert(&mut self, id: u64, agent: AgentKey, waiter: Box<dyn Pollable>) {
        let kept = Kept { agent, waiter, is_notified: false, is_cancelled: false };
        self.waiters.insert(id, kept);
        self.agents.entry(agent).or_default().insert(id);
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Box<dyn Pollable>> {
        self.waiters.get_mut(&id).map(|kept| &mut kept.waiter)
    }

    /// Returns the waiters for an agent.
    pub(super) fn of(&self, agent: AgentKey) -> Vec<u64> {
        self.agents.get(&agent).into_iter().flatten().copied().collect()
    }

    /// Removes a pending waiter; one that is ready in this batch is answered with the batch.
    pub(super) fn cancel(&mut self, id: u64) {
        let Some(kept) = self.waiters.get_mut(&id) else { return };
        kept.is_cancelled = true;
        if !kept.waiter.is_over() {
            self.remove(id);
        }
    }

    /// Refuses those of these waiters that were new in an aborted batch.
    pub(super) fn abort(&mut self, polled: BTreeSet<u64>, problem: &Arc<str>) {
        for id in polled {
            if self.waiters.get(&id).is_some_and(|kept| !kept.is_notified) {
                self.refuse(id, problem);
            }
        }
    }

    /// Removes a waiter with an error: its result in an aborted batch is not known.
    pub(super) fn refuse(&mut self, id: u64, problem: &Arc<str>) {
        if let Some(waiter) = self.get(id) {
            waiter.abort(problem);
            self.remove(id);
        }
    }

    /// Notifies a waiter that the batch in which it was polled is on disk.
    pub(super) fn commit(&mut self, id: u64) {
        let Some(kept) = self.waiters.get_mut(&id) else { return };
        let ends = kept.waiter.is_over() || kept.is_cancelled;
        kept.waiter.commit();
        kept.is_notified = true;
        if ends {
            self.remove(id);
        }
    }

    /// Removes a waiter.
    pub(super) fn remove(&mut self, id: u64) {
        if let Some(Kept { agent, .. }) = self.waiters.remove(&id)
            && let Some(ids) = self.agents.get_mut(&agent)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.agents.remove(&agent);
            }
        }
    }

    /// Resets all waiters, and returns a retry of each: an aborted batch may be on disk after all.
    pub(super) fn retries(&mut self) -> Vec<Item> {
        for kept in self.waiters.values_mut() {
            kept.waiter.reset();
        }
        self.waiters.keys().map(|id| Item::Retry(*id)).collect()
    }
}
