//! SQLite's integrity check of the database, made while the broker runs on it.
//!
//! Invariant: nothing is written to it from here.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use rusqlite::{Connection, OpenFlags};

/// Checks the whole database.
pub(crate) async fn check(state: &Path) -> anyhow::Result<()> {
    let path = database(state)?;
    tokio::task::spawn_blocking(move || blocking(&path)).await?
}

/// Returns the path of the hive's database.
pub(crate) fn database(state: &Path) -> anyhow::Result<PathBuf> {
    let path = state.join("hive.db");
    if path.exists() { Ok(path) } else { bail!("there is no database in {}", state.display()) }
}

fn blocking(path: &Path) -> anyhow::Result<()> {
    let database = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .context("the database cannot be opened")?;
    database.busy_timeout(std::time::Duration::from_secs(5))?;
    let told: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0))?;
    if told != "ok" {
        bail!("the database is not sound: {told}");
    }
    let mut broken = database.prepare("PRAGMA foreign_key_check")?;
    let mut rows = broken.query([])?;
    if let Some(row) = rows.next()? {
        let table: String = row.get(0)?;
        bail!("a row of {table} names one that is not there");
    }
    Ok(())
}
