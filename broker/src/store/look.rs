//! Looks: commands that may have to wait until there is something for them, an inbox's mail above
//! all.
//!
//! ```text
//!   look ──► runs in a batch ── finds nothing ──► waits at the writer
//!                 │                                  │ a commit that wakes its agent is about to be made
//!                 │ finds something                  └──► runs in that very batch
//!                 ▼
//!          answered after the commit
//! ```
//!
//! So a message and the lease on it by somebody who was waiting are one commit and one sync.
//! Invariant: a look that has waited has changed nothing; one that found something is answered
//! after the commit, and where the commit fails it waits on, or is refused if it is new; one that
//! is stopped always ends.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use hive_core::time::BootTime;

use super::writer::{Item, Queue, Ran, is_fatal};
use super::{AgentKey, CommandError, StoreError, Tx};
use crate::sync::mpsc;

/// What a look saw.
#[derive(Debug)]
pub enum Seen<T> {
    /// Something: the look is over.
    Found(T),
    /// Nothing yet; nothing was changed.
    Nothing {
        /// What there is to say if nobody waits.
        so_far: T,
        /// When to look again, if nobody wakes the agent before.
        next_due: Option<BootTime>,
    },
}

/// What becomes of a look.
#[derive(Debug)]
pub enum Answer<T, E> {
    /// It is over.
    Done(Result<T, E>),
    /// It waits.
    Waiting {
        /// What there is to say if nobody waits.
        so_far: T,
        /// When to look again.
        next_due: Option<BootTime>,
    },
}

/// A look on its way, as its caller holds it. Dropped, it ends.
#[derive(Debug)]
pub struct Looking<T, E> {
    id: u64,
    queue: Arc<Queue>,
    answers: mpsc::UnboundedReceiver<Answer<T, E>>,
    over: bool,
}

impl<T, E: CommandError> Looking<T, E> {
    pub(super) fn new(
        id: u64,
        queue: Arc<Queue>,
        answers: mpsc::UnboundedReceiver<Answer<T, E>>,
    ) -> Self {
        Self { id, queue, answers, over: false }
    }

    /// What becomes of it next.
    pub async fn next(&mut self) -> Answer<T, E> {
        let answer = self
            .answers
            .recv()
            .await
            .unwrap_or_else(|| Answer::Done(Err(StoreError::Closed.into())));
        self.over = matches!(answer, Answer::Done(_));
        answer
    }

    /// Looks again now.
    pub async fn again(&self) {
        self.tell(Item::Again(self.id)).await;
    }

    /// Ends it; answers what it found, if it had found something before it heard of that.
    pub async fn stop(mut self) -> Option<Result<T, E>> {
        self.over = true;
        self.tell(Item::Stop(self.id)).await;
        loop {
            match self.answers.recv().await? {
                Answer::Done(result) => return Some(result),
                Answer::Waiting { .. } => {}
            }
        }
    }

    async fn tell(&self, item: Item) {
        // A writer that is gone has dropped the look, which `next` tells.
        self.queue.send(item).await;
    }
}

impl<T, E> Drop for Looking<T, E> {
    fn drop(&mut self) {
        if !self.over {
            // Where the queue is full the look is thrown out when it would run next.
            self.queue.try_send(Item::Stop(self.id));
        }
    }
}

