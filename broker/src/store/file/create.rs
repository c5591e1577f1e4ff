//! Creating: a new database is whole, and on disk, before it has its name.
//!
//! ```text
//!   create.tmp ── schema, first rows, one sync ──► rename ──► hive.db ── sync of the directory
//! ```
//!
//! The file is not read under its first name, so nothing of it has to be on disk before its end.
//! Invariant: a kill, a power cut or an error at any point leaves no database, or a whole one; what
//! is left under the first name is removed, at the latest by the next start.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU32;

use rusqlite::{Connection, Result, ffi};

use crate::clock::Clock;
use crate::store::file::backup::Named;
use crate::store::file::open::{self, OpenError, Place};
use crate::store::file::{migrate, private};

/// The name of the database until it is whole.
const FILE: &str = "create.tmp";

/// Removes the file that a broker left which was killed while it created the database.
pub(in crate::store) fn remove_leftovers(dir: &Path) {
    if private::remove(&dir.join(FILE)) {
        tracing::info!("the unfinished database of an earlier broker was removed");
    }
}

/// Creates the database, with the rows in it that `rows` writes.
pub(in crate::store) fn create(
    at: Place<'_>,
    clock: &dyn Clock,
    rows: impl FnOnce(&Connection) -> Result<()>,
) -> std::result::Result<(), OpenError> {
    let named = Named::create(at.dir.join(FILE)).map_err(|error| at.directory(error))?;
    let sqlite = |error| at.sqlite(error);
    let mut conn = open::plain(&named.0).map_err(sqlite)?;
    set_up(&conn).map_err(sqlite)?;
    migrate::migrate(&mut conn, &AtomicU32::new(0)).map_err(|error| at.migrate(error))?;
    open::forget_other_boots(&conn, clock).map_err(sqlite)?;
    rows(&conn).map_err(sqlite)?;
    finish(conn).map_err(sqlite)?;
    publish(at, &named).map_err(|error| at.directory(error))
}

/// Sets a connection to the unfinished file up for work that no kill has to leave whole.
fn set_up(conn: &Connection) -> Result<()> {
    // Without a file of locks and without a journal on disk; a command can still be undone.
    conn.pragma_update(None, "locking_mode", "exclusive")?;
    conn.pragma_update(None, "journal_mode", "memory")?;
    conn.pragma_update(None, "synchronous", "off")?;
    conn.pragma_update(None, "foreign_keys", "on")
}

/// Brings the whole file to disk, and closes it.
fn finish(conn: Connection) -> Result<()> {
    // The change to the log is the last one of the file, and its sync is that of all others.
    conn.pragma_update(None, "synchronous", "full")?;
    // SQLite commits the change after it has returned the row, so a row alone says nothing of it.
    let mut change = conn.prepare("PRAGMA journal_mode = wal")?;
    let journals: Vec<String> = change.query_map([], |row| row.get(0))?.collect::<Result<_>>()?;
    drop(change);
    if journals != ["wal"] {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_IOERR), None));
    }
    conn.close().map_err(|(_, error)| error)
}

/// Gives the finished file its name, and brings the name to disk.
fn publish(at: Place<'_>, named: &Named) -> io::Result<()> {
    hive_fault::point("broker.create.synced");
    // SQLite would apply to the new database what is beside it. As without a database, such a file
    // means nothing; it must not come back.
    let directory = File::open(at.dir)?;
    if private::remove_beside(at.database)? {
        directory.sync_all()?;
    }
    std::fs::rename(&named.0, at.database)?;
    hive_fault::point("broker.create.renamed");
    directory.sync_all()
}
