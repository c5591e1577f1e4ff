//! What changed for the launcher, in memory: the agents that it has to look at again.
//!
//! Without a launcher nothing is kept, and a commit costs one look at a flag. With one, mail counts
//! only for agents that run on demand and have no harness. Invariant: a change is noted before its
//! commit is answered, and an agent is marked as looked at before it is read, so no change between
//! reading and waiting is lost.

pub mod asked;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::map::Map;
use crate::store::AgentKey;
use crate::sync::{Mutex, MutexGuard, Notify, PoisonError};

#[derive(Debug, Default)]
struct Inner {
    changed: BTreeSet<AgentKey>,
    /// Agents that run on demand, and whether they have no harness.
    on_demand: Map<AgentKey, bool>,
    /// Whether changes may be missing.
    doubtful: bool,
    /// Requests for logs that are not answered.
    asked: BTreeMap<u64, asked::Request>,
    /// The number of the last request.
    last_asked: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub struct Launches {
    attached: AtomicBool,
    inner: Mutex<Inner>,
    news: Notify,
}

/// What a launcher has to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// These agents; empty for none.
    Agents(Vec<AgentKey>),
    /// All of them, because changes may be missing.
    Everything,
}

impl Launches {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a launcher is attached.
    pub(crate) fn is_attached(&self) -> bool {
        self.attached.load(Ordering::SeqCst)
    }

    /// Attaches a launcher, unless there is one.
    pub(crate) fn attach(self: &Arc<Self>) -> Option<Launcher> {
        let taken = self.attached.swap(true, Ordering::SeqCst);
        (!taken).then(|| Launcher(Arc::clone(self)))
    }

    /// Notes a change of how an agent is wanted.
    pub(crate) fn changed(&self, agent: AgentKey) {
        self.note(agent, |_| true);
    }

    /// Notes that a harness attached or is away.
    pub(crate) fn presence(&self, agent: AgentKey) {
        self.note(agent, |on_demand| on_demand.is_some());
    }

    /// Notes that an inbox may have work.
    pub(crate) fn mail(&self, agent: AgentKey) {
        self.note(agent, |asleep| asleep == Some(true));
    }

    /// Notes that changes may be missing.
    pub(crate) fn doubt(&self) {
        if self.is_attached() {
            self.lock().doubtful = true;
            self.news.notify_one();
        }
    }

    fn note(&self, agent: AgentKey, matters: impl FnOnce(Option<bool>) -> bool) {
        if !self.is_attached() {
            return;
        }
        let mut inner = self.lock();
        if matters(inner.on_demand.get(&agent).copied()) && inner.changed.insert(agent) {
            drop(inner);
            self.news.notify_one();
        }
    }
}

/// The place of the one launcher.
#[derive(Debug)]
pub struct Launcher(Arc<Launches>);

impl Launcher {
    /// Waits until there may be news.
    pub(crate) async fn changed(&self) {
        self.0.news.notified().await;
    }

    /// Takes the next agents to look at, at most `rows`.
    pub(crate) fn take(&self, rows: usize) -> News {
        let mut inner = self.0.lock();
        if std::mem::take(&mut inner.doubtful) {
            return News::Everything;
        }
        let taken: Vec<AgentKey> = inner.changed.iter().copied().take(rows).collect();
        for agent in &taken {
            inner.changed.remove(agent);
            // Until it was read, mail matters.
            inner.on_demand.insert(*agent, true);
        }
        News::Agents(taken)
    }

    /// Marks agents as being looked at, as [`Self::take`] does.
    pub(crate) fn look_at(&self, agents: &[AgentKey]) {
        let mut inner = self.0.lock();
        for agent in agents {
            inner.on_demand.insert(*agent, true);
        }
    }

    /// Notes what was read of an agent: whether it runs on demand, and then whether it has no
    /// harness.
    pub(crate) fn known(&self, agent: AgentKey, asleep: Option<bool>) {
        let mut inner = self.0.lock();
        match asleep {
            Some(asleep) => drop(inner.on_demand.insert(agent, asleep)),
            None => drop(inner.on_demand.remove(&agent)),
        }
    }
}

impl Drop for Launcher {
    fn drop(&mut self) {
        let mut inner = self.0.lock();
        // The numbers go on, so an answer to this launcher is none to a request of the next one.
        *inner = Inner { last_asked: inner.last_asked, ..Inner::default() };
        self.0.attached.store(false, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changes_that_matter_to_a_launcher_are_noted() {
        let launches = Arc::new(Launches::default());
        let [one, two, three] = [1, 2, 3].map(AgentKey);
        launches.changed(one);
        let launcher = launches.attach().expect("there is none");
        assert!(launches.attach().is_none(), "there is one");
        assert_eq!(launcher.take(9), News::Agents(vec![]), "it was not there");
        launches.changed(one);
        launches.changed(one);
        launches.mail(two);
        launches.presence(three);
        assert_eq!(launcher.take(9), News::Agents(vec![one]));
        launches.mail(one);
        assert_eq!(launcher.take(9), News::Agents(vec![one]), "mail came while it was read");
        launcher.known(one, None);
        launcher.known(two, Some(true));
        launcher.known(three, Some(false));
        for agent in [one, two, three] {
            launches.mail(agent);
        }
        assert_eq!(launcher.take(9), News::Agents(vec![two]));
        launches.presence(three);
        launches.presence(one);
        launches.changed(one);
        assert_eq!(launcher.take(1), News::Agents(vec![one]));
        launches.doubt();
        assert_eq!(launcher.take(9), News::Everything);
        assert_eq!(launcher.take(9), News::Agents(vec![three]));
        drop(launcher);
        let again = launches.attach().expect("the place is free");
        launches.mail(three);
        assert_eq!(again.take(9), News::Agents(vec![]), "nothing is left of the last one");
    }
}
