//! The row of an event.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Result, params_from_iter};

use crate::store::statement::{Sql, Statements, run};

const COLUMNS: usize = 11;
/// Rows that one statement adds.
const AT_ONCE: usize = 8;

const INTO: &str = "INSERT INTO event (sequence, kind, time, agent_id, message_id, turn_id, detail, question_id, reminder_id, code, number) VALUES ";
const ROW: &str = "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

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

impl EventRow {
    fn values(&self) -> [ToSqlOutput<'_>; COLUMNS] {
        let number = |number: i64| ToSqlOutput::Owned(Value::Integer(number));
        let maybe = |value: Option<i64>| value.map_or(ToSqlOutput::Owned(Value::Null), number);
        [
            number(self.sequence),
            number(self.kind),
            number(self.time),
            maybe(self.agent),
            maybe(self.message),
            maybe(self.turn),
            ToSqlOutput::Borrowed(ValueRef::Text(self.detail.as_bytes())),
            maybe(self.question),
            maybe(self.reminder),
            maybe(self.code),
            maybe(self.number),
        ]
    }
}

/// Adds events.
pub(in crate::store) fn insert(to: &impl Statements, rows: &[EventRow]) -> Result<()> {
    use crate::store::columns::sql;
    const ONE: &str = sql!(INTO, ROW);
    const MANY: &str = sql!(
        INTO, ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW, ", ", ROW
    );
    let (many, rest) = rows.as_chunks::<AT_ONCE>();
    for rows in many {
        run(to, Sql::Direct(MANY), params_from_iter(rows.iter().flat_map(EventRow::values)))?;
    }
    for row in rest {
        run(to, Sql::Direct(ONE), params_from_iter(row.values()))?;
    }
    Ok(())
}
