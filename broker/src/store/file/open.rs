//! Opening the database: one broker at a time, private files, and only synced rows are trusted.
//!
//! Invariant: after a successful open, everything visible in the file is on disk. A process that
//! was killed between writing and syncing leaves rows that are visible without being durable. At
//! open the log (SQLite's WAL) is written over itself, synced, and folded into the database (a
//! checkpoint of SQLite) before any caller reads it.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use crate::clock::Clock;
use crate::store::file::before::{self, Migration};
use crate::store::file::lock::Lock;
use crate::store::file::migrate::{MigrateError, SCHEMA_VERSION};
use crate::store::file::{backup, create, fold, migrate, private, progress, restore, vfs};

/// Why the database could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The state directory is not usable.
    #[error("the state directory {} cannot be used; hived needs a directory that it may write", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
    /// Its disk takes no writes.
    #[error(
        "nothing can be written in the state directory {}; if its disk is full, free some space, and start hived again", .path.display()
    )]
    NoWrites {
        /// The directory.
        path: PathBuf,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
    /// Another broker runs in the directory.
    #[error("another hived is running on the state directory {}; stop it first, or choose another directory", .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The database has another version, or could not be migrated.
    #[error(transparent)]
    Migrate(#[from] MigrateError),
    /// The database of an older broker could not be migrated.
    #[error(
        "the database {} could not be migrated from schema version {found} to {SCHEMA_VERSION}, which ended at version {version}; \
         it is as it was before: {hint}",
        .path.display()
    )]
    Migration {
        /// The file.
        path: PathBuf,
        /// The version that it still has.
        found: u32,
        /// The version whose script failed.
        version: u32,
        /// The usual cause of the error, and its remedy.
        hint: String,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
    /// The database of an older broker could not be copied.
    #[error(
        "the database {} could not be copied before its migration, and is as it was; the copy needs {room} MiB in its directory. Make room, or \
         let hived write there, or start it with --migrate-without-copy",
        .path.display()
    )]
    NoCopy {
        /// The file.
        path: PathBuf,
        /// The room that the copy needs, in MiB.
        room: u64,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
    /// SQLite returned an error.
    #[error("the database {} cannot be opened: {hint}", .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// The usual cause of that error, and its remedy.
        hint: &'static str,
        /// The error of SQLite.
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

/// A database and its directory, for the errors about them.
#[derive(Clone, Copy)]
pub(in crate::store) struct Place<'p> {
    pub(in crate::store) dir: &'p Path,
    pub(in crate::store) database: &'p Path,
}

impl Place<'_> {
    pub(in crate::store) fn directory(self, source: io::Error) -> OpenError {
        OpenError::Directory { path: self.dir.to_path_buf(), source }
    }

    pub(in crate::store) fn sqlite(self, source: rusqlite::Error) -> OpenError {
        OpenError::Sqlite { path: self.database.to_path_buf(), hint: hint(&source), source }
    }

    pub(in crate::store) fn migrate(self, error: MigrateError) -> OpenError {
        match error {
            MigrateError::Sql { source, .. } => self.sqlite(source),
            MigrateError::FromTheFuture { .. } => OpenError::Migrate(error),
        }
    }

    fn no_copy(self, bytes: u64, source: io::Error) -> OpenError {
        let path = self.database.to_path_buf();
        OpenError::NoCopy { path, room: progress::mib(bytes), source }
    }

    /// Returns the error of a migration of a database that had this version and this many bytes.
    fn migration(self, error: MigrateError, found: u32, bytes: u64) -> OpenError {
        let (version, source) = match error {
            MigrateError::Sql { version, source } => (version, source),
            MigrateError::FromTheFuture { .. } => return OpenError::Migrate(error),
        };
        let path = self.database.to_path_buf();
        let mut hint = hint(&source).to_owned();
        if source.sqlite_error_code() == Some(ErrorCode::DiskFull) {
            let room = progress::mib(bytes);
            hint.push_str(&format!(
                "; it needs up to about as much as the database has, {room} MiB"
            ));
        }
        OpenError::Migration { path, found, version, hint, source }
    }
}

