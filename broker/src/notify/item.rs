//! An item as programs read it: one JSON object, documented in `docs/operations.md`.

use prost_types::Timestamp;
use serde::Serialize;

use crate::engine::mail::outbox::{Item, Kind};

#[derive(Serialize)]
struct Json<'a> {
    kind: &'static str,
    agent: &'a str,
    id: u64,
    text: &'a str,
    create_time: String,
}

/// Returns the word for a kind.
pub(super) fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::Question => "question",
        Kind::Mail => "mail",
        Kind::DeadLetter => "dead_letter",
        Kind::NeedsLogin => "needs_login",
    }
}

/// Returns the object, on one line.
pub(super) fn json(item: &Item) -> String {
    let Item { row: _, kind, agent, id, text, create_time, failures: _ } = item;
    let create_time: Timestamp = hive_proto::convert::time::timestamp(*create_time);
    let json =
        Json { kind: word(*kind), agent, id: *id, text, create_time: create_time.to_string() };
    serde_json::to_string(&json).expect("texts and a number are JSON")
}
