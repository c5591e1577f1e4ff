//! The grace time: a harness that was attached when the broker went down, and is back in time,
//! keeps the session.
//!
//! Silent: about a harness that was detached before, sent nothing for a while, or was taken over,
//! retired or rebooted since; and about a session that was not the agent's last, because another
//! harness has taken over.

use std::collections::BTreeMap;

use hive_history::{Answer, CallNo, Event, History, Mark, Op, Reply};

/// Maximum silence of a harness before the end of the broker, in ms: far less than the grace time.
const HEARD_OF: u64 = 30_000;

/// The known state of an agent's harness.
#[derive(Clone, Copy, Debug, Default)]
struct Known<'a> {
    /// The harness's session.
    session: &'a str,
    /// The time of its last answer.
    heard: u64,
    /// Whether the broker went down after the harness's last answer.
    cut_off: bool,
    /// When the broker was ready again; `None` while it is not.
    ready: Option<u64>,
    /// Whether something else happened to it.
    spoiled: bool,
}

/// Returns the problems found.
pub(crate) fn check(history: &History) -> Vec<String> {
    let mut problems = Vec::new();
    let grace = history.setting.grace_ms - history.setting.tolerance_ms;
    let mut known: BTreeMap<&str, Known<'_>> = BTreeMap::new();
    let mut calls: BTreeMap<CallNo, (&str, &Op)> = BTreeMap::new();
    for observation in &history.observations {
        let at = observation.at;
        match &observation.event {
            Event::Mark(Mark::BrokerDown) => {
                for harness in known.values_mut() {
                    let late =
                        harness.ready.is_some_and(|ready| harness.cut_off && at >= ready + grace);
                    harness.spoiled |= late || (!harness.cut_off && at > harness.heard + HEARD_OF);
                    (harness.cut_off, harness.ready) = (true, None);
                }
            }
            Event::Mark(Mark::BrokerReady) => {
                known.values_mut().for_each(|harness| harness.ready = Some(at));
            }
            Event::Mark(Mark::Reboot | Mark::Restored { .. }) => {
                known.values_mut().for_each(|harness| harness.spoiled = true);
            }
            Event::Mark(Mark::Detached { agent }) => {
                if let Some(harness) = known.get_mut(agent.as_str()) {
                    harness.spoiled |= !harness.cut_off || harness.ready.is_some();
                }
            }
            Event::Mark(Mark::Retiring { agent }) => drop(known.remove(agent.as_str())),
            Event::Mark(
                Mark::BackupBegun { .. }
                | Mark::BackedUp { .. }
                | Mark::Stopped { .. }
                | Mark::Starting { .. }
                | Mark::Purging { .. }
                | Mark::Purged { .. }
                | Mark::ClockSet
                | Mark::Note(_),
            )
            | Event::Saw(_) => {}
            Event::Invoked { call, caller, op, .. } => {
                if let Op::Attach { session, take_over } = op
                    && let Some(harness) = known.get_mut(caller.as_str())
                {
                    harness.spoiled |= *take_over || session.is_empty();
                }
                if matches!(op, Op::Attach { .. } | Op::BeginTurn { .. } | Op::EndTurn { .. }) {
                    calls.insert(*call, (caller.as_str(), op));
                }
            }
            Event::Answered { call, answer } => {
                let Some((caller, op)) = calls.get(call).copied() else { continue };
                let Answer::Ok(reply) = answer else {
                    // A harness without an answer may have attached, and detached at once.
                    if let (Op::Attach { .. }, Some(harness)) = (op, known.get_mut(caller)) {
                        harness.spoiled |= harness.ready.is_some();
                    }
                    continue;
                };
                let harness = known.get(caller).copied();
                if let (
                    Op::Attach { session, .. },
                    Reply::Attached { resumed: false, .. },
                    Some(harness),
                ) = (op, reply, harness)
                    && session == harness.session
                    && harness.cut_off
                    && !harness.spoiled
                    && harness.ready.is_some_and(|ready| at < ready + grace)
                {
                    problems.push(format!("Grace: at {at} ms {caller} was back in time, and its session {session} was over"));
                }
                if let Reply::Attached { session, .. } = reply {
                    known.insert(caller, Known { session, heard: at, ..Known::default() });
                } else if let Some(harness) = known.get_mut(caller) {
                    harness.heard = at;
                }
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use hive_history::Setting;

    /// Attaches with this session and gets that one; this determines whether it was resumed.
    fn attach(history: &mut History, at: u64, by: &str, got: &str) {
        let take_over = by.is_empty();
        let call =
            history.invoke(at, 0, "ann", "", Op::Attach { session: by.to_owned(), take_over });
        let reply =
            Reply::Attached { session: got.to_owned(), epoch: 1, resumed: by == got, open_turn: 0 };
        history.answer(at, 0, call, Answer::Ok(reply));
    }

    fn restart(history: &mut History, at: u64) {
        history.push(at, 0, Event::Mark(Mark::BrokerDown));
        history.push(at + 10, 0, Event::Mark(Mark::BrokerReady));
    }

    fn begun() -> History {
        let mut history =
            History::new(Setting { grace_ms: 60_000, tolerance_ms: 10, ..Setting::default() });
        attach(&mut history, 0, "", "one");
        history
    }

    #[test]
    fn a_client_that_is_back_in_time_keeps_the_session() {
        let mut history = begun();
        restart(&mut history, 1_000);
        attach(&mut history, 2_000, "one", "one");
        assert_eq!(check(&history), Vec::<String>::new());
        restart(&mut history, 3_000);
        attach(&mut history, 4_000, "one", "two");
        assert_eq!(check(&history).len(), 1);
    }

    #[test]
    fn a_client_after_a_takeover_has_no_session_to_keep() {
        let mut history = begun();
        attach(&mut history, 500, "", "two");
        restart(&mut history, 1_000);
        attach(&mut history, 2_000, "one", "three");
        assert_eq!(check(&history), Vec::<String>::new());
    }
}
