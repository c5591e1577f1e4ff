//! Ends of leases: for each agent, a time before which none of its consumers' leases ends.
//!
//! An index of the ends would change twice for each message, and nearly every message is acked long
//! before. Invariant: the time of an agent is not later than the end of any of its leases. It may
//! be earlier: the sweep then reads that agent's leases, and finds their earliest end. What a
//! failed command did is undone; after an aborted batch nothing is known, and all agents that hold
//! leases are read again.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use hive_core::time::BootTime;

use crate::map::Map;
use crate::store::key::AgentKey;

/// The times, and the changes of the present batch.
#[derive(Debug, Default)]
pub(in crate::store) struct LeaseEnds {
    /// Whether every agent that holds leases has a time.
    is_loaded: Cell<bool>,
    times: RefCell<Times>,
    /// Changes of the batch, each with the time before, oldest first.
    changes: RefCell<Vec<(AgentKey, Option<BootTime>)>>,
}

#[derive(Debug, Default)]
struct Times {
    of: Map<AgentKey, BootTime>,
    in_order: BTreeSet<(BootTime, AgentKey)>,
}

impl Times {
    /// Sets the time of an agent; returns the one before.
    fn set(&mut self, agent: AgentKey, time: Option<BootTime>) -> Option<BootTime> {
        let before = match time {
            Some(time) => self.of.insert(agent, time),
            None => self.of.remove(&agent),
        };
        if before != time {
            if let Some(before) = before {
                self.in_order.remove(&(before, agent));
            }
            if let Some(time) = time {
                self.in_order.insert((time, agent));
            }
        }
        before
    }
}

impl LeaseEnds {
    /// Notes that a lease of the agent ends at this time.
    pub(in crate::store) fn add(&self, agent: AgentKey, end: BootTime) {
        let known = self.times.borrow().of.get(&agent).copied();
        if known.is_none_or(|known| end < known) {
            self.set(agent, Some(end));
        }
    }

    /// Notes that the first lease of the agent ends at this time, or that it has none with an end.
    pub(in crate::store) fn set(&self, agent: AgentKey, first: Option<BootTime>) {
        let before = self.times.borrow_mut().set(agent, first);
        if before != first {
            self.changes.borrow_mut().push((agent, before));
        }
    }

    pub(in crate::store) fn is_loaded(&self) -> bool {
        self.is_loaded.get()
    }

    /// Adds the agents that hold leases. When these end is not known, so they are read at once.
    pub(in crate::store) fn load(&self, holders: impl IntoIterator<Item = AgentKey>) {
        let mut times = self.times.borrow_mut();
        for agent in holders {
            // Not undone with a command: too early a time does no harm.
            times.set(agent, Some(BootTime(0)));
        }
        self.is_loaded.set(true);
    }

    /// Returns agents whose time has come, at most `most`.
    pub(in crate::store) fn due(&self, now: BootTime, most: usize) -> Vec<AgentKey> {
        let times = self.times.borrow();
        let due = times.in_order.iter().take_while(|(time, _)| *time <= now);
        due.take(most).map(|(_, agent)| *agent).collect()
    }

    /// Returns the earliest time of all.
    pub(in crate::store) fn next(&self) -> Option<BootTime> {
        self.times.borrow().in_order.first().map(|(time, _)| *time)
    }

    pub(super) fn mark(&self) -> usize {
        self.changes.borrow().len()
    }

    /// Undoes the changes since a mark.
    pub(super) fn reset(&self, mark: usize) {
        let mut times = self.times.borrow_mut();
        for (agent, before) in self.changes.borrow_mut().drain(mark..).rev() {
            times.set(agent, before);
        }
    }

    /// Notes that the batch is on disk.
    pub(super) fn committed(&self) {
        self.changes.borrow_mut().clear();
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.is_loaded.set(false);
        *self.times.borrow_mut() = Times::default();
        self.changes.borrow_mut().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: AgentKey = AgentKey(2);
    const BOB: AgentKey = AgentKey(3);

    #[test]
    fn the_earliest_end_of_an_agent_counts_until_it_is_read_again() {
        let ends = LeaseEnds::default();
        ends.add(ALICE, BootTime(50));
        ends.add(ALICE, BootTime(70));
        ends.add(BOB, BootTime(60));
        assert_eq!(ends.next(), Some(BootTime(50)));
        assert_eq!(ends.due(BootTime(49), 9), []);
        assert_eq!(ends.due(BootTime(60), 9), [ALICE, BOB]);
        assert_eq!(ends.due(BootTime(60), 1), [ALICE]);
        ends.set(ALICE, Some(BootTime(70)));
        assert_eq!(ends.due(BootTime(60), 9), [BOB]);
        ends.set(BOB, None);
        assert_eq!(ends.next(), Some(BootTime(70)));
    }

    #[test]
    fn what_a_failed_command_did_is_undone() {
        let ends = LeaseEnds::default();
        ends.add(ALICE, BootTime(50));
        let mark = ends.mark();
        ends.set(ALICE, None);
        ends.add(BOB, BootTime(60));
        ends.set(BOB, Some(BootTime(80)));
        ends.reset(mark);
        assert_eq!(ends.due(BootTime(99), 9), [ALICE]);
        ends.committed();
        ends.reset(0);
        assert_eq!(ends.next(), Some(BootTime(50)), "a commit cannot be undone");
    }

    #[test]
    fn holders_of_leases_are_read_at_once() {
        let ends = LeaseEnds::default();
        ends.add(ALICE, BootTime(50));
        assert!(!ends.is_loaded());
        ends.load([ALICE, BOB]);
        assert!(ends.is_loaded());
        assert_eq!(ends.due(BootTime(0), 9), [ALICE, BOB]);
        ends.clear();
        assert!(!ends.is_loaded() && ends.next().is_none());
    }
}
