//! What a launcher does next: a pure function of what the broker wants, and of what runs.
//!
//! Invariants: an agent has at most one harness at a time, and none while a purge of its name is
//! open. While a harness is being started or ended, nothing is decided about its agent. So a
//! decision that is carried out twice has the effect of one.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::agent::Wanted as State;
use hive_core::name::AgentName;

use crate::supervise::launch::wanted::{Harness, Wanted};

/// The harness of an agent, as its launcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// There is none.
    Absent,
    /// It runs, and was started for this count of restarts.
    Running { restart_count: u64 },
    /// It is being started or ended.
    Changing,
}

/// Why a harness is ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Gone,
    Stopped,
    Restart,
    /// A purge, by its id. There may be no harness.
    Purge(u64),
}

/// What is done about an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Its harness is ended, and what the reason says is done.
    End(Why),
    /// It is stopped and has no harness, which is reported.
    ReportStopped,
    /// Its harness is started, for this count of restarts.
    Start { restart_count: u64 },
}

/// Decides about all agents; one that is not in `seen` has no harness. Ends come before starts.
pub(crate) fn decide(wanted: &Wanted, seen: &BTreeMap<AgentName, Seen>) -> Vec<(AgentName, Next)> {
    let purges: BTreeMap<&AgentName, u64> =
        wanted.purges.iter().rev().map(|(id, name)| (name, *id)).collect();
    let names: BTreeSet<&AgentName> =
        wanted.agents.keys().chain(seen.keys()).chain(purges.keys().copied()).collect();
    let next = |name: &AgentName| {
        let seen = seen.get(name).copied().unwrap_or(Seen::Absent);
        one(wanted.agents.get(name), purges.get(name).copied(), seen)
    };
    let mut all: Vec<(AgentName, Next)> =
        names.into_iter().filter_map(|name| Some((name.clone(), next(name)?))).collect();
    all.sort_by_key(|(_, next)| matches!(next, Next::Start { .. }));
    all
}

/// Decides about one agent.
fn one(harness: Option<&Harness>, purge: Option<u64>, seen: Seen) -> Option<Next> {
    match (seen, purge, harness) {
        (Seen::Changing, _, _) => None,
        (_, Some(id), _) => Some(Next::End(Why::Purge(id))),
        (Seen::Running { .. }, None, None) => Some(Next::End(Why::Gone)),
        (Seen::Running { restart_count }, None, Some(harness)) => {
            if harness.state == State::Stopped {
                Some(Next::End(Why::Stopped))
            } else {
                (restart_count != harness.restart_count).then_some(Next::End(Why::Restart))
            }
        }
        (Seen::Absent, None, None) => None,
        (Seen::Absent, None, Some(harness)) if harness.state == State::Stopped => {
            Some(Next::ReportStopped)
        }
        (Seen::Absent, None, Some(harness)) => {
            harness.is_due().then_some(Next::Start { restart_count: harness.restart_count })
        }
    }
}

/// The agents whose stop was reported.
#[derive(Debug, Default)]
pub(crate) struct Stops(BTreeSet<AgentName>);

impl Stops {
    /// Forgets the agents that are no longer stopped.
    pub(crate) fn retain(&mut self, wanted: &Wanted) {
        let is_stopped = |harness: &Harness| harness.state == State::Stopped;
        self.0.retain(|name| wanted.agents.get(name).is_some_and(is_stopped));
    }

