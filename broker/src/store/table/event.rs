//! Table `event`: the log of committed facts.
//!
//! Invariant: events are numbered in commit order without holes, and an event is written in the
//! transaction of its fact, at the end of the batch.

mod facts;
mod words;

use hive_core::event::{Event, Facts, Kind};
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::time::WallTime;
use rusqlite::Result;

use self::facts::Stored;
use self::words::words;
use crate::store::codec::{Coded as _, integer};
use crate::store::columns::{columns, name_of};
use crate::store::key::AgentKey;
use crate::store::row::event::EventRow;
use crate::store::statement::{Statements, all, one};
use crate::store::write::tx::Tx;

/// A fact to log, and what it concerns.
#[derive(Clone, Copy, Debug)]
pub struct Fact<'a> {
    pub facts: Facts,
    pub agent: Option<AgentKey>,
    pub message: Option<MessageId>,
    pub turn: Option<TurnId>,
    /// A text for people; may be empty, and is for facts that say all of it.
    pub detail: &'a str,
    pub question: Option<QuestionId>,
    pub reminder: Option<ReminderId>,
}

impl<'a> Fact<'a> {
    /// Returns a fact of this kind about an agent.
    #[must_use]
    pub fn about(facts: impl Into<Facts>, agent: AgentKey) -> Self {
        Self { agent: Some(agent), ..Self::of_hive(facts.into()) }
    }

    /// Returns a fact of this kind about the hive as a whole.
    #[must_use]
    pub fn of_hive(facts: Facts) -> Self {
        Self {
            facts,
            agent: None,
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
pub fn log(tx: &Tx<'_>, fact: Fact<'_>) {
    let Stored { code, number } = fact.facts.into();
    debug_assert!(fact.detail.is_empty() || words(fact.facts).is_none(), "{fact:?}");
    tx.cache().fresh.add_event(EventRow {
        sequence: integer(tx.next_event()),
        kind: fact.facts.kind().code(),
        time: tx.now.wall.0,
        agent: fact.agent.map(|key| key.0),
        message: fact.message.map(|id| integer(id.get())),
        turn: fact.turn.map(|id| integer(id.get())),
        detail: fact.detail.to_owned(),
        question: fact.question.map(|id| integer(id.get())),
        reminder: fact.reminder.map(|id| integer(id.get())),
        code,
        number,
    });
}

columns! {
    const COLUMNS: Event {
        sequence: u64 = "e.sequence",
        facts: Facts = "e.kind, e.code, e.number",
        time: WallTime = "e.time",
        agent: String = concat!("coalesce(", name_of!("e.agent_id"), ", '')"),
        message_id: Option<MessageId> = "e.message_id",
        turn_id: Option<TurnId> = "e.turn_id",
        detail: String = "e.detail",
        question_id: Option<QuestionId> = "e.question_id",
        reminder_id: Option<ReminderId> = "e.reminder_id",
    }
}

/// Returns events after a number, oldest first; of one agent, or of all.
pub(crate) fn after(
    conn: &impl Statements,
    sequence: u64,
    agent: Option<AgentKey>,
    rows: u32,
) -> Result<Vec<Event>> {
    let filter = if agent.is_some() { "e.agent_id = ?3" } else { "?3 IS NULL" };
    let sql = format!(
        "SELECT {COLUMNS} FROM event e WHERE e.sequence > ?1 AND {filter} ORDER BY e.sequence LIMIT ?2"
    );
    let mut events: Vec<Event> =
        all(conn, &sql, (integer(sequence), rows, agent.map(|key| key.0)))?;
    for event in events.iter_mut().filter(|event| event.detail.is_empty()) {
        event.detail = words(event.facts).unwrap_or_default();
    }
    Ok(events)
}

/// Returns the oldest number in the log, 0 if it is empty, and the newest that was ever assigned:
/// pruning does not reduce it.
pub(crate) fn span(conn: &impl Statements) -> Result<(u64, u64)> {
    let sql = "SELECT coalesce((SELECT min(sequence) FROM event), 0), max(coalesce((SELECT max(sequence) FROM event), 0), \
         coalesce((SELECT value FROM meta WHERE key = 'last_event'), 0))";
    one(conn, sql, [])
}

/// Returns questions that were asked or closed after an event, each once, and the event after which
/// the next read begins; at most `rows` facts are read.
pub(crate) fn questions_after(
    conn: &impl Statements,
    sequence: u64,
    rows: u32,
) -> Result<(Vec<QuestionId>, u64)> {
    let sql = "SELECT sequence, question_id FROM event WHERE sequence > ?1 AND kind BETWEEN ?2 AND ?3 AND question_id IS NOT NULL \
         ORDER BY sequence LIMIT ?4";
    let (first, last) = (Kind::QuestionAsked.code(), Kind::QuestionCancelled.code());
    let found: Vec<(u64, QuestionId)> = all(conn, sql, (integer(sequence), first, last, rows))?;
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
