//! The journal of changed agents, in memory: which agents changed, and in which order.
//!
//! A watch of agents keeps its own place in it and reads the rows of those that changed after it.
//! An agent has one place, that of its last change: so the journal has at most one entry for each
//! agent, a slow watcher skips what was replaced in the meantime, and a change costs the writer the
//! same however many agents and watchers there are. Invariant: a change is in the journal before
//! its commit is answered.

use std::collections::BTreeMap;

use crate::map::Map;
use crate::store::AgentKey;
use crate::sync::{Mutex, MutexGuard, PoisonError, watch};

#[derive(Debug, Default)]
struct Inner {
    by_agent: Map<AgentKey, u64>,
    by_place: BTreeMap<u64, AgentKey>,
    /// Changes up to this place may be missing.
    doubtful: u64,
}

/// The journal.
#[derive(Debug)]
pub struct Changes {
    inner: Mutex<Inner>,
    /// The place of the last change.
    newest: watch::Sender<u64>,
}

impl Default for Changes {
    fn default() -> Self {
        Self { inner: Mutex::default(), newest: watch::channel(0).0 }
    }
}

impl Changes {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that an agent changed.
    pub(crate) fn note(&self, agent: AgentKey) {
        let mut inner = self.lock();
        let place = *self.newest.borrow() + 1;
        if let Some(before) = inner.by_agent.insert(agent, place) {
            inner.by_place.remove(&before);
        }
        inner.by_place.insert(place, agent);
        self.newest.send_replace(place);
    }

    /// Notes that changes may be missing: a batch that was aborted may be on disk after all.
    pub(crate) fn doubt(&self) {
        let mut inner = self.lock();
        let place = *self.newest.borrow() + 1;
        inner.doubtful = place;
        self.newest.send_replace(place);
    }

    /// Returns the place of the last change; the receiver sees changes.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Returns the agents that changed after a place, at most `rows`, and the place after which the
    /// next read begins; `None` if changes may be missing.
    pub(crate) fn after(&self, place: u64, rows: usize) -> Option<(Vec<AgentKey>, u64)> {
        let inner = self.lock();
        if place < inner.doubtful {
            return None;
        }
        let newer = inner.by_place.range(place + 1..).take(rows);
        let (places, agents): (Vec<u64>, Vec<AgentKey>) =
            newer.map(|(place, agent)| (*place, *agent)).unzip();
        let next = if agents.len() == rows { places.last().copied() } else { None };
        Some((agents, next.unwrap_or_else(|| *self.newest.borrow())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_has_one_place_and_a_reader_may_stop_and_go_on() {
        let changes = Changes::default();
        let [one, two, three] = [1, 2, 3].map(AgentKey);
        for agent in [one, two, one, three, two, two] {
            changes.note(agent);
        }
        assert_eq!(changes.after(0, 10), Some((vec![one, three, two], 6)));
        let (first, next) = changes.after(0, 2).expect("nothing is missing");
        assert_eq!(first, [one, three]);
        assert_eq!(changes.after(next, 2), Some((vec![two], 6)));
        assert_eq!(changes.after(6, 2), Some((vec![], 6)));
        changes.note(one);
        assert_eq!(changes.after(6, 2), Some((vec![one], 7)));
        assert_eq!(changes.lock().by_place.len(), 3, "the journal does not grow");
        changes.doubt();
        assert_eq!(changes.after(7, 2), None);
        assert_eq!(changes.after(8, 2), Some((vec![], 8)));
    }
}
