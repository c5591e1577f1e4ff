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
    let (Call::Ack { token }
    | Call::Nack { token, .. }
    | Call::Release { token }
    | Call::Extend { token, .. }) = call
    else {
        return None;
    };
    let action = if let Call::Nack { permanent, .. } = call {
        Action::Nack { error: "cannot".to_owned(), permanent: *permanent }
    } else if let Call::Extend { lease_ms, .. } = call {
        Action::Extend(Duration::from_millis(*lease_ms))
    } else if matches!(call, Call::Release { .. }) {
        Action::Release
    } else {
        Action::Ack
    };
    Some(Entry::of_lease(token.clone(), action))
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
