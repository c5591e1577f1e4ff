//! What is new about a unit: a pure function of its record and of its state.
//!
//! Invariant: the end of a process is news once, however often it is looked at and whichever
//! launcher looks, and an end that the launcher ordered is none.

use crate::supervise::units::record::Record;
use crate::supervise::units::state::{Active, State};

/// News of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// A process was started.
    Started,
    /// A process ended by itself.
    Crashed {
        /// The start of the unit whose process it was.
        invocation: Option<String>,
        ending: String,
    },
}

/// Takes a state in; returns the news, and changes the record for them. A unit without a record was
/// started by hand: for no request of a restart.
pub(crate) fn observe(record: &mut Option<Record>, state: &State) -> Vec<News> {
    let now = state.invocation.clone();
    match state.active {
        Active::Changing | Active::Inactive => Vec::new(),
        Active::Failed | Active::Waiting => match record {
            Some(record) if record.has_ended && record.invocation == now => Vec::new(),
            Some(record) => {
                (record.invocation, record.has_ended) = (now.clone(), true);
                vec![News::Crashed { invocation: now, ending: state.ending.clone() }]
            }
            None if state.active == Active::Failed => Vec::new(),
            None => {
                *record = Some(Record { restart_count: 0, invocation: now, has_ended: true });
                Vec::new()
            }
        },
        Active::Up => {
            let before = record.get_or_insert_default();
            if before.invocation == now && now.is_some() {
                // An order to end it was not given after all.
                before.has_ended = false;
                return Vec::new();
            }
            // Without a restart by systemd, it was started again by hand.
            let has_crashed =
                before.invocation.is_some() && !before.has_ended && state.restarts > 0;
            let earlier = std::mem::replace(&mut before.invocation, now);
            before.has_ended = false;
            let ending = "it ended, and systemd has started it again".to_owned();
            let crashed = News::Crashed { invocation: earlier, ending };
            has_crashed.then_some(crashed).into_iter().chain([News::Started]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(active: Active, invocation: &str, restarts: u64) -> State {
        let invocation = Some(invocation.to_owned());
        State { active, invocation, restarts, ending: "exit status: 1".to_owned() }
    }

    fn crashed(invocation: &str) -> News {
        let ending = "exit status: 1".to_owned();
        News::Crashed { invocation: Some(invocation.to_owned()), ending }
    }

    /// The record of an order to start a unit.
    fn ordered() -> Option<Record> {
        Some(Record { restart_count: 2, invocation: None, has_ended: false })
    }

    #[test]
    fn a_start_is_news_once_and_keeps_its_count() {
        let mut record = ordered();
        assert_eq!(observe(&mut record, &State::default()), []);
        assert_eq!(observe(&mut record, &state(Active::Changing, "a", 0)), []);
        assert_eq!(observe(&mut record, &state(Active::Up, "a", 0)), [News::Started]);
        assert_eq!(observe(&mut record, &state(Active::Up, "a", 0)), []);
        let expected =
            Record { restart_count: 2, invocation: Some("a".to_owned()), has_ended: false };
        assert_eq!(record, Some(expected));
    }

    #[test]
    fn a_crash_is_news_once_in_each_round_of_a_loop() {
        let mut record = ordered();
        for (round, invocation) in ["a", "b", "c"].into_iter().enumerate() {
            let restarts = round as u64;
            let up = state(Active::Up, invocation, restarts);
            assert_eq!(observe(&mut record, &up), [News::Started]);
            let waiting = state(Active::Waiting, invocation, restarts);
            assert_eq!(observe(&mut record, &waiting), [crashed(invocation)]);
            assert_eq!(observe(&mut record, &waiting), []);
        }
        // One that dies too soon to be seen alive.
        assert_eq!(observe(&mut record, &state(Active::Waiting, "d", 3)), [crashed("d")]);
        assert_eq!(observe(&mut record, &state(Active::Failed, "e", 4)), [crashed("e")]);
        assert_eq!(observe(&mut record, &state(Active::Failed, "e", 4)), []);
        assert_eq!(record.map(|record| record.restart_count), Some(2));
    }

    #[test]
    fn a_crash_between_two_looks_is_seen_by_the_next_start() {
        let mut record = ordered();
        observe(&mut record, &state(Active::Up, "a", 0));
        let news = observe(&mut record, &state(Active::Up, "b", 1));
        let [News::Crashed { invocation, .. }, News::Started] = &news[..] else {
            panic!("a crash and a start: {news:?}");
        };
        assert_eq!(invocation.as_deref(), Some("a"));
        // A restart by hand is none.
        assert_eq!(observe(&mut record, &state(Active::Up, "c", 0)), [News::Started]);
    }

    #[test]
    fn an_end_that_was_ordered_is_no_news() {
        let ended = |invocation: &str| {
            let invocation = Some(invocation.to_owned());
            Some(Record { restart_count: 2, invocation, has_ended: true })
        };
        // It did not end in its time, and was killed.
        let mut record = ended("a");
        assert_eq!(observe(&mut record, &state(Active::Failed, "a", 0)), []);
        // The launcher was killed before the order, which is not wanted any more.
        let mut record = ended("a");
        assert_eq!(observe(&mut record, &state(Active::Up, "a", 0)), []);
        assert_eq!(observe(&mut record, &state(Active::Waiting, "a", 0)), [crashed("a")]);
    }

    #[test]
    fn a_unit_that_was_started_by_hand_has_count_0() {
        let mut record = None;
        assert_eq!(observe(&mut record, &state(Active::Failed, "a", 0)), []);
        assert_eq!(record, None);
        assert_eq!(observe(&mut record, &state(Active::Up, "b", 5)), [News::Started]);
        assert_eq!(record.map(|record| record.restart_count), Some(0));
        let mut record = None;
        assert_eq!(observe(&mut record, &state(Active::Waiting, "a", 5)), []);
        assert_eq!(observe(&mut record, &state(Active::Waiting, "b", 6)), [crashed("b")]);
    }
}