/// Opens the database in `dir`. If there is none, it is created, and `rows` writes its first rows.
/// `begin` is called once the directory is locked, if there is a database of this version. If it is
/// migrated, `migration` says how.
pub(in crate::store) fn open(
    dir: &Path,
    clock: &dyn Clock,
    begin: impl FnOnce(),
    rows: impl FnOnce(&Connection) -> rusqlite::Result<()>,
    migration: Migration<'_>,
) -> Result<Opened, OpenError> {
    let path = dir.join("hive.db");
    let at = Place { dir, database: &path };
    let directory = |source| at.directory(source);
    DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(directory)?;
    let lock = Lock::take(dir)
        .map_err(directory)?
        .ok_or_else(|| OpenError::InUse { path: dir.to_path_buf() })?;
    lock.try_disk().map_err(|source| OpenError::NoWrites { path: dir.to_path_buf(), source })?;
    if migrate::is_current(&path) {
        begin();
    }
    backup::remove_leftovers(dir);
    before::remove_leftovers(dir);
    restore::remove_leftovers(dir);
    create::remove_leftovers(dir);

    let sqlite = |source| at.sqlite(source);
    if is_missing(&path).map_err(directory)? {
        create::create(at, clock, rows)?;
    }
    private::create(&path).map_err(directory)?;
    rewrite_log(&path).map_err(directory)?;
    // Checked before anything is set: even the journal mode would be a change.
    let mut conn = plain(&path).map_err(sqlite)?;
    let found = migrate::check(&conn).map_err(|error| at.migrate(error))?;
    match found {
        SCHEMA_VERSION => set_up(&mut conn).map_err(sqlite)?,
        0 => {
            set_up(&mut conn).map_err(sqlite)?;
            migrate::migrate(&mut conn, &AtomicU32::new(0)).map_err(|error| at.migrate(error))?;
        }
        _ => {
            let bytes = std::fs::metadata(&path).map_err(directory)?.len();
            conn = progress::watched(&path, found, migration.report, |version| {
                let mut conn = conn;
                if migration.keeps_copy {
                    conn = copied(at, conn, found, bytes)?;
                }
                set_up(&mut conn).map_err(sqlite)?;
                migrate::migrate(&mut conn, version)
                    .map_err(|error| at.migration(error, found, bytes))?;
                sync(&conn).map_err(sqlite)?;
                Ok::<_, OpenError>(conn)
            })?;
        }
    }
    sync(&conn).map_err(sqlite)?;
    write_at_commits(&conn).map_err(sqlite)?;
    forget_other_boots(&conn, clock).map_err(sqlite)?;
    Ok(Opened { path, conn, lock })
}

/// Copies a database that is to be migrated. The connection is closed in the meantime: a process
/// that closes a file loses all its locks on it, those of SQLite too, and another program could
/// then remove the log under the broker.
fn copied(
    at: Place<'_>,
    conn: Connection,
    found: u32,
    bytes: u64,
) -> Result<Connection, OpenError> {
    // The file is whole without its log.
    sync(&conn).map_err(|error| at.sqlite(error))?;
    conn.close().map_err(|(_, error)| at.sqlite(error))?;
    let kept = before::copy(at.database, found).map_err(|source| at.no_copy(bytes, source))?;
    tracing::info!(kept = %kept.display(), "the database was copied before its migration");
    plain(at.database).map_err(|error| at.sqlite(error))
}

/// Returns whether there is no file of this name. An empty file and a link are taken as they are.
pub(in crate::store) fn is_missing(path: &Path) -> io::Result<bool> {
    match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error),
        Ok(_) => Ok(false),
    }
}

