//! Table `purge`: directories of purged agents that are still to be deleted on this host.
//!
//! Invariant: a row is deleted only when the program that runs the harnesses has reported that the
//! directories are deleted.

use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::codec::integer;
use crate::store::columns::columns;
use crate::store::key::AgentKey;
use crate::store::statement::{Statements, all, change, insert, one};
use crate::store::write::tx::Tx;

columns! {
    /// Directories to delete.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct PurgeRow, const COLUMNS {
        /// The id of the purged agent's row.
        pub id: u64 = "id",
        /// The name that the agent had.
        pub name: String = "name",
        /// When it was purged.
        pub time: WallTime = "time",
    }
}

/// Notes that the directories of a purged agent are to be deleted; returns the id.
pub fn insert(tx: &Tx<'_>, agent: AgentKey, name: &str) -> Result<u64> {
    insert!(tx, into purge { id: agent.0, name: name, time: tx.now.wall.0 })?;
    Ok(u64::try_from(agent.0).unwrap_or_default())
}

/// Returns the directories to delete after an id, oldest first.
pub(crate) fn after(conn: &impl Statements, id: u64, rows: u32) -> Result<Vec<PurgeRow>> {
    let sql = format!("SELECT {COLUMNS} FROM purge WHERE id > ?1 ORDER BY id LIMIT ?2");
    all(conn, &sql, (integer(id), rows))
}

/// Returns whether directories of an earlier agent of this name are still to be deleted.
pub(crate) fn is_pending(conn: &impl Statements, name: &str) -> Result<bool> {
    one(conn, "SELECT EXISTS (SELECT 1 FROM purge WHERE name = ?1)", [name])
}

/// Removes the row of deleted directories; returns whether it existed.
pub fn remove(tx: &Tx<'_>, id: u64) -> Result<bool> {
    Ok(change(tx, "DELETE FROM purge WHERE id = ?1", [integer(id)])? > 0)
}
