//! The audit: what must be true of a database at the end of any run.
//!
//! The audit reads the file with its own statements, so that it shares no error with the store.
//! Invariant: it finds nothing in a sound database.

use std::path::Path;

use hive_broker::audit::broken_rules;
use rusqlite::{Connection, OpenFlags};

/// Returns the problems of this database, a sentence each.
pub(crate) fn audit(path: &Path) -> Vec<String> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    match Connection::open_with_flags(path, flags).and_then(|conn| check(&conn)) {
        Ok(problems) => problems,
        Err(error) => vec![format!("the database cannot be audited: {error}")],
    }
}

fn check(conn: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut problems = broken_rules(conn)?;
    let sound: String = conn.query_row("PRAGMA integrity_check(3)", [], |row| row.get(0))?;
    if sound != "ok" {
        problems.push(format!("Audit: the file is damaged: {sound}"));
    }
    let dangling = conn.prepare("PRAGMA foreign_key_check")?.query_map([], |_| Ok(()))?.count();
    if dangling > 0 {
        problems.push(format!("Audit: {dangling} rows refer to others that are not there"));
    }
    Ok(problems)
}