/// Opens a database again after a failure. The caller has closed every other connection, and has
/// rewritten the log.
pub(in crate::store) fn reopen(path: &Path) -> rusqlite::Result<Connection> {
    let alone = plain(path)?;
    // Pages that were folded earlier may be lost with the sync that failed, so the whole log is
    // folded again. SQLite does so, from the log's beginning, only for the only connection.
    alone.busy_timeout(Duration::ZERO)?;
    alone.pragma_update_and_check(None, "locking_mode", "exclusive", |_| Ok(()))?;
    alone.pragma_update(None, "synchronous", "full")?;
    sync(&alone)?;
    drop(alone);
    let mut conn = plain(path)?;
    set_up(&mut conn)?;
    write_at_commits(&conn)?;
    Ok(conn)
}

/// Writes the log over itself and syncs it. After a failed sync the host regards unwritten pages as
/// written, and no later sync writes them. A database that was built on them would not survive a
/// power cut.
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
            // In an empty log nothing is doubtful.
            return if offset == 0 { Ok(()) } else { log.sync_all() };
        }
        log.write_all_at(&part[..len], offset)?;
        offset += len as u64;
    }
}

pub(in crate::store) fn plain(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags_and_vfs(path, flags, vfs::name()?)
}

fn set_up(conn: &mut Connection) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(256);
    // A plan must not depend on the values bound to it: SQLite would prepare the statement again
    // for each message.
    conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    conn.pragma_update(None, "journal_mode", "wal")?;
    // FULL syncs the log before a commit returns: this setting is what makes "accepted" mean "on
    // disk".
    conn.pragma_update(None, "synchronous", "full")?;
    conn.pragma_update(None, "foreign_keys", "on")?;
    // In KiB. A batch usually changes less than a megabyte of pages, and what it reads, the kernel
    // has too.
    conn.pragma_update(None, "cache_size", -1792)?;
    fold::note_length(conn)
}

/// Keeps a connection from writing pages before their commit, as a migration has to. What is
/// written for a transaction that is undone would wait in the VFS until the next commit.
fn write_at_commits(conn: &Connection) -> rusqlite::Result<()> {
    conn.pragma_update(None, "cache_spill", "off")
}

/// Writes all visible rows to disk; fails if the disk does, or if a reader has an older snapshot.
pub(in crate::store) fn sync(conn: &Connection) -> rusqlite::Result<()> {
    hive_fault::point("broker.checkpoint.before");
    // A checkpoint that a reader blocks does not fail: its answer reports that.
    if conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, bool>(0))? {
        return Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_BUSY), None));
    }
    Ok(())
}

/// Frees the pages that a connection has cached and does not use at present.
pub(in crate::store) fn release_memory(conn: &Connection) {
    if let Err(error) = conn.execute_batch("PRAGMA shrink_memory") {
        tracing::debug!(%error, "cached pages stay in memory");
    }
}

/// Ends what the boot clock of an earlier boot timed: backoffs of deliveries, leases of consumers,
/// and parks with backoff. Those times mean nothing now.
pub(super) fn forget_other_boots(conn: &Connection, clock: &dyn Clock) -> rusqlite::Result<()> {
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
    conn.execute(
        "UPDATE open_delivery SET not_before_boot = NULL WHERE not_before_boot IS NOT NULL",
        [],
    )?;
    conn.execute(
        "UPDATE open_delivery SET lease_until_boot = 0 WHERE queue = 0 AND lease_until_boot IS NOT NULL \
         AND agent_id IN (SELECT agent_id FROM inbox WHERE leased_count > 0)",
        [],
    )?;
    conn.execute(
        "UPDATE agent SET park_cause = NULL, park_error = '' WHERE park_until_boot IS NOT NULL AND park_until_time IS NULL",
        [],
    )?;
    conn.execute("UPDATE agent SET park_until_boot = NULL WHERE park_until_boot IS NOT NULL", [])?;
    conn.execute_batch("COMMIT")
}

/// Returns the usual cause of an error of SQLite, with its remedy.
pub(in crate::store) fn hint(error: &rusqlite::Error) -> &'static str {
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
