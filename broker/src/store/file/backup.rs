//! Backups: a consistent copy of the database in a file of its own, made while the broker works.
//!
//! `VACUUM INTO` reads one snapshot and never blocks the writer. While it runs, the log cannot be
//! folded past that snapshot and grows. The copy is complete and needs no log beside it. The search
//! index, which is rebuilt, and live turn lines, which are temporary, are not copied. Invariant:
//! the temporary file is private, has no name once it is handed out, and one that a killed broker
//! left is removed at the next start.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::{Connection, ErrorCode, OpenFlags};
use tokio::sync::OwnedMutexGuard;
use tokio_util::sync::CancellationToken;

use crate::store::error::{StoreError, is_fatal};
use crate::store::file::private;

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

/// Removes the files that a broker left that was killed during a backup.
pub(in crate::store) fn remove_leftovers(dir: &Path) {
    if private::remove(&dir.join(FILE)) {
        tracing::info!("the unfinished backup of an earlier broker was removed");
    }
}

/// The copy while it has a name. Dropping it removes the name, however the work on it ended.
struct Named(PathBuf);

impl Named {
    fn create(dir: &Path) -> io::Result<Self> {
        remove_leftovers(dir);
        let named = Self(dir.join(FILE));
        // SQLite fills an empty file and leaves its mode as it is.
        OpenOptions::new().create_new(true).write(true).mode(0o600).open(&named.0)?;
        Ok(named)
    }
}

impl Drop for Named {
    fn drop(&mut self) {
        private::remove(&self.0);
    }
}

/// Copies a database file; the copy keeps `slot`, because there is one file name.
pub(in crate::store) fn copy(
    database: &Path,
    stop: CancellationToken,
    slot: OwnedMutexGuard<()>,
) -> Result<Copied, CopyError> {
    let dir = database.parent().unwrap_or(Path::new("."));
    let conn = long_reader(database, stop)?;
    check_room(&conn, dir)?;
    let unwritable = |problem: Arc<str>| CopyError::Unwritable { path: dir.join(FILE), problem };
    let failed = |error: io::Error| unwritable(error.to_string().into());
    let named = Named::create(dir).map_err(failed)?;
    let target = named
        .0
        .to_str()
        .ok_or_else(|| unwritable("the path of the state directory is not UTF-8".into()))?;
    conn.execute("VACUUM INTO ?1", [target]).map_err(|error| match error.sqlite_error_code() {
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
    })?;
    hive_fault::point("broker.backup.copied");
    let file = File::open(&named.0).map_err(failed)?;
    let bytes = file.metadata().map_err(failed)?.len();
    Ok(Copied { file, bytes, slot })
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
