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
//! So a message and the lease of a waiter on it are one commit and one sync. If more are woken than
//! one batch polls, the others are polled in the next ones, oldest first, with other commands in
//! between. Invariant: a pending poll has changed nothing. A ready waiter is answered after the
//! commit; if the commit fails, it is polled again, or refused if it was new in the batch. A
//! cancelled waiter always ends.
//!
//! A standing waiter goes on after it was ready, so that a stream queues nothing for its next page.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use hive_core::time::BootTime;

pub use super::progress::Progress;
use super::progress::{Listener, Reporter};
use super::queue::{Item, Pollable, Queue, Ran, Undo, catch};
use super::tx::Tx;
use crate::store::error::{CommandError, StoreError};
use crate::store::key::AgentKey;

/// The result of a poll.
#[derive(Debug)]
pub enum Poll<T> {
    /// The waiter is over, unless it stands.
    Ready(T),
    /// There is nothing yet; the poll changed nothing.
    Pending {
        /// The answer for a caller that does not wait.
        so_far: T,
        /// When to poll again, if the agent is not woken before.
        next_due: Option<BootTime>,
    },
    /// As [`Poll::Pending`], with the same answer as the last time. The caller is not notified, so
    /// only a poll that it did not ask for returns this.
    Unchanged,
}

/// Why a waiter is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Whether its caller asked for it; if not, its agent was woken.
    pub is_asked: bool,
    /// Whether the result of its last poll was lost with an aborted batch, which may be on disk
    /// after all.
    pub is_repeat: bool,
}

/// The caller's end of a waiter. Dropping it cancels the waiter.
#[derive(Debug)]
pub struct Waiter<T, E> {
    id: u64,
    queue: Arc<Queue>,
    progress: Listener<T, E>,
    life: Life,
    is_over: bool,
}

/// How long a waiter waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) enum Life {
    /// Until it is ready once.
    Once,
    /// Until its caller drops it.
    Standing,
}

impl<T, E: CommandError> Waiter<T, E> {
    pub(super) fn new(id: u64, queue: Arc<Queue>, progress: Listener<T, E>, life: Life) -> Self {
        Self { id, queue, progress, life, is_over: false }
    }

    /// Waits for the next progress.
    pub async fn next(&mut self) -> Progress<T, E> {
        let next = self.progress.recv().await;
        let next = next.unwrap_or_else(|| Progress::Done(Err(StoreError::Closed.into())));
        self.is_over = match next {
            Progress::Done(Ok(_)) => self.life == Life::Once,
            Progress::Done(Err(_)) => true,
            Progress::Waiting { .. } => false,
        };
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
        drop(self.queue.send(item).await);
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
    life: Life,
    poll: F,
    result: Option<Result<Poll<T>, E>>,
    /// Whether its last result was lost with an aborted batch.
    is_repeat: bool,
    progress: Reporter<T, E>,
}

impl<F, T, E> Polled<F, T, E> {
    pub(super) fn new(undo: Undo, life: Life, poll: F, progress: Reporter<T, E>) -> Self {
        Self { undo, life, poll, result: None, is_repeat: false, progress }
    }

    /// Takes the result of the last poll, because the batch is on disk.
    fn take_progress(&mut self) -> Option<Progress<T, E>> {
        self.is_repeat = false;
        match self.result.take()? {
            Ok(Poll::Ready(found)) => Some(Progress::Done(Ok(found))),
            Ok(Poll::Pending { so_far, next_due }) => Some(Progress::Waiting { so_far, next_due }),
            Ok(Poll::Unchanged) => None,
            Err(error) => Some(Progress::Done(Err(error))),
        }
    }
}

impl<F, T, E> Pollable for Polled<F, T, E>
where
    F: FnMut(&Tx<'_>, Wake) -> Result<Poll<T>, E> + Send,
    T: Send,
    E: CommandError,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, tx: &Tx<'_>, is_asked: bool) -> Ran {
        let wake = Wake { is_asked, is_repeat: self.is_repeat };
        let poll = &mut self.poll;
        let (result, ran) = catch(|| poll(tx, wake));
        // The answer of an earlier poll in this batch is still to be sent, if it has not changed.
        if self.result.is_none() || !matches!(result, Ok(Poll::Unchanged)) {
            self.result = Some(result);
        }
        ran
    }

    fn has_result(&self) -> bool {
        matches!(self.result, Some(Ok(Poll::Ready(_)) | Err(_)))
    }

    fn stands(&self) -> bool {
        self.life == Life::Standing && !matches!(self.result, Some(Err(_)))
    }

    fn is_wanted(&self) -> bool {
        !self.progress.is_closed()
    }

    fn commit(&mut self) {
        // If the caller is gone, its rows stay, and a retry with its request id finds them.
        if let Some(progress) = self.take_progress() {
            self.progress.send(progress);
        }
    }