    /// Returns whether the stop of an agent was not reported yet, and notes that it is.
    pub(crate) fn is_new(&mut self, name: &AgentName) -> bool {
        self.0.insert(name.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harness(state: State, restart_count: u64, start_now: bool) -> Harness {
        Harness { state, restart_count, start_now }
    }

    const fn running(restart_count: u64) -> Seen {
        Seen::Running { restart_count }
    }

    #[test]
    fn a_harness_that_is_due_and_missing_is_started() {
        let start = Some(Next::Start { restart_count: 3 });
        assert_eq!(one(Some(&harness(State::Running, 3, false)), None, Seen::Absent), start);
        assert_eq!(one(Some(&harness(State::OnDemand, 3, true)), None, Seen::Absent), start);
        for (harness, seen) in [
            // Parked, or without mail.
            (harness(State::OnDemand, 3, false), Seen::Absent),
            (harness(State::OnDemand, 3, true), running(3)),
            (harness(State::OnDemand, 3, false), running(3)),
            (harness(State::Running, 3, false), running(3)),
            (harness(State::Running, 3, false), Seen::Changing),
        ] {
            assert_eq!(one(Some(&harness), None, seen), None, "{harness:?} {seen:?}");
        }
    }

    #[test]
    fn a_harness_that_is_not_wanted_is_ended() {
        let stopped = harness(State::Stopped, 3, false);
        assert_eq!(one(Some(&stopped), None, running(3)), Some(Next::End(Why::Stopped)));
        assert_eq!(one(Some(&stopped), None, Seen::Absent), Some(Next::ReportStopped));
        assert_eq!(one(Some(&stopped), None, Seen::Changing), None);
        assert_eq!(one(None, None, running(3)), Some(Next::End(Why::Gone)));
        assert_eq!(one(None, None, Seen::Absent), None);
    }

    #[test]
    fn two_requests_are_one_restart_and_one_that_comes_during_it_is_not_lost() {
        let wanted = |count| harness(State::Running, count, false);
        let restart = Some(Next::End(Why::Restart));
        assert_eq!(one(Some(&wanted(2)), None, running(0)), restart);
        assert_eq!(one(Some(&wanted(2)), None, Seen::Changing), None);
        // A third request came before the process had ended, and it is one start for all.
        let start = Some(Next::Start { restart_count: 3 });
        assert_eq!(one(Some(&wanted(3)), None, Seen::Absent), start);
        assert_eq!(one(Some(&wanted(3)), None, running(3)), None);
        // It came after the start.
        assert_eq!(one(Some(&wanted(3)), None, running(2)), restart);
    }

    #[test]
    fn no_harness_runs_while_a_purge_of_its_name_is_open() {
        let purge = Some(Next::End(Why::Purge(7)));
        for seen in [Seen::Absent, running(0)] {
            assert_eq!(one(None, Some(7), seen), purge);
            // Another agent has the name by now.
            assert_eq!(one(Some(&harness(State::Running, 0, false)), Some(7), seen), purge);
        }
        assert_eq!(one(None, Some(7), Seen::Changing), None);
    }

    #[test]
    fn ends_come_before_starts_and_the_oldest_purge_first() {
        let name = |text: &str| AgentName::parse(text).expect("a name");
        let wanted = Wanted {
            agents: BTreeMap::from([
                (name("ada"), harness(State::Running, 1, false)),
                (name("bob"), harness(State::Stopped, 0, false)),
            ]),
            purges: BTreeMap::from([(4, name("cy")), (9, name("cy"))]),
        };
        let seen = BTreeMap::from([(name("dee"), running(0))]);
        let expected = [
            (name("bob"), Next::ReportStopped),
            (name("cy"), Next::End(Why::Purge(4))),
            (name("dee"), Next::End(Why::Gone)),
            (name("ada"), Next::Start { restart_count: 1 }),
        ];
        assert_eq!(decide(&wanted, &seen), expected);
    }

    #[test]
    fn a_stop_is_reported_once_for_each_time() {
        let name = AgentName::parse("ada").expect("a name");
        let wanted = |state| Wanted {
            agents: BTreeMap::from([(name.clone(), harness(state, 0, false))]),
            purges: BTreeMap::new(),
        };
        let mut stops = Stops::default();
        assert!(stops.is_new(&name));
        stops.retain(&wanted(State::Stopped));
        assert!(!stops.is_new(&name));
        stops.retain(&wanted(State::Running));
        assert!(stops.is_new(&name));
    }
}
