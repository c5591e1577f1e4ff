//! The row of an event.

use rusqlite::Result;

use crate::store::statement::{Statements, insert_all};

/// An event to write, with its kind and its facts as codes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::store) struct EventRow {
    pub(in crate::store) sequence: i64,
    pub(in crate::store) kind: i64,
    pub(in crate::store) time: i64,
    pub(in crate::store) agent: Option<i64>,
    pub(in crate::store) message: Option<i64>,
    pub(in crate::store) turn: Option<i64>,
    pub(in crate::store) detail: String,
    pub(in crate::store) question: Option<i64>,
    pub(in crate::store) reminder: Option<i64>,
    pub(in crate::store) code: Option<i64>,
    pub(in crate::store) number: Option<i64>,
}

/// Adds events.
pub(in crate::store) fn insert(to: &impl Statements, rows: &[EventRow]) -> Result<()> {
    insert_all!(to, rows, |row: EventRow| into event {
        sequence: row.sequence,
        kind: row.kind,
        time: row.time,
        agent_id: row.agent,
        message_id: row.message,
        turn_id: row.turn,
        detail: row.detail.as_str(),
        question_id: row.question,
        reminder_id: row.reminder,
        code: row.code,
        number: row.number,
    })
}
