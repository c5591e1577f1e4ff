//! The row of an event, and the pages in which events are stored.
//!
//! A page is a JSON array of events, each an array of the values of [`EventRow`] in their order.
//! The events of ordinary mail leave out the values at the end, which they do not have. Invariant:
//! the order never changes, and a new value comes last.

mod plain;

use rusqlite::{Error, Result, Row};
use serde::{Deserialize, Serialize, Serializer};

use crate::store::codec::{integer, parsed};
use crate::store::statement::{Sql, Statements, run};

/// Maximum events of a page, which then has two to four kilobytes.
const PAGE_EVENTS: usize = 64;

/// An event as it is stored, with its kind and its facts as codes.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(in crate::store) struct EventRow {
    pub(in crate::store) sequence: u64,
    pub(in crate::store) kind: i64,
    pub(in crate::store) time: i64,
    pub(in crate::store) agent: Option<i64>,
    pub(in crate::store) message: Option<u64>,
    pub(in crate::store) code: Option<i64>,
    pub(in crate::store) number: Option<i64>,
    #[serde(default)]
    pub(in crate::store) turn: Option<u64>,
    #[serde(default)]
    pub(in crate::store) detail: String,
    #[serde(default)]
    pub(in crate::store) question: Option<u64>,
    #[serde(default)]
    pub(in crate::store) reminder: Option<u64>,
}

impl Serialize for EventRow {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        let row = self;
        let first =
            (row.sequence, row.kind, row.time, row.agent, row.message, row.code, row.number);
        let last = (row.turn, row.detail.as_str(), row.question, row.reminder);
        if last == (None, "", None, None) {
            return first.serialize(to);
        }
        let (sequence, kind, time, agent, message, code, number) = first;
        let (turn, detail, question, reminder) = last;
        (sequence, kind, time, agent, message, code, number, turn, detail, question, reminder)
            .serialize(to)
    }
}

/// Returns the bit of an agent in the agents of a page. Others may have the same.
pub(in crate::store) fn bit_of(agent: i64) -> i64 {
    1 << agent.rem_euclid(62)
}

/// Reads the events of a page in a column.
pub(in crate::store) fn page(row: &Row<'_>, at: usize) -> Result<Vec<EventRow>> {
    parsed(row, at, |page| match plain::events(page) {
        Some(events) => Ok(events),
        None => serde_json::from_str(page),
    })
}

/// Adds events, in the order of their numbers.
pub(in crate::store) fn insert(to: &impl Statements, rows: &[EventRow]) -> Result<()> {
    const SQL: &str = "INSERT INTO event_page (last, first, time, agents, events) \
         VALUES (?1, ?2, ?3, ?4, ?5)";
    for page in rows.chunks(PAGE_EVENTS) {
        let events = serde_json::to_string(page)
            .map_err(|error| Error::ToSqlConversionFailure(Box::new(error)))?;
        let (first, last) = (page.first(), page.last());
        let number = |row: Option<&EventRow>| row.map(|row| integer(row.sequence));
        let time = page.iter().map(|row| row.time).max();
        let agents =
            page.iter().filter_map(|row| row.agent).map(bit_of).fold(0, |all, bit| all | bit);
        run(to, Sql::Direct(SQL), (number(last), number(first), time, agents, events))?;
    }
    Ok(())
}
