//! Lines of live turns: a database file of their own, with relaxed syncing and a limit on its size.
//!
//! They are not mail. A crash may lose the last seconds of them, so they never delay a send.
//! Invariant: no settlement needs them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hive_core::id::TurnId;
use hive_core::time::WallTime;
use rusqlite::{Connection, Result};

use crate::store::codec::integer;
use crate::store::columns::{Columns as _, columns};
use crate::store::file::open::{OpenError, hint};
use crate::store::file::private;
use crate::store::statement::one;

columns! {
    /// One line of a turn.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Line, const COLUMNS {
        /// The number of the line, from 1 within the turn.
        pub sequence: u64 = "sequence",
        /// The output that it came from; the number of the wire.
        pub stream: i32 = "stream",
        /// The text of the line.
        pub text: String = "text",
        /// When the harness read it.
        pub time: WallTime = "time",
    }
}

/// The database of lines.
#[derive(Debug)]
pub struct TurnEvents {
    path: PathBuf,
    conn: Mutex<Option<Connection>>,
}

impl TurnEvents {
    /// Returns the database in `dir`, which its first use opens. A damaged file is then replaced by
    /// an empty one, because nothing depends on it. A file that the disk keeps from being opened is
    /// not damaged.
    #[must_use]
    pub fn closed(dir: &Path) -> Self {
        Self { path: dir.join("turn-events.db"), conn: Mutex::default() }
    }

    /// Opens the database in `dir`.
    pub fn open(dir: &Path) -> std::result::Result<Self, OpenError> {
        let lines = Self::closed(dir);
        let failed =
            |source| OpenError::Sqlite { hint: hint(&source), path: lines.path.clone(), source };
        lines.with(|_| Ok(())).map_err(failed)?;
        Ok(lines)
    }

    /// Works with the open database.
    fn with<T>(&self, work: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let mut conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *conn {
            Some(conn) => work(conn),
            none => work(none.insert(open(&self.path)?)),
        }
    }

    /// Adds lines; existing ones stay as they are.
    pub fn append(&self, turn: TurnId, lines: &[Line]) -> Result<usize> {
        self.with(|conn| {
            let tx = conn.transaction()?;
            let mut kept = 0;
            for line in lines {
                kept += tx
                    .prepare_cached("INSERT OR IGNORE INTO line (turn_id, sequence, stream, text, time) VALUES (?1, ?2, ?3, ?4, ?5)")?
                    .execute((integer(turn.get()), integer(line.sequence), line.stream, &line.text, line.time.0))?;
            }
            tx.commit()?;
            Ok(kept)
        })
    }

    /// Returns lines after a number, in order, at most `rows` and `bytes` (but at least one).
    pub fn after(&self, turn: TurnId, sequence: u64, rows: u32, bytes: usize) -> Result<Vec<Line>> {
        let sql = format!(
            "SELECT {COLUMNS} FROM line WHERE turn_id = ?1 AND sequence > ?2 ORDER BY sequence LIMIT ?3"
        );
        self.with(|conn| {
            let mut select = conn.prepare_cached(&sql)?;
            let values = (integer(turn.get()), integer(sequence), rows);
            let found = select.query_map(values, |row| Line::read(row, 0))?;
            let mut lines = Vec::new();
            let mut total = 0;
            for line in found {
                let line = line?;
                total += line.text.len();
                if total > bytes && !lines.is_empty() {
                    break;
                }
                lines.push(line);
            }
            Ok(lines)
        })
    }

    /// Deletes the lines of all turns after this one.
    pub fn forget_after(&self, turn: Option<TurnId>) -> Result<usize> {
        let last = turn.map_or(0, |turn| integer(turn.get()));
        self.with(|conn| conn.execute("DELETE FROM line WHERE turn_id > ?1", [last]))
    }

    /// Deletes lines from before a time, and the oldest beyond the limit in bytes; at most `rows`
    /// at once. Returns the number of deleted lines. A file that is not in use is closed again: a
    /// broker without turns needs no memory for it.
    pub fn prune(&self, before: WallTime, bytes_max: u64, rows: u32) -> Result<usize> {
        let conn = self.conn.lock().unwrap_or_else(PoisonError::into_inner);
        match &*conn {
            Some(conn) => prune(conn, before, bytes_max, rows),
            None => prune(&open(&self.path)?, before, bytes_max, rows),
        }
    }
}

fn prune(conn: &Connection, before: WallTime, bytes_max: u64, rows: u32) -> Result<usize> {
    let mut gone = conn.execute(
        "DELETE FROM line WHERE (turn_id, sequence) IN (SELECT turn_id, sequence FROM line WHERE time < ?1 LIMIT ?2)",
        (before.0, rows),
    )?;
    let sql = "SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
    let used: u64 = one(conn, sql, [])?;
    if used > bytes_max {
        gone += conn.execute(
            "DELETE FROM line WHERE (turn_id, sequence) IN (SELECT turn_id, sequence FROM line ORDER BY turn_id, sequence LIMIT ?1)",
            [rows],
        )?;
    }
    Ok(gone)
}

/// Who may have the file open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Locking {
    /// Only this connection, which needs no shared memory for the index of the log.
    Exclusive,
    /// Other programs too.
    Shared,
}

/// Opens the file; a damaged one is replaced. One that another program reads is shared with it.
fn open(path: &Path) -> Result<Connection> {
    match connect(path, Locking::Exclusive) {
        Err(error) if is_damage(&error) => {
            tracing::warn!(%error, "the live turn lines cannot be read and are started afresh");
            private::remove(path);
            connect(path, Locking::Exclusive)
        }
        Err(error) if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy) => {
            connect(path, Locking::Shared)
        }
        opened => opened,
    }
}

/// Returns whether the error is damage of the file itself.
fn is_damage(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase, Unknown};
    // `Unknown` is a statement that does not fit: tables of another program.
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase | Unknown))
}

fn connect(path: &Path, locking: Locking) -> Result<Connection> {
    private::create(path)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    let conn = Connection::open(path)?;
    if locking == Locking::Exclusive {
        conn.busy_timeout(Duration::ZERO)?;
        // Before the first statement that reads the file, which would open the shared memory.
        conn.pragma_update(None, "locking_mode", "exclusive")?;
    }
    // A power cut may lose lines; mail is in another file. Before the next statement, which writes
    // a new file.
    conn.pragma_update(None, "synchronous", "off")?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    conn.pragma_update(None, "cache_size", -512)?;
    conn.execute_batch(
        "CREATE TABLE IF NOT EXISTS line (turn_id INTEGER NOT NULL, sequence INTEGER NOT NULL, stream INTEGER NOT NULL, \
         text TEXT NOT NULL, time INTEGER NOT NULL, PRIMARY KEY (turn_id, sequence)) STRICT, WITHOUT ROWID; \
         CREATE INDEX IF NOT EXISTS line_by_time ON line (time);",
    )?;
    // Only a write finds that another program reads the file.
    conn.pragma_update(None, "user_version", 1)?;
    Ok(conn)
}
