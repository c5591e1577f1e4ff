//! The file of the index: creating, opening, writing and searching it. All of its SQL is here.
//!
//! A row of `words` has the number of its message or question and no text, only the positions of
//! words. `who` has a word for each sender and recipient, so that a search in one agent's mail is
//! as fast in a large hive. Invariant: an opened file is of this version and answers queries; any
//! other file is deleted and rebuilt.

use std::path::Path;

use rusqlite::{Connection, ErrorCode, OpenFlags, Result, TransactionBehavior};

use super::Position;
use super::mail::Entry;
use super::script::cut;
use crate::store::codec::integer;
use crate::store::file::private;
use crate::store::statement::{all, one, run};

/// The version of the file; a file of another version is rebuilt.
const VERSION: u32 = 2;

/// `automerge`: fewer and larger merges, which halves the cost of adding a message.
const SCHEMA: &str = "CREATE VIRTUAL TABLE words USING fts5(body, who, content='', contentless_delete=1, \
     tokenize='unicode61 remove_diacritics 2'); \
     INSERT INTO words (words, rank) VALUES ('automerge', 8); \
     CREATE TABLE place (row INTEGER PRIMARY KEY CHECK (row = 1), id INTEGER NOT NULL, mark TEXT NOT NULL) STRICT; \
     INSERT INTO place (row, id, mark) VALUES (1, 0, '');";

/// Opens the file; makes it if it is missing or unusable.
pub(super) fn open(path: &Path) -> Result<(Connection, Position)> {
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
    private::remove(path);
    try_open(path)?.ok_or(rusqlite::Error::InvalidQuery)
}

/// Opens the file; `None` if it is of another version.
fn try_open(path: &Path) -> Result<Option<(Connection, Position)>> {
    private::create(path)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
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
    let (id, mark) = one(&conn, "SELECT id, mark FROM place", [])?;
    let position = Position { id, mark, proven: false };
    // Fails if its tables are missing.
    find(&conn, "{who} : \"k1\"", 1, 1)?;
    Ok(Some((conn, position)))
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

/// Adds words and moves the position forward, in one transaction.
pub(super) fn put(conn: &mut Connection, entries: &[Entry], next: &Position) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for Entry { id, text, who } in entries {
        let sql = "INSERT INTO words (rowid, body, who) VALUES (?1, ?2, ?3)";
        run(&*tx, sql, (integer(*id), cut(text), who))?;
    }
    run(&*tx, "UPDATE place SET id = ?1, mark = ?2", (integer(next.id), &next.mark))?;
    tx.commit()
}

/// Returns the numbers of the items that have these words, newest first.
pub(super) fn find(conn: &Connection, words: &str, before: i64, rows: u32) -> Result<Vec<u64>> {
    let sql =
        "SELECT rowid FROM words WHERE words MATCH ?1 AND rowid < ?2 ORDER BY rowid DESC LIMIT ?3";
    all(conn, sql, (words, before, rows))
}

/// Returns the numbers after this one, in order.
pub(super) fn ids_after(conn: &Connection, id: i64, rows: u32) -> Result<Vec<u64>> {
    all(conn, "SELECT rowid FROM words WHERE rowid > ?1 ORDER BY rowid LIMIT ?2", (id, rows))
}

/// Removes rows.
pub(super) fn remove(conn: &mut Connection, ids: &[u64]) -> Result<()> {
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for id in ids {
        run(&*tx, "DELETE FROM words WHERE rowid = ?1", [integer(*id)])?;
    }
    tx.commit()
}
