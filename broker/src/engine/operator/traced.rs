//! What is exported as traces: events, and the messages and turns that they concern.
//!
//! Invariant: it only reads, by connections that cannot write.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::id::MessageId;
use hive_core::traced::{SentMessage, TracedTurn};
use hive_export::{Follower, Part, wanted_message, wanted_turn};

use crate::engine::trace::random_span;
use crate::engine::{Engine, Refusal};
use crate::store::{event, traced, turn};

/// Maximum events of a part.
const PART_EVENTS: u32 = 512;
/// Maximum deliveries that an exporter knows from its start.
const WAITING_MAX: u32 = 10_000;
/// Maximum links of a turn.
const LINKS_MAX: u32 = 128;

impl Engine {
    /// Returns a follower that begins behind the newest event.
    pub async fn follower(&self) -> Result<Follower, Refusal> {
        self.store
            .read(|conn, _| {
                // One snapshot has both.
                let (_, last) = event::span(conn)?;
                Ok(Follower::new(last, traced::waiting(conn, WAITING_MAX)?, random_span))
            })
            .await
    }

    /// Returns the next part of the event log after a number.
    pub async fn next_part(&self, after: u64) -> Result<Part, Refusal> {
        self.store.read(move |conn, _| part(conn, after)).await
    }
}

/// Reads a part of the event log.
pub(crate) fn part(conn: &rusqlite::Connection, after: u64) -> Result<Part, Refusal> {
    let events = event::after(conn, after, None, PART_EVENTS)?;
    let wanted: BTreeSet<MessageId> = events.iter().filter_map(wanted_message).collect();
    let messages = sent_messages(conn, wanted)?;
    let mut turns = BTreeMap::new();
    for id in events.iter().filter_map(wanted_turn) {
        if let Some(traced) = traced::of_turn(conn, id)?
            && let Some(turn) = turn::view(conn, id, None)?
        {
            let received = traced::received(conn, id, LINKS_MAX)?;
            turns.insert(id, TracedTurn { turn, traced, received });
        }
    }
    Ok(Part { events, messages, turns })
}

/// Returns messages by their ids; those that are not there any more are left out.
pub(crate) fn sent_messages(
    conn: &rusqlite::Connection,
    ids: BTreeSet<MessageId>,
) -> Result<BTreeMap<MessageId, SentMessage>, Refusal> {
    let mut found = BTreeMap::new();
    for id in ids {
        found.extend(traced::sent(conn, id)?.map(|message| (id, message)));
    }
    Ok(found)
}
