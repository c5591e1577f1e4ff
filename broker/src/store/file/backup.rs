//! Backups: a consistent copy of the database in a file of its own, made while the broker works.
//!
//! `VACUUM INTO` reads one snapshot and never blocks the writer. While it runs, the log cannot be
//! folded past that snapshot and grows. The copy is complete and needs no log beside it. The search
//! index, which is rebuilt, and live turn lines, which are temporary, are not copied. Invariant:
//! the temporary file is private, has no name once it is handed out, and one that a killed broker
//! left is removed at the next start. A copy is marked, so that the broker that opens it begins a
//! new log; the source is not marked.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hive_core::time::WallTime;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::store::error::{StoreError, is_fatal};
use crate::store::file::{mark, private};

/// The name of the copy while it is made. There is one at a time.
const FILE: &str = "backup.tmp";
/// Room that a copy leaves on the disk, in bytes, so that mail continues: twice the log between two
/// checkpoints.
const RESERVE_BYTES: u64 = 16 * 1024 * 1024;
/// The interval at which a long statement checks its cancellation, in instructions of SQLite: some
/// thousand times a second.
const STOP_CHECK_OPS: i32 = 10_000;

/// Why no copy was made.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// Another copy is being made or read.
    #[error("another backup is under way, and one is made at a time; try again when it is done")]
    UnderWay,
    /// The disk would be full.
    #[error(
        "a copy of the database needs {} MiB of room in {}, and {} MiB are free; make room there, then try again",
        .needed.div_ceil(1 << 20), .dir.display(), .free >> 20
    )]
    NoRoom {
        /// The directory of the copy.
        dir: PathBuf,
        /// The room that it needs, in bytes.
        needed: u64,
        /// The free room, in bytes.
        free: u64,
    },
    /// The copy cannot be written.
    #[error("the copy {} cannot be written: {problem}; the mail is not affected", .path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The error of SQLite or the host.
        problem: Arc<str>,
    },
    /// The database cannot be read to its end.
    #[error(
        "the database cannot be copied whole: {problem}; `hivectl doctor --deep` tells what is wrong with it"
    )]
    Unreadable {
        /// The error of SQLite.
        problem: Arc<str>,
    },
    /// The caller has disconnected, or the broker drains.
    #[error("the copy was given up")]
    Stopped,
    /// The database cannot be used now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for CopyError {
    fn from(error: rusqlite::Error) -> Self {
        if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted) {
            return Self::Stopped;
        }
        if is_fatal(&error) {
            return Self::Unreadable { problem: error.to_string().into() };
        }
        Self::Store(error.into())
    }
}

/// A finished copy. It has no name; its room is free again when the file is closed.
#[derive(Debug)]
pub struct Copied {
    /// The file, at its beginning.
    pub file: File,
    /// Its length in bytes.
    pub bytes: u64,
    /// The lock that keeps other copies from being made: there is room for one.
    pub slot: OwnedMutexGuard<()>,
}

/// Returns a connection for one long read, which is interrupted once `stop` is cancelled.
pub(in crate::store) fn long_reader(
    path: &Path,
    stop: CancellationToken,
) -> rusqlite::Result<Connection> {
    let mut conn = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    conn.pragma_update(None, "cache_size", -4096)?;
    conn.progress_handler(STOP_CHECK_OPS, Some(move || stop.is_cancelled()))?;
    Ok(conn)
}

/// Removes the file of this name that a program left which was killed while it wrote it.
pub(in crate::store) fn remove_leftovers(dir: &Path) {
    if private::remove(&dir.join(FILE)) {
        tracing::info!("the unfinished backup of an earlier broker was removed");
    }
}

/// A file while it has a temporary name. Dropping it removes the name, however the work ended.
#[derive(Debug)]
pub(in crate::store) struct Named(pub(in crate::store) PathBuf);

impl Named {
    /// Creates an empty file. SQLite fills it and leaves its mode as it is.
    pub(in crate::store) fn create(path: PathBuf) -> io::Result<Self> {
        private::remove(&path);
        let named = Self(path);
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(&named.0)?;
        Ok(named)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        private::remove(&self.0);
    }
}

/// Copies a database file; the copy is marked with `now`, and keeps `slot`, because there is one
/// file name.
pub(in crate::store) fn copy(
    database: &Path,
    now: WallTime,
    stop: CancellationToken,
    slot: OwnedMutexGuard<()>,
) -> Result<Copied, CopyError> {
    let dir = database.parent().unwrap_or(Path::new("."));
    let conn = long_reader(database, stop)?;
    let named = copy_to(&conn, dir.join(FILE), |copy| mark::set(copy, now))?;
    hive_fault::point("broker.backup.copied");
    let failed = |error: io::Error| CopyError::Unwritable {
        path: named.0.clone(),
        problem: error.to_string().into(),
    };
    let file = File::open(&named.0).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok(Copied { file, bytes, slot })
}

/// Writes a copy of an open database to a file, and changes the copy with `edit`.
pub(in crate::store) fn copy_to(
    conn: &Connection,
    path: PathBuf,
    edit: impl FnOnce(&Connection) -> rusqlite::Result<()>,
) -> Result<Named, CopyError> {
    // What a killed program left has to make room first.
    private::remove(&path);
    check_room(conn, path.parent().unwrap_or(Path::new(".")))?;
    let unwritable = |problem: Arc<str>| CopyError::Unwritable { path: path.clone(), problem };
    let named =
        Named::create(path.clone()).map_err(|error| unwritable(error.to_string().into()))?;
    let target = named
        .0
        .to_str()
        .ok_or_else(|| unwritable("the path of the state directory is not UTF-8".into()))?;
    let failed = |error: rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            unwritable("the disk is full; make room there, then try again".into())
        }
        Some(ErrorCode::SystemIoFailure) => {
            unwritable(format!("the disk fails, or it is full ({error})").into())
        }
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly) => {
            unwritable(format!("its directory does not allow it ({error})").into())
        }
        _ => error.into(),
    };
    conn.execute("VACUUM INTO ?1", [target]).map_err(failed)?;
    let edited = Connection::open_with_flags(target, OpenFlags::SQLITE_OPEN_READ_WRITE);
    let edited = edited.and_then(|copy| {
        // A copy that a crash leaves is removed, and never opened.
        copy.pragma_update(None, "journal_mode", "off")?;
        copy.pragma_update(None, "synchronous", "off")?;
        edit(&copy)
    });
    edited.map_err(failed)?;
    Ok(named)
}

/// Refuses a copy that would fill the disk and so stop the mail.
fn check_room(conn: &Connection, dir: &Path) -> Result<(), CopyError> {
    let pragma =
        |name: &str| conn.pragma_query_value(None, name, |row| row.get::<_, u32>(0)).map(u64::from);
    let pages = pragma("page_count")?.saturating_sub(pragma("freelist_count")?);
    let needed = pages * pragma("page_size")? + RESERVE_BYTES;
    let disk = rustix::fs::statvfs(dir).map_err(|errno| CopyError::Unwritable {
        path: dir.join(FILE),
        problem: io::Error::from(errno).to_string().into(),
    })?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free < needed {
        Err(CopyError::NoRoom { dir: dir.to_path_buf(), needed, free })
    } else {
        Ok(())
    }
}
