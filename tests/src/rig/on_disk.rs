//! The database from outside: every row of every table, to tell whether a refusal changed anything.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rusqlite::OpenFlags;

use super::Rig;

/// Every row of every table, as `column=value;` in a row, and each event in place of the pages that
/// have them; without `meta`, which the broker keeps for itself and writes when it likes.
pub type Tables = BTreeMap<String, Vec<String>>;

/// Reads a database of a broker, which may be running.
pub fn read(path: &Path) -> Tables {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let database = rusqlite::Connection::open_with_flags(path, flags).expect("it opens");
    let snapshot = database.unchecked_transaction().expect("one state of it");
    let mut names = snapshot
        .prepare(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('meta', 'event_page') \
             OR name = 'event'",
        )
        .expect("a query");
    let names: Vec<String> = names
        .query_map([], |row| row.get(0))
        .expect("tables")
        .collect::<Result<_, _>>()
        .expect("names");
    assert!(names.len() > 5, "these are no tables of a broker: {names:?}");
    let rows = |name: &String| {
        // Which page an event is in is not a fact about it.
        let columns = if name == "event" {
            "sequence, kind, time, agent_id, message_id, code, number, turn_id, detail, question_id, reminder_id"
        } else {
            "*"
        };
        let sql = format!("SELECT {columns} FROM \"{name}\"");
        let mut query = snapshot.prepare(&sql).expect("a query");
        let columns: Vec<String> = query.column_names().map(str::to_owned).collect();
        let rows = query.query_map([], |row| {
            let value = |(place, column)| {
                Ok(format!("{column}={:?};", row.get::<_, rusqlite::types::Value>(place)?))
            };
            columns.iter().enumerate().map(value).collect::<Result<String, _>>()
        });
        rows.expect("rows").collect::<Result<Vec<String>, _>>().expect("rows")
    };
    names.iter().map(|name| (name.clone(), rows(name))).collect()
}

/// The rows that came and went.
pub fn changes(before: &Tables, after: &Tables) -> Vec<String> {
    let rows = |tables: &Tables| -> BTreeSet<String> {
        tables
            .iter()
            .flat_map(|(table, rows)| rows.iter().map(move |row| format!("{table}: {row}")))
            .collect()
    };
    let (before, after) = (rows(before), rows(after));
    let gone = before.difference(&after).map(|row| format!("- {row}"));
    gone.chain(after.difference(&before).map(|row| format!("+ {row}"))).collect()
}

impl Rig {
    /// Reads all tables of the database.
    pub fn on_disk(&self) -> Tables {
        read(&self.path("state/hive.db"))
    }

    /// Asserts that nothing in the database has changed.
    pub fn unchanged(&self, before: &Tables, by: &str) {
        let changes = changes(before, &self.on_disk());
        assert!(changes.is_empty(), "{by} changed something: {changes:#?}");
    }
}
