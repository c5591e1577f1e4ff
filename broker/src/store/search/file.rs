//! The file of the index: creating, opening, writing and searching it. All of its SQL is here.
//!
//! A row of `words` has the number of its message or question and no text, only the positions of
//! words. `who` has a word for each sender and recipient, so that a search in one agent's mail is
//! as fast in a large hive. Invariant: an opened file is of this version and answers queries; any
//! other file is deleted and rebuilt.

use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags, Result, TransactionBehavior};

use super::Place;
use super::mail::Entry;
use super::script::cut;
use crate::store::codec::{integer, unsigned};

/// The version of the file; a file of another version is rebuilt.
const VERSION: u32 = 2;

/// `automerge`: fewer and larger merges, which halves the cost of adding a message.
const SCHEMA: &str = "CREATE VIRTUAL TABLE words USING fts5(body, who, content='', contentless_delete=1, \
     tokenize='unicode61 remove_diacritics 2'); \
     INSERT INTO words (words, rank) VALUES ('automerge', 8); \
     CREATE TABLE place (row INTEGER PRIMARY KEY CHECK (row = 1), id INTEGER NOT NULL, mark TEXT NOT NULL) STRICT; \
     INSERT INTO place (row, id, mark) VALUES (1, 0, '');";

/// Opens the file; makes it if it is missing or unusable.
pub(super) fn open(path: &Path) -> Result<(Connection, Place)> {
    match try_open(path) {
        Ok(Some(opened)) => return Ok(opened),
        Ok(None) => {
            tracing::info!("the search index is of another version and is made anew from the mail");
        }
        Err(error) if is_of_host(&error) => return Err(error),
        Err(error) => {
            tracing::warn!(%error, "the search index cannot be read and is made anew from the mail");
        }
    }
    remove_files(path);
    try_open(path)?.ok_or(rusqlite::Error::InvalidQuery)
}

/// Opens the file; `None` if it is of another version.
fn try_open(path: &Path) -> Result<Option<(Connection, Place)>> {
    // SQLite gives the log and the shared memory the mode of the database, so the file is made
    // first, private.
    let made =
        std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(path);
    made.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let mut conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    // A commit does not wait for the disk: after a power cut the file is intact but slightly out of
    // date, and the mail is complete.
    conn.pragma_update(None, "synchronous", "normal")?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "cache_size", -2048)?;
    let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
    let tables: u32 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if (version, tables) == (0, 0) {
        let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
        tx.execute_batch(SCHEMA)?;
        tx.pragma_update(None, "user_version", VERSION)?;
        tx.commit()?;
    } else if version != VERSION {
        return Ok(None);
    }
    let place = conn.query_row("SELECT id, mark FROM place", [], |row| {
        Ok(Place { id: unsigned(row, 0)?, mark: row.get(1)?, proven: false })
    })?;
    // Fails if its tables are missing.
    find(&conn, "{who} : \"k1\"", 1, 1)?;
    Ok(Some((conn, place)))
}

/// Returns a connection that only reads, after one successful read.
pub(super) fn reader(path: &Path) -> Result<Connection> {
    let conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.pragma_update(None, "query_only", "on")?;
    conn.pragma_update(None, "cache_size", -2048)?;
    conn.query_row("SELECT id FROM place", [], |_| Ok(()))?;
    Ok(conn)
}

/// Removes the file and the files that SQLite keeps beside it.
pub(super) fn remove_files(path: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // A missing file is as good as removed; a real error shows when it is opened.
        drop(std::fs::remove_file(name));
    }
}

/// Returns whether the error is the host's: another file would be no better.
pub(super) fn is_of_host(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error_code();
    // The file could not be made.
    matches!(error, rusqlite::Error::ToSqlConversionFailure(_))
        || matches!(
            code,
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly)
        )
        || matches!(
            code,
            Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure | ErrorCode::OutOfMemory)
        )
        || matches!(code, Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns whether the error is damage of the file itself, not of a statement.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Adds words and moves the place forward, in one transaction.
pub(super) fn put(conn: &mut Connection, entries: &[Entry], next: &Place) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut insert =
            tx.prepare_cached("INSERT INTO words (rowid, body, who) VALUES (?1, ?2, ?3)")?;
        for Entry { id, text, who } in entries {
            insert.execute((integer(*id), cut(text), who))?;
        }
        tx.prepare_cached("UPDATE place SET id = ?1, mark = ?2")?
            .execute((integer(next.id), &next.mark))?;
    }
    tx.commit()
}

/// Returns the numbers of the items that have these words, newest first.
pub(super) fn find(conn: &Connection, words: &str, before: i64, rows: u32) -> Result<Vec<u64>> {
    conn.prepare_cached(
        "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3",
    )?
    .query_map((words, before, rows), |row| unsigned(row, 0))?
    .collect()
}

/// Returns the numbers after this one, in order.
pub(super) fn ids_after(conn: &Connection, id: i64, rows: u32) -> Result<Vec<u64>> {
    conn.prepare_cached("SELECT rowid FROM words WHERE rowid > ?1 ORDER BY rowid LIMIT ?2")?
        .query_map((id, rows), |row| unsigned(row, 0))?
        .collect()
}

/// Removes rows.
pub(super) fn remove(conn: &mut Connection, ids: &[u64]) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    {
        let mut delete = tx.prepare_cached("DELETE FROM words WHERE rowid = ?1")?;
        for id in ids {
            delete.execute([integer(*id)])?;
        }
    }
    tx.commit()
}
