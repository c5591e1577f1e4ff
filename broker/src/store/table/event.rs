//! Table `event`: the log of committed facts.
//!
//! Invariant: events are numbered in commit order without holes, and an event is written in the
//! transaction of its fact.

use hive_core::event::{Event, Kind};
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::time::WallTime;
use rusqlite::{Connection, Result};

use crate::store::codec::{Coded as _, coded, id, id_option, integer, unsigned};
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// A fact to log.
#[derive(Clone, Copy, Debug)]
pub struct Fact<'a> {
    /// The kind of the event.
    pub kind: Kind,
    /// The agent it concerns.
    pub agent: Option<AgentKey>,
    /// The message it concerns.
    pub message: Option<MessageId>,
    /// The turn it concerns.
    pub turn: Option<TurnId>,
    /// A text for people; may be empty.
    pub detail: &'a str,
    /// The question it concerns.
    pub question: Option<QuestionId>,
    /// The reminder it concerns.
    pub reminder: Option<ReminderId>,
}

impl<'a> Fact<'a> {
    /// Returns a fact of this kind about an agent.
    #[must_use]
    pub fn about(kind: Kind, agent: AgentKey) -> Self {
        Self {
            kind,
            agent: Some(agent),
            message: None,
            turn: None,
            detail: "",
            question: None,
            reminder: None,
        }
    }

    /// Returns the fact with the message that it concerns.
    #[must_use]
    pub fn message(self, message: impl Into<Option<MessageId>>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Returns the fact with the turn that it concerns.
    #[must_use]
    pub fn turn(self, turn: impl Into<Option<TurnId>>) -> Self {
        Self { turn: turn.into(), ..self }
    }

    /// Returns the fact with a text for people.
    #[must_use]
    pub fn detail(self, detail: &'a str) -> Self {
        Self { detail, ..self }
    }

    /// Returns the fact with the question that it concerns.
    #[must_use]
    pub fn question(self, question: impl Into<Option<QuestionId>>) -> Self {
        Self { question: question.into(), ..self }
    }

    /// Returns the fact with the reminder that it concerns.
    #[must_use]
    pub fn reminder(self, reminder: impl Into<Option<ReminderId>>) -> Self {
        Self { reminder: reminder.into(), ..self }
    }
}

/// Logs a fact.
pub fn log(tx: &Tx<'_>, fact: Fact<'_>) -> Result<()> {
    tx.prepare_cached(
        "INSERT INTO event (sequence, kind, time, agent_id, message_id, turn_id, detail, question_id, reminder_id) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    )?
    .execute((
        integer(tx.next_event()),
        fact.kind.code(),
        tx.now.wall.0,
        fact.agent.map(|key| key.0),
        fact.message.map(|id| integer(id.get())),
        fact.turn.map(|id| integer(id.get())),
        fact.detail,
        fact.question.map(|id| integer(id.get())),
        fact.reminder.map(|id| integer(id.get())),
    ))
    .map(|_| ())
}

/// Returns events after a number, oldest first; of one agent, or of all.
pub fn after(
    conn: &Connection,
    sequence: u64,
    agent: Option<AgentKey>,
    rows: u32,
) -> Result<Vec<Event>> {
    let filter = if agent.is_some() { "e.agent_id = ?3" } else { "?3 IS NULL" };
    let sql = format!(
        "SELECT e.sequence, e.kind, e.time, coalesce((SELECT coalesce(purged_name, name) FROM agent WHERE id = e.agent_id), ''), e.message_id, e.turn_id, \
         e.detail, e.question_id, e.reminder_id FROM event e WHERE e.sequence > ?1 AND {filter} ORDER BY e.sequence LIMIT ?2"
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
            question_id: id_option(row, 7, QuestionId::new)?,
            reminder_id: id_option(row, 8, ReminderId::new)?,
        })
    })?;
    found.collect()
}

/// Returns the oldest number in the log, 0 if it is empty, and the newest that was ever assigned:
/// pruning does not reduce it.
pub fn span(conn: &Connection) -> Result<(u64, u64)> {
    conn.prepare_cached(
        "SELECT coalesce((SELECT min(sequence) FROM event), 0), max(coalesce((SELECT max(sequence) FROM event), 0), \
         coalesce((SELECT value FROM meta WHERE key = 'last_event'), 0))",
    )?
    .query_row([], |row| Ok((unsigned(row, 0)?, unsigned(row, 1)?)))
}

/// Returns questions that were asked or closed after an event, each once, and the event after which
/// the next read begins; at most `rows` facts are read.
pub fn questions_after(
    conn: &Connection,
    sequence: u64,
    rows: u32,
) -> Result<(Vec<QuestionId>, u64)> {
    let mut select = conn.prepare_cached(
        "SELECT sequence, question_id FROM event WHERE sequence > ?1 AND kind BETWEEN ?2 AND ?3 AND question_id IS NOT NULL \
         ORDER BY sequence LIMIT ?4",
    )?;
    let (first, last) = (Kind::QuestionAsked.code(), Kind::QuestionCancelled.code());
    let found = select.query_map((integer(sequence), first, last, rows), |row| {
        Ok((unsigned(row, 0)?, id(row, 1, QuestionId::new)?))
    })?;
    let found: Vec<(u64, QuestionId)> = found.collect::<Result<_>>()?;
    let full = found.len() == rows as usize;
    let newest = match found.last() {
        Some((newest, _)) if full => *newest,
        Some(_) | None => span(conn)?.1,
    };
    let mut ids: Vec<QuestionId> = found.into_iter().map(|(_, id)| id).collect();
    ids.sort_unstable();
    ids.dedup();
    Ok((ids, newest.max(sequence)))
}
