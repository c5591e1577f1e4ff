//! The identity of the event log, in table `meta`.
//!
//! Sequences mean something only within one log. Invariant: a database that the broker has opened
//! has an identity, and no mark of a backup.

use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::file::mark;
use crate::store::statement::{Statements, first, run};
use crate::store::write::tx::Tx;

/// Returns the identity of the log, if it has one yet.
pub(crate) fn id(conn: &impl Statements) -> Result<Option<String>> {
    first(conn, "SELECT value FROM meta WHERE key = 'log_id'", [])
}

/// Returns when the backup was made that this database is, if no broker has begun its log yet.
pub(crate) fn backup_time(conn: &impl Statements) -> Result<Option<WallTime>> {
    mark::time(conn)
}

/// Begins a log: gives it an identity, keeps its numbers, and removes the mark.
pub fn begin(tx: &Tx<'_>, id: &str) -> Result<()> {
    run(tx, "INSERT OR REPLACE INTO meta (key, value) VALUES ('log_id', ?1)", [id])?;
    mark::remove(tx)?;
    tx.keep_counters()
}