/// A look at the writer's end.
pub(super) trait Look: Send {
    /// Runs it, unless it has an answer already.
    fn run(&mut self, tx: &Tx<'_>) -> Ran;
    /// Whether it is over, once the batch is on disk.
    fn is_over(&self) -> bool;
    /// Whether anybody still waits for it.
    fn is_wanted(&self) -> bool;
    /// The batch is on disk: tell what became of it.
    fn commit(&mut self);
    /// The batch is void: what it saw there was never so, and it waits on.
    fn forget(&mut self);
    /// It will not run.
    fn void(&mut self, problem: &Arc<str>);
}

/// A look and what it saw last.
pub(super) struct Running<F, T, E> {
    look: F,
    seen: Option<Result<Seen<T>, E>>,
    answers: mpsc::UnboundedSender<Answer<T, E>>,
}

impl<F, T, E> Running<F, T, E> {
    pub(super) fn new(look: F, answers: mpsc::UnboundedSender<Answer<T, E>>) -> Self {
        Self { look, seen: None, answers }
    }
}

impl<F, T, E> Look for Running<F, T, E>
where
    F: FnMut(&Tx<'_>) -> Result<Seen<T>, E> + Send,
    T: Send,
    E: CommandError,
{
    fn run(&mut self, tx: &Tx<'_>) -> Ran {
        let look = &mut self.look;
        let seen = catch_unwind(AssertUnwindSafe(|| look(tx)))
            .unwrap_or_else(|_| Err(StoreError::Panicked.into()));
        let ran = match seen.as_ref().map_err(CommandError::storage) {
            Ok(_) => Ran::Keep,
            Err(Some(StoreError::Sql(error))) if is_fatal(error) => {
                Ran::Void(error.to_string().into())
            }
            Err(_) => Ran::Undo,
        };
        self.seen = Some(seen);
        ran
    }

    fn is_over(&self) -> bool {
        matches!(self.seen, Some(Ok(Seen::Found(_)) | Err(_)))
    }

    fn is_wanted(&self) -> bool {
        !self.answers.is_closed()
    }

    fn commit(&mut self) {
        let answer = match self.seen.take() {
            Some(Ok(Seen::Found(found))) => Answer::Done(Ok(found)),
            Some(Ok(Seen::Nothing { so_far, next_due })) => Answer::Waiting { so_far, next_due },
            Some(Err(error)) => Answer::Done(Err(error)),
            None => return,
        };
        // The caller may be gone; what was found stands all the same, and a retry with its request
        // id finds it.
        drop(self.answers.send(answer));
    }

    fn forget(&mut self) {
        self.seen = None;
    }

    fn void(&mut self, problem: &Arc<str>) {
        let error = StoreError::Unavailable { problem: Arc::clone(problem) };
        drop(self.answers.send(Answer::Done(Err(error.into()))));
    }
}

/// A look that waits.
struct Wait {
    agent: AgentKey,
    look: Box<dyn Look>,
    /// Its caller has heard that it waits. One that has not is refused with its batch, like a
    /// command.
    told: bool,
    /// Its caller has stopped it in the batch in which it found something; should that be void, it
    /// has only its next run to find it again.
    stopped: bool,
}

/// The looks that wait, oldest first.
#[derive(Default)]
pub(super) struct Waiting {
    looks: BTreeMap<u64, Wait>,
    agents: BTreeMap<AgentKey, BTreeSet<u64>>,
}

impl Waiting {
    pub(super) fn insert(&mut self, id: u64, agent: AgentKey, look: Box<dyn Look>) {
        self.looks.insert(id, Wait { agent, look, told: false, stopped: false });
        self.agents.entry(agent).or_default().insert(id);
    }

    pub(super) fn get(&mut self, id: u64) -> Option<&mut Box<dyn Look>> {
        self.looks.get_mut(&id).map(|wait| &mut wait.look)
    }

    /// The looks that wait for an agent.
    pub(super) fn of(&self, agent: AgentKey) -> Vec<u64> {
        self.agents.get(&agent).into_iter().flatten().copied().collect()
    }

    /// Takes a look out that waits; one that has found something in this batch is answered with it.
    pub(super) fn stop(&mut self, id: u64) {
        let Some(wait) = self.looks.get_mut(&id) else { return };
        wait.stopped = true;
        if !wait.look.is_over() {
            self.remove(id);
        }
    }

    /// The batch in which these looks ran is void: those that were new in it are refused.
    pub(super) fn void(&mut self, looked: BTreeSet<u64>, problem: &Arc<str>) {
        for id in looked {
            if self.looks.get(&id).is_some_and(|wait| !wait.told) {
                self.refuse(id, problem);
            }
        }
    }

    /// Takes a look out that waits, while nobody can say what it found in a batch that was void.
    pub(super) fn refuse(&mut self, id: u64, problem: &Arc<str>) {
        if let Some(look) = self.get(id) {
            look.void(problem);
            self.remove(id);
        }
    }

    /// The batch in which a look ran is on disk.
    pub(super) fn commit(&mut self, id: u64) {
        let Some(wait) = self.looks.get_mut(&id) else { return };
        let ends = wait.look.is_over() || wait.stopped;
        wait.look.commit();
        wait.told = true;
        if ends {
            self.remove(id);
        }
    }

    /// Takes a look out.
    pub(super) fn remove(&mut self, id: u64) {
        if let Some(Wait { agent, .. }) = self.looks.remove(&id)
            && let Some(ids) = self.agents.get_mut(&agent)
        {
            ids.remove(&id);
            if ids.is_empty() {
                self.agents.remove(&agent);
            }
        }
    }

    /// All of them, each to be looked at again: a batch that was void may be on disk after all.
    pub(super) fn again(&mut self) -> Vec<Item> {
        for wait in self.looks.values_mut() {
            wait.look.forget();
        }
        self.looks.keys().map(|id| Item::Again(*id)).collect()
    }
}