    fn reset(&mut self) -> bool {
        let had_result = self.result.take().is_some();
        self.is_repeat |= had_result;
        had_result
    }

    fn abort(&mut self, problem: &Arc<str>) {
        let error = StoreError::unavailable(problem).into();
        self.progress.send(Progress::Done(Err(error)));
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
    /// Whether it had a result in an aborted batch, which may be on disk after all. Only its next
    /// poll can find that again, so a cancel does not remove it before.
    is_unsure: bool,
    /// Why it is to be polled, while it is in the queue of those.
    wake: Option<Asked>,
}

/// Whether the caller of a waiter asked for a poll. If not, its agent was woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Asked {
    No,
    Yes,
}

/// The waiters at the writer, oldest first.
#[derive(Default)]
pub(super) struct Waiters {
    waiters: BTreeMap<u64, Kept>,
    agents: BTreeMap<AgentKey, BTreeSet<u64>>,
    /// Waiters that are to be polled, in this order; maybe some that have ended.
    woken: VecDeque<u64>,
    /// Standing waiters that were woken after they were ready in the same batch.
    woken_again: BTreeSet<u64>,
}

impl Waiters {
    pub(super) fn insert(&mut self, id: u64, agent: AgentKey, waiter: Box<dyn Pollable>) {
        let kept = Kept {
            agent,
            waiter,
            is_notified: false,
            is_cancelled: false,
            is_unsure: false,
            wake: None,
        };
        self.waiters.insert(id, kept);
        self.agents.entry(agent).or_default().insert(id);
    }

    fn get(&mut self, id: u64) -> Option<&mut Box<dyn Pollable>> {
        self.waiters.get_mut(&id).map(|kept| &mut kept.waiter)
    }

    /// Queues a poll of the waiters for these agents, oldest first.
    pub(super) fn wake(&mut self, agents: impl IntoIterator<Item = AgentKey>) {
        let waiters = agents.into_iter().filter_map(|agent| self.agents.get(&agent));
        let mut ids: Vec<u64> = waiters.flatten().copied().collect();
        ids.sort_unstable();
        for id in ids {
            self.queue(id, Asked::No);
        }
    }

    fn queue(&mut self, id: u64, asked: Asked) {
        let Some(kept) = self.waiters.get_mut(&id) else { return };
        if kept.wake.is_none() {
            self.woken.push_back(id);
        }
        kept.wake = kept.wake.max(Some(asked));
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.waiters.len()
    }

    /// Returns how many may have to be polled.
    pub(super) fn woken_count(&self) -> usize {
        self.woken.len()
    }

    /// Returns the next waiter that is to be polled, and why.
    pub(super) fn next_woken(&mut self) -> Option<(u64, Asked)> {
        loop {
            let id = self.woken.pop_front()?;
            let wake = self.waiters.get_mut(&id).and_then(|kept| kept.wake.take());
            if let Some(asked) = wake {
                return Some((id, asked));
            }
        }
    }

    /// Removes a pending waiter; one that is ready in this batch, or may have been in one that was
    /// aborted, is answered with the batch of its poll.
    pub(super) fn cancel(&mut self, id: u64) {
        let Some(kept) = self.waiters.get_mut(&id) else { return };
        kept.is_cancelled = true;
        if !kept.waiter.has_result() && !kept.is_unsure {
            self.remove(id);
        }
    }

    /// Returns the waiter if it is to be polled: a result of this batch is not overwritten.
    pub(super) fn due_for_poll(&mut self, id: u64) -> Option<&mut Box<dyn Pollable>> {
        let waiter = &self.waiters.get(&id)?.waiter;
        if !waiter.is_wanted() {
            self.remove(id);
            return None;
        }
        if waiter.has_result() {
            if waiter.stands() {
                self.woken_again.insert(id);
            }
            return None;
        }
        self.get(id)
    }

    /// Queues a poll of the standing waiters that may have more after this batch.
    pub(super) fn wake_again(&mut self) {
        for id in std::mem::take(&mut self.woken_again) {
            self.queue(id, Asked::Yes);
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
        let ends = kept.is_cancelled || kept.waiter.has_result() && !kept.waiter.stands();
        kept.waiter.commit();
        kept.is_notified = true;
        kept.is_unsure = false;
        if ends {
            self.remove(id);
        }
    }

    /// Removes a waiter.
    fn remove(&mut self, id: u64) {
        if let Some(Kept { agent, .. }) = self.waiters.remove(&id)
            && let Some(ids) = self.agents.get_mut(&agent)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.agents.remove(&agent);
            }
        }
    }

    /// Resets all waiters, and queues a poll of each: an aborted batch may be on disk after all.
    pub(super) fn retry_all(&mut self) {
        self.woken_again.clear();
        for kept in self.waiters.values_mut() {
            kept.is_unsure |= kept.waiter.reset();
            kept.wake = Some(Asked::Yes);
        }
        self.woken = self.waiters.keys().copied().collect();
    }
}
