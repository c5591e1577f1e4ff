//! Opening the database: one broker at a time, private files, nothing trusted that is not synced.
//!
//! Invariant: after a successful open, everything visible in the file is on disk. A process that was killed between writing and syncing
//! leaves rows that are visible without being durable; the checkpoint at open syncs them before anybody is told of them.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};

use super::{MigrateError, backup, migrate};
use crate::clock::Clock;

/// Why the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory is not usable.
    #[error("the state directory {} cannot be used; hived needs a directory that it may write", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the host said.
        #[source]
        source: io::Error,
    },
    /// Another broker runs on it.
    #[error("another hived is running on the state directory {}; stop it first, or choose another directory", .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// It is not of this version.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// SQLite refused.
    #[error("the database {} cannot be opened: {hint}", .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What that usually means.
        hint: &'static str,
        /// What SQLite said.
        #[source]
        source: rusqlite::Error,
    },
    /// No thread could be started.
    #[error("the writer's thread could not be started")]
    Thread(#[source] io::Error),
}

pub(super) struct Opened {
    pub(super) path: PathBuf,
    pub(super) conn: Connection,
    pub(super) lock: File,
}

pub(super) fn open(dir: &Path, clock: &dyn Clock) -> Result<Opened, OpenError> {
    let directory = |source| OpenError::Directory { path: dir.to_path_buf(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(directory)?;
    let lock = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(dir.join("hived.lock"))
        .map_err(directory)?;
    match rustix::fs::flock(&lock, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(rustix::io::Errno::WOULDBLOCK) => return Err(OpenError::InUse { path: dir.to_path_buf() }),
        Err(errno) => return Err(directory(errno.into())),
    }
    backup::remove_leftovers(dir);

    let path = dir.join("hive.db");
    let sqlite = |source| OpenError::Sqlite { path: path.clone(), hint: hint(&source), source };
    // SQLite gives the log and the shared memory the mode of the database, so the file is made first, private.
    OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(directory)?;
    let migrating = |error| match error {
        MigrateError::Sql { source, .. } => sqlite(source),
        MigrateError::FromTheFuture { .. } => OpenError::Migrate(error),
    };
    // Looked at before anything is set: even the way of logging would be a change.
    let mut conn = plain(&path).map_err(sqlite)?;
    migrate::check(&conn).map_err(migrating)?;
    set_up(&conn).map_err(sqlite)?;
    migrate::migrate(&mut conn).map_err(migrating)?;
    sync(&conn).map_err(sqlite)?;
    forget_other_boots(&conn, clock).map_err(sqlite)?;
    Ok(Opened { path, conn, lock })
}

/// A connection that may write, set up for durability.
pub(super) fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let conn = plain(path)?;
    set_up(&conn)?;
    Ok(conn)
}

fn plain(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX)
}

fn set_up(conn: &Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(256);
    // A plan must not depend on the values bound to it: SQLite would prepare the statement anew for each message.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    // FULL syncs the log before a commit returns: this setting is what makes "accepted" mean "on disk".
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "foreign_keys", "on")?;
    conn.pragma_update(None, "cache_size", -4096)?;
    conn.pragma_update(None, "wal_autocheckpoint", 2000)
}

/// Brings everything that is visible to disk; fails if the disk does.
pub(super) fn sync(conn: &Connection) -> rusqlite::Result<()> {
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)).map(|_| ())
}

/// Boot times of another boot mean nothing: backoffs and consumers' leases of before are over, parks by backoff too.
fn forget_other_boots(conn: &Connection, clock: &dyn Clock) -> rusqlite::Result<()> {
    let known: Option<String> =
        rusqlite::OptionalExtension::optional(
            conn.query_row("SELECT value FROM meta WHERE key = 'boot_id'", [], |row| row.get(0)),
        )?;
    if known.as_deref() == Some(clock.boot_id()) {
        return Ok(());
    }
    conn.execute_batch("BEGIN IMMEDIATE")?;
    conn.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('boot_id', ?1)", [clock.boot_id()])?;
    conn.execute("UPDATE delivery SET not_before_boot = NULL WHERE state = 1 AND not_before_boot IS NOT NULL", [])?;
    conn.execute("UPDATE delivery SET lease_until_boot = 0 WHERE state = 2 AND lease_until_boot IS NOT NULL", [])?;
    conn.execute("UPDATE agent SET park_until_boot = NULL WHERE park_until_boot IS NOT NULL", [])?;
    conn.execute_batch("COMMIT")
}

/// What an error of SQLite usually means, in words for whoever has to put it right.
pub(super) fn hint(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => "the file is not a database of Hive; move it away or restore a backup",
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged; restore a backup",
        Some(ErrorCode::ReadOnly) => "it is read-only; hived needs to write it",
        Some(ErrorCode::DiskFull) => "the disk is full; free some space and start hived again",
        Some(ErrorCode::SystemIoFailure) => "the disk fails, or it is full; see to it and start hived again",
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => "its directory does not allow it",
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => "another program holds it open",
        _ => "SQLite refused",
    }
}
