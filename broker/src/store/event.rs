//! Table `event`: the log of committed facts.
//!
//! Invariant: events are numbered in commit order without holes, and an event is written in the transaction of its fact.

use hive_core::event::{Event, Kind};
use hive_core::id::{MessageId, TurnId};
use hive_core::time::WallTime;
use rusqlite::{Connection, Result};

use super::codec::{Coded as _, coded, id_option, integer, unsigned};
use super::{AgentKey, Tx};

/// A fact to be logged.
#[derive(Clone, Copy, Debug)]
pub struct Fact<'a> {
    /// What happened.
    pub kind: Kind,
    /// The agent it concerns.
    pub agent: Option<AgentKey>,
    /// The message it concerns.
    pub message: Option<MessageId>,
    /// The turn it concerns.
    pub turn: Option<TurnId>,
    /// More, for a person.
    pub detail: &'a str,
}

impl Fact<'_> {
    /// A fact of this kind about an agent.
    #[must_use]
    pub fn about(kind: Kind, agent: AgentKey) -> Self {
        Self { kind, agent: Some(agent), message: None, turn: None, detail: "" }
    }
}

/// Logs a fact.
pub fn log(tx: &Tx<'_>, fact: Fact<'_>) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO event (sequence, kind, time, agent_id, message_id, turn_id, detail) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?
    .execute((
        integer(tx.next_event()),
        fact.kind.code(),
        tx.now.wall.0,
        fact.agent.map(|key| key.0),
        fact.message.map(|id| integer(id.get())),
        fact.turn.map(|id| integer(id.get())),
        fact.detail,
    ))
    .map(|_| ())
}

/// Events after a number, oldest first; of one agent, or of all.
pub fn after(conn: &Connection, sequence: u64, agent: Option<AgentKey>, rows: u32) -> Result<Vec<Event>> {
    let filter = if agent.is_some() { "e.agent_id = ?3" } else { "?3 IS NULL" };
    let sql = format!(
        "SELECT e.sequence, e.kind, e.time, coalesce((SELECT name FROM agent WHERE id = e.agent_id), ''), e.message_id, e.turn_id, \
         e.detail FROM event e WHERE e.sequence > ?1 AND {filter} ORDER BY e.sequence LIMIT ?2"
    );
    let mut select = conn.prepare_cached(&sql)?;
    let found = select.query_map((integer(sequence), rows, agent.map(|key| key.0)), |row| {
        Ok(Event {
            sequence: unsigned(row, 0)?,
            kind: coded(row, 1)?,
            time: WallTime(row.get(2)?),
            agent: row.get(3)?,
            message_id: id_option(row, 4, MessageId::new)?,
            turn_id: id_option(row, 5, TurnId::new)?,
            detail: row.get(6)?,
        })
    })?;
    found.collect()
}

/// The oldest number in the log, 0 when it is empty, and the newest that was ever given out: pruning does not turn it back.
pub fn span(conn: &Connection) -> Result<(u64, u64)> {
    conn.prepare_cached(
        "SELECT coalesce((SELECT min(sequence) FROM event), 0), max(coalesce((SELECT max(sequence) FROM event), 0), \
         coalesce((SELECT value FROM meta WHERE key = 'last_event'), 0))",
    )?
    .query_row([], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))
}
