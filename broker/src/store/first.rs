//! The first rows of a new database, written while it is created.
//!
//! Invariant: rows that are refused leave nothing behind, and the database is whole without them.

use std::fmt::Display;

use hive_core::time::Now;
use rusqlite::{Connection, Result};

use super::write::cache::Cache;
use super::write::tx::{Counters, Tx};

/// Writes the first rows in one transaction, unless they are refused.
pub(super) fn write<E: Display>(
    conn: &Connection,
    now: Now,
    rows: impl FnOnce(&Tx<'_>) -> std::result::Result<(), E>,
) -> Result<()> {
    let (counters, cache) = (Counters::default(), Cache::default());
    let tx = Tx::new(conn, &counters, &cache, now, false);
    conn.execute_batch("BEGIN IMMEDIATE")?;
    if let Err(refusal) = rows(&tx) {
        tracing::debug!(%refusal, "a new database begins without its first rows");
        // SQLite has ended the transaction by itself if the disk is full.
        return if conn.is_autocommit() { Ok(()) } else { conn.execute_batch("ROLLBACK") };
    }
    // There is no use for the effects: no part of the broker has begun.
    tx.write_back()?;
    // The first step of the retention then has nothing to write.
    tx.keep_counters()?;
    conn.execute_batch("COMMIT")
}
