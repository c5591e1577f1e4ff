//! Opening the database: one broker at a time, private files, nothing trusted that is not synced.
//!
//! Invariant: after a successful open, everything visible in the file is on disk. A process that
//! was killed between writing and syncing leaves rows that are visible without being durable; the
//! log is written anew and folded at open before anybody is told of them.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::clock::Clock;
use crate::store::file::backup;
use crate::store::file::lock::Lock;
use crate::store::file::migrate;
use crate::store::file::migrate::MigrateError;

/// From this length on the log is folded after a commit, in pages.
const FOLD_PAGES: std::ffi::c_int = 2000;

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

pub(in crate::store) struct Opened {
    pub(in crate::store) path: PathBuf,
    pub(in crate::store) conn: Connection,
    pub(in crate::store) lock: Lock,
}

pub(in crate::store) fn open(dir: &Path, clock: &dyn Clock) -> Result<Opened, OpenError> {
    let directory = |source| OpenError::Directory { path: dir.to_path_buf(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(directory)?;
    let lock = Lock::take(dir)
        .map_err(directory)?
        .ok_or_else(|| OpenError::InUse { path: dir.to_path_buf() })?;
    backup::remove_leftovers(dir);

    let path = dir.join("hive.db");
    let sqlite = |source| OpenError::Sqlite { path: path.clone(), hint: hint(&source), source };
    // SQLite gives the log and the shared memory the mode of the database, so the file is made
    // first, private.
    OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)
        .map_err(directory)?;
    let migrating = |error| match error {
        MigrateError::Sql { source, .. } => sqlite(source),
        MigrateError::FromTheFuture { .. } => OpenError::Migrate(error),
    };
    rewrite_log(&path).map_err(directory)?;
    // Looked at before anything is set: even the way of logging would be a change.
    let mut conn = plain(&path).map_err(sqlite)?;
    migrate::check(&conn).map_err(migrating)?;
    set_up(&mut conn).map_err(sqlite)?;
    migrate::migrate(&mut conn).map_err(migrating)?;
    sync(&conn).map_err(sqlite)?;
    forget_other_boots(&conn, clock).map_err(sqlite)?;
    Ok(Opened { path, conn, lock })
}

/// Opens a database that has failed, once nobody has it open any more; its log has to be rewritten
/// before.
pub(in crate::store) fn reopen(path: &Path) -> rusqlite::Result<Connection> {
    let alone = plain(path)?;
    // Alone, SQLite reads the log from its beginning and folds all of it: what was folded before
    // may be lost with the sync that failed.
    alone.busy_timeout(Duration::ZERO)?;
    alone.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()))?;
    alone.pragma_update(None, "synchronous", "full")?;
    sync(&alone)?;
    drop(alone);
    let mut conn = plain(path)?;
    set_up(&mut conn)?;
    Ok(conn)
}

/// Writes the log over itself and syncs it. What a failed sync has left unwritten the host takes
/// for written, and no later sync brings it to disk; a database that was built on it would not
/// outlive a power cut.
pub(in crate::store) fn rewrite_log(database: &Path) -> io::Result<()> {
    let mut name = database.as_os_str().to_owned();
    name.push("-wal");
    let log = match OpenOptions::new().read(true).write(true).open(name) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        log => log?,
    };
    let (mut part, mut offset) = (vec![0; 1 << 20], 0);
    loop {
        let len = log.read_at(&mut part, offset)?;
        if len == 0 {
            return log.sync_all();
        }
        log.write_all_at(&part[..len], offset)?;
        offset += len as u64;
    }
}

fn plain(path: &Path) -> rusqlite::Result<Connection> {
    Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
}

fn set_up(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(256);
    // A plan must not depend on the values bound to it: SQLite would prepare the statement anew for
    // each message.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    // FULL syncs the log before a commit returns: this setting is what makes "accepted" mean "on
    // disk".
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "foreign_keys", "on")?;
    conn.pragma_update(None, "cache_size", -4096)?;
    conn.wal_hook(Some(fold_if_long))
}

/// What SQLite does by itself after a commit, but for its silence: it would tell nobody that the
/// sync of the database failed, and take what was lost with it for folded.
fn fold_if_long(log: &mut Wal, pages: std::ffi::c_int) -> rusqlite::Result<()> {
    if pages < FOLD_PAGES {
        return Ok(());
    }
    match log.checkpoint() {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::SystemIoFailure) => Err(error),
        // Without room, or with readers in the way, the log grows until the next time.
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Brings everything that is visible to disk; fails if the disk does, or somebody reads an older
/// state.
pub(in crate::store) fn sync(conn: &Connection) -> rusqlite::Result<()> {
    hive_fault::point("broker.checkpoint.before");
    // A checkpoint in whose way a reader is does not fail: it says so in its answer.
    if conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))? {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None));
    }
    Ok(())
}

/// Boot times of another boot mean nothing: backoffs and consumers' leases of before are over,
/// parks by backoff too.
fn forget_other_boots(conn: &Connection, clock: &dyn Clock) -> rusqlite::Result<()> {
    let known: Option<String> = rusqlite::OptionalExtension::optional(conn.query_row(
        "SELECT value FROM meta WHERE key = 'boot_id'",
        [],
        |row| row.get(0),
    ))?;
    if known.as_deref() == Some(clock.boot_id()) {
        return Ok(());
    }
    conn.execute_batch("BEGIN IMMEDIATE")?;
    conn.execute(
        "INSERT OR REPLACE INTO meta (key, value) VALUES ('boot_id', ?1)",
        [clock.boot_id()],
    )?;
    conn.execute("UPDATE delivery SET not_before_boot = NULL WHERE state = 1 AND not_before_boot IS NOT NULL", [])?;
    conn.execute(
        "UPDATE delivery SET lease_until_boot = 0 WHERE state = 2 AND lease_until_boot IS NOT NULL",
        [],
    )?;
    conn.execute(
        "UPDATE agent SET park_cause = NULL, park_error = '' WHERE park_until_boot IS NOT NULL AND park_until_time IS NULL",
        [],
    )?;
    conn.execute("UPDATE agent SET park_until_boot = NULL WHERE park_until_boot IS NOT NULL", [])?;
    conn.execute_batch("COMMIT")
}

/// What an error of SQLite usually means, in words for whoever has to put it right.
pub(in crate::store) fn hint(error: &rusqlite::Error) -> &'static str {
    use rusqlite::ErrorCode;
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            "the file is not a database of Hive; move it away or restore a backup"
        }
        Some(ErrorCode::DatabaseCorrupt) => "the file is damaged; restore a backup",
        Some(ErrorCode::ReadOnly) => "it is read-only; hived needs to write it",
        Some(ErrorCode::DiskFull) => "the disk is full; free some space and start hived again",
        Some(ErrorCode::SystemIoFailure) => {
            "the disk fails, or it is full; see to it and start hived again"
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            "its directory does not allow it"
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            "another program holds it open"
        }
        _ => "SQLite refused",
    }
}
