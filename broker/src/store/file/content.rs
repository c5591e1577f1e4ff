//! What a database contains: a few numbers for a person, and all rows for a comparison.
//!
//! Invariant: it only reads.

use rusqlite::{Connection, Result};
use serde::Serialize;

use crate::store::file::migrate::SCHEMA_VERSION;

/// How much a database contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Content {
    /// Agents that are not retired.
    pub agents: u64,
    /// Messages.
    pub messages: u64,
    /// Deliveries that are not settled, dead letters included.
    pub unsettled: u64,
    /// Open questions.
    pub questions: u64,
    /// Pending reminders.
    pub reminders: u64,
}

impl Content {
    /// Reads the numbers; `None` if another version wrote the database, whose tables differ.
    pub(in crate::store) fn read(conn: &Connection) -> Result<Option<Self>> {
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        if version != SCHEMA_VERSION {
            return Ok(None);
        }
        let count = |from: &str| {
            let sql = format!("SELECT count(*) FROM {from}");
            conn.query_row(&sql, [], |row| row.get::<_, i64>(0)).map(i64::unsigned_abs)
        };
        Ok(Some(Self {
            agents: count("agent WHERE id <> 1 AND retired = 0")?,
            messages: count("message")?,
            unsettled: count("open_delivery")?,
            questions: count("question WHERE state = 1")?,
            reminders: count("reminder WHERE state = 1")?,
        }))
    }
}

/// Returns the number of rows of each table, by its name.
pub(in crate::store) fn rows(conn: &Connection) -> Result<Vec<(String, u64)>> {
    let mut select =
        conn.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")?;
    let names = select.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>>>()?;
    let count = |name: String| {
        let sql = format!("SELECT count(*) FROM \"{name}\"");
        let rows = conn.query_row(&sql, [], |row| row.get::<_, i64>(0))?;
        Ok((name, rows.unsigned_abs()))
    };
    names.into_iter().map(count).collect()
}
