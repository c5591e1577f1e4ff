//! Table `purge`: directories of purged agents that are still to be deleted on this host.
//!
//! Invariant: a row is deleted only when the program that runs the harnesses has reported that the
//! directories are deleted.

use hive_core::time::WallTime;
use rusqlite::{Connection, Result};

use crate::store::codec::{integer, unsigned};
use crate::store::key::AgentKey;
use crate::store::write::tx::Tx;

/// Directories to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PurgeRow {
    /// The id of the purged agent's row.
    pub id: u64,
    /// The name that the agent had.
    pub name: String,
    /// When it was purged.
    pub time: WallTime,
}

/// Notes that the directories of a purged agent are to be deleted; returns the id.
pub fn insert(tx: &Tx<'_>, agent: AgentKey, name: &str) -> Result<u64> {
    tx.prepare_cached("INSERT INTO purge (id, name, time) VALUES (?1, ?2, ?3)")?.execute((
        agent.0,
        name,
        tx.now.wall.0,
    ))?;
    Ok(u64::try_from(agent.0).unwrap_or_default())
}

/// Returns the directories to delete, oldest first.
pub fn list(conn: &Connection, rows: u32) -> Result<Vec<PurgeRow>> {
    let mut select =
        conn.prepare_cached("SELECT id, name, time FROM purge ORDER BY id LIMIT ?1")?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok(PurgeRow { id: unsigned(row, 0)?, name: row.get(1)?, time: WallTime(row.get(2)?) })
    };
    select.query_map([rows], row)?.collect()
}

/// Returns whether directories of an earlier agent of this name are still to be deleted.
pub fn is_pending(conn: &Connection, name: &str) -> Result<bool> {
    conn.prepare_cached("SELECT EXISTS (SELECT 1 FROM purge WHERE name = ?1)")?
        .query_row([name], |row| row.get(0))
}

/// Removes the row of deleted directories; returns whether it existed.
pub fn remove(tx: &Tx<'_>, id: u64) -> Result<bool> {
    Ok(tx.prepare_cached("DELETE FROM purge WHERE id = ?1")?.execute([integer(id)])? > 0)
}
