//! What is exported as traces: events, and the messages and turns that they concern.
//!
//! Invariant: it only reads, by connections that cannot write.

use hive_core::traced::{SentMessage, TracedTurn};
use hive_export::{Follower, Part, accepted_message, ended_turn, returned_message};

use crate::engine::trace::random_span;
use crate::engine::{Engine, Refusal};
use crate::store::traced::readable;
use crate::store::{event, traced, turn};

/// Maximum events of a part.
const PART_EVENTS: u32 = 512;
/// Maximum open deliveries that are read at the start, for those in traces.
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
                let waiting = readable(traced::waiting(conn, WAITING_MAX))?;
                Ok(Follower::new(last, waiting, random_span))
            })
            .await
    }

    /// Returns the next part of the event log after a number.
    pub async fn next_part(&self, after: u64) -> Result<Part, Refusal> {
        self.store.read(move |conn, _| part(conn, after)).await
    }
}

/// Reads a part of the event log.
fn part(conn: &rusqlite::Connection, after: u64) -> Result<Part, Refusal> {
    let events = event::after(conn, after, None, PART_EVENTS)?;
    let mut part = Part::default();
    let mut add = |message: SentMessage| drop(part.messages.insert(message.id, message));
    // New ids follow each other, so few other messages are between the first and the last.
    let mut accepted = events.iter().filter_map(accepted_message);
    if let Some(first) = accepted.next() {
        let (first, last) = accepted.fold((first, first), |(a, b), id| (a.min(id), b.max(id)));
        traced::each_sent(conn, first..=last, &mut add)?;
    }
    for id in events.iter().filter_map(returned_message) {
        traced::each_sent(conn, id..=id, &mut add)?;
    }
    for id in events.iter().filter_map(ended_turn) {
        if let Some(traced) = readable(traced::of_turn(conn, id))?
            && let Some(turn) = turn::view(conn, id, None)?
        {
            let received = readable(traced::received(conn, id, LINKS_MAX))?;
            part.turns.insert(id, TracedTurn { turn, traced, received });
        }
    }
    Ok(Part { events, ..part })
}
