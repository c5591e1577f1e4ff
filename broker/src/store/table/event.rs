//! Table `event_page`: the log of committed facts, several in a row.
//!
//! Invariant: events are numbered in commit order without holes, and an event is written in the
//! transaction of its fact, at the end of the batch.

mod facts;
mod words;

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use hive_core::event::{Event, Facts, Kind};
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId};
use hive_core::time::WallTime;
use rusqlite::types::Type;
use rusqlite::{Error, Result};

use self::facts::Stored;
use self::words::words;
use crate::store::codec::{Coded as _, integer};
use crate::store::columns::{name_of, sql};
use crate::store::key::AgentKey;
use crate::store::row;
use crate::store::row::event::{EventRow, bit_of};
use crate::store::statement::{Sql, Statements, one};
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
        sequence: tx.next_event(),
        kind: fact.facts.kind().code(),
        time: tx.now.wall.0,
        agent: fact.agent.map(|key| key.0),
        message: fact.message.map(MessageId::get),
        turn: fact.turn.map(TurnId::get),
        detail: fact.detail.to_owned(),
        question: fact.question.map(QuestionId::get),
        reminder: fact.reminder.map(ReminderId::get),
        code,
        number,
    });
}

/// Returns events after a number, oldest first; of one agent, or of all.
pub(crate) fn after(
    conn: &impl Statements,
    sequence: u64,
    agent: Option<AgentKey>,
    rows: u32,
) -> Result<Vec<Event>> {
    let mut found = Vec::new();
    each_after(conn, sequence, agent, |row| {
        if agent.is_none_or(|agent| row.agent == Some(agent.0)) {
            found.push(row);
        }
        found.len() < rows as usize
    })?;
    let mut names = BTreeMap::new();
    found.into_iter().map(|row| event(conn, row, &mut names)).collect()
}

/// Passes the events after a number to `work`, oldest first, until it returns false; of an agent,
/// those of the pages that may have one of it.
fn each_after(
    conn: &impl Statements,
    sequence: u64,
    agent: Option<AgentKey>,
    mut work: impl FnMut(EventRow) -> bool,
) -> Result<()> {
    const SQL: &str = "SELECT events FROM event_page WHERE last > ?1 AND (?2 IS NULL OR agents & ?2) ORDER BY last";
    conn.prepared(Sql::Fixed(SQL), |select| {
        let mut pages = select.query((integer(sequence), agent.map(|agent| bit_of(agent.0))))?;
        while let Some(page) = pages.next()? {
            let mut events =
                row::event::page(page, 0)?.into_iter().filter(|row| row.sequence > sequence);
            if !events.all(&mut work) {
                break;
            }
        }
        Ok(())
    })
}

/// Returns an event as a reader sees it. `names` has the names of agents that were read before.
fn event(
    conn: &impl Statements,
    row: EventRow,
    names: &mut BTreeMap<i64, String>,
) -> Result<Event> {
    const NAME: &str = sql!("SELECT coalesce(", name_of!("?1"), ", '')");
    let corrupt = |wanted| corrupt(row.sequence, wanted);
    let kind = Kind::decode(row.kind).ok_or_else(|| corrupt("kind"))?;
    let stored = Stored { code: row.code, number: row.number };
    let facts = facts::facts(kind, stored).ok_or_else(|| corrupt("facts of its kind"))?;
    let agent = match row.agent {
        None => String::new(),
        Some(agent) => match names.entry(agent) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => new.insert(one(conn, Sql::Direct(NAME), [agent])?).clone(),
        },
    };
    let detail = if row.detail.is_empty() { words(facts).unwrap_or_default() } else { row.detail };
    Ok(Event {
        sequence: row.sequence,
        facts,
        time: WallTime(row.time),
        agent,
        message_id: id(row.sequence, row.message, MessageId::new)?,
        turn_id: id(row.sequence, row.turn, TurnId::new)?,
        detail,
        question_id: id(row.sequence, row.question, QuestionId::new)?,
        reminder_id: id(row.sequence, row.reminder, ReminderId::new)?,
    })
}

fn id<T>(event: u64, number: Option<u64>, new: fn(u64) -> Option<T>) -> Result<Option<T>> {
    number.map(|number| new(number).ok_or_else(|| corrupt(event, "id"))).transpose()
}

/// An event with a value that no broker has stored.
#[derive(Debug, thiserror::Error)]
#[error("event {sequence} has no valid {wanted}")]
struct Corrupt {
    sequence: u64,
    wanted: &'static str,
}

fn corrupt(sequence: u64, wanted: &'static str) -> Error {
    Error::FromSqlConversionFailure(0, Type::Text, Box::new(Corrupt { sequence, wanted }))
}

/// Returns the oldest number in the log, 0 if it is empty, and the newest that was ever assigned:
/// pruning does not reduce it.
pub(crate) fn span(conn: &impl Statements) -> Result<(u64, u64)> {
    let sql = "SELECT coalesce((SELECT first FROM event_page ORDER BY last LIMIT 1), 0), \
         max(coalesce((SELECT max(last) FROM event_page), 0), \
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
    let (first, last) = (Kind::QuestionAsked.code(), Kind::QuestionCancelled.code());
    let mut found = Vec::new();
    each_after(conn, sequence, None, |row| {
        if let Some(question) = row.question.filter(|_| (first..=last).contains(&row.kind)) {
            found.push((row.sequence, question));
        }
        found.len() < rows as usize
    })?;
    let newest = match found.last() {
        Some((newest, _)) if found.len() == rows as usize => *newest,
        Some(_) | None => span(conn)?.1,
    };
    let question = |(event, number)| id(event, Some(number), QuestionId::new);
    let mut ids: Vec<QuestionId> =
        found.into_iter().filter_map(|found| question(found).transpose()).collect::<Result<_>>()?;
    ids.sort_unstable();
    ids.dedup();
    Ok((ids, newest.max(sequence)))
}
