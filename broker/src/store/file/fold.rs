//! Folding: the pages of the log are copied into the database, and the next commit begins the log
//! again over its old pages. SQLite calls it a checkpoint.
//!
//! It is done between two batches: by itself SQLite would do it inside a commit, whose callers
//! would wait for it, and would not report a failed sync of the database. Invariant: an error of
//! the disk is the caller's, who must not trust the connection any more.

use std::cell::Cell;
use std::time::Duration;

use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode};

/// The log is folded when it has grown by this many pages.
pub(in crate::store) const PAGES: u32 = 2000;
/// Pages that are worth it while nothing is written.
pub(in crate::store) const IDLE_PAGES: u32 = 100;
/// From this length on a fold waits until no query runs: as long as each one overlaps the last, the
/// log could not begin again.
pub(in crate::store) const LONG_PAGES: u32 = 4 * PAGES;
/// The most time that it waits for queries.
pub(in crate::store) const QUERIES_WAIT: Duration = Duration::from_millis(20);
/// The wait for a lock otherwise, as rusqlite sets it.
const LOCK_WAIT: Duration = Duration::from_secs(5);

thread_local! {
    /// Pages of the log after the last commit of this thread, until they are looked at.
    static LOG_PAGES: Cell<Option<u32>> = const { Cell::new(None) };
}

/// Makes a connection note the length of the log after each commit, and fold nothing by itself.
pub(super) fn note_length(conn: &mut Connection) -> rusqlite::Result<()> {
    fn note(_: &mut Wal, pages: std::ffi::c_int) -> rusqlite::Result<()> {
        LOG_PAGES.set(Some(u32::try_from(pages).unwrap_or(0)));
        Ok(())
    }
    conn.wal_hook(Some(note))
}

/// Returns the pages of the log if this thread has committed since it called this.
pub(in crate::store) fn new_log_pages() -> Option<u32> {
    LOG_PAGES.take()
}

/// Folds the log; returns whether all of it is folded. `is_alone`: no query runs. If there is no
/// room, or a snapshot needs an old page, the rest is left to the next time.
pub(in crate::store) fn fold(conn: &Connection, is_alone: bool) -> rusqlite::Result<bool> {
    hive_fault::point("broker.fold.before");
    let folded = if is_alone {
        // A copy that is being made may read; it is not waited for.
        conn.busy_timeout(Duration::ZERO)?;
        checkpoint(conn, "PRAGMA wal_checkpoint(RESTART)")
    } else {
        checkpoint(conn, "PRAGMA wal_checkpoint(PASSIVE)")
    };
    if is_alone {
        conn.busy_timeout(LOCK_WAIT)?;
    }
    match folded {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => Err(error),
        folded => Ok(folded.unwrap_or(false)),
    }
}

fn checkpoint(conn: &Connection, pragma: &str) -> rusqlite::Result<bool> {
    conn.query_row(pragma, [], |row| {
        let (pages, folded): (i64, i64) = (row.get(1)?, row.get(2)?);
        // Both are -1 if another program folds it.
        Ok(pages >= 0 && pages == folded)
    })
}
