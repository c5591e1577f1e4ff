//! Settlements: entries for the engine, and what its results say to an observer.

use std::time::Duration;

use hive_broker::engine::Refusal;
use hive_broker::engine::mail::settlements::Results;
use hive_core::settlement::{Action, Entry, Settled};
use hive_history::{Answer, Reply};

use crate::call::Call;
use crate::seen;

/// Returns the entry of a settlement; `None` for another call.
pub(crate) fn entry(call: &Call) -> Option<Entry> {
    let (token, action) = match call.clone() {
        Call::Ack { token } => (token, Action::Ack),
        Call::Nack { token, permanent } => {
            (token, Action::Nack { error: "cannot".to_owned(), permanent })
        }
        Call::Release { token } => (token, Action::Release),
        Call::Extend { token, lease_ms } => {
            (token, Action::Extend(Duration::from_millis(lease_ms)))
        }
        _ => return None,
    };
    Some(Entry::of_lease(token, action))
}

/// Returns the entries of settlements.
pub(crate) fn entries(calls: &[Call]) -> Vec<Entry> {
    calls.iter().filter_map(entry).collect()
}

/// Returns the answers to settlements.
pub(crate) fn answers(calls: &[Call], results: Results) -> Vec<Answer> {
    let answer = |(call, result): (&Call, Result<Settled, Refusal>)| match result {
        Ok(settled) => Answer::Ok(reply(call, settled)),
        Err(refusal) => Answer::Refused(refusal.reason().to_string()),
    };
    calls.iter().zip(results).map(answer).collect()
}

/// Returns what a settlement replies.
pub(crate) fn reply(call: &Call, settled: Settled) -> Reply {
    match (call, settled) {
        (_, Settled::Extended(_)) => Reply::Extended,
        (Call::Release { .. }, Settled::State(_)) => Reply::Released,
        (Call::Nack { .. }, Settled::State(state)) => Reply::Nacked(seen::state(state)),
        (_, Settled::State(_)) => Reply::Acked,
    }
}
