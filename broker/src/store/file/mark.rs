//! The mark of a backup, in table `meta`.
//!
//! Invariant: a copy that the broker made has a mark until the first commit on it; a database that
//! a broker has opened has none.

use hive_core::time::WallTime;
use rusqlite::{Connection, Result};

use crate::store::statement::{Statements, first, one, run};

/// When the backup was made.
const BACKUP_TIME: &str = "backup_time";
/// Whether the numbers of the database that a marked one replaces are in `last_id` and
/// `last_event`.
const NUMBERS_KNOWN: &str = "numbers_known";

const PUT: &str = "INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)";
const REMOVE: &str = "DELETE FROM meta WHERE key = ?1";

/// Returns when the backup was made that this database is, if no broker has begun its log yet.
pub(in crate::store) fn time(conn: &impl Statements) -> Result<Option<WallTime>> {
    first(conn, "SELECT value FROM meta WHERE key = ?1", [BACKUP_TIME])
}

/// Marks a copy. Nothing is known of a database that it may replace.
pub(in crate::store) fn set(copy: &Connection, time: WallTime) -> Result<()> {
    run(copy, PUT, (BACKUP_TIME, time.0))?;
    run(copy, REMOVE, [NUMBERS_KNOWN])
}

/// Notes that the numbers of the replaced database are stored in a marked copy.
pub(in crate::store) fn numbers_are_known(copy: &Connection) -> Result<()> {
    run(copy, PUT, (NUMBERS_KNOWN, 1))
}

/// Returns whether a marked database may have replaced one with higher numbers.
pub(in crate::store) fn numbers_are_behind(conn: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM meta WHERE key = ?1) AND NOT EXISTS (SELECT 1 FROM meta WHERE key = ?2)";
    one(conn, sql, (BACKUP_TIME, NUMBERS_KNOWN))
}

/// Removes the mark.
pub(in crate::store) fn remove(conn: &impl Statements) -> Result<()> {
    run(conn, REMOVE, [BACKUP_TIME])?;
    run(conn, REMOVE, [NUMBERS_KNOWN])
}
