//! Restoring: puts a backup in place of the database while no broker runs.
//!
//! ```text
//!   BACKUP ── copy, mark ──► restore.tmp ── rename ──► hive.db
//!   hive.db ── fold its log, read its numbers, second name ──► hive.replaced-N.db
//! ```
//!
//! The next broker sees the mark and begins a new log, with numbers above those of the replaced
//! database. Invariant: until the rename the old database is complete under its name, and it is
//! never deleted. A kill at any point leaves one or the other.

use std::fs::File;
use std::io;
use std::os::unix::fs::{MetadataExt as _, lchown};
use std::path::{Path, PathBuf};

use hive_core::time::WallTime;
use rusqlite::{Connection, ErrorCode, ffi};
use rustix::process::geteuid;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::store::file::backup::{self, CopyError, copy_to, long_reader};
use crate::store::file::content::{self, Content};
use crate::store::file::create;
use crate::store::file::lock::{self, Lock};
use crate::store::file::mark;
use crate::store::file::migrate::{self, MigrateError};
use crate::store::file::numbers::Numbers;
use crate::store::file::open::{self, hint};
use crate::store::file::private;

/// The name of the copy until it is complete.
const FILE: &str = "restore.tmp";

/// Why nothing was restored. The database is as it was.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// A broker runs in the directory.
    #[error("hived is running on the state directory {}; stop it, then restore again", .path.display())]
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// A broker answers on the socket of the hive, or is started by a call to it.
    #[error(
        "a program listens on {}: hived runs, or the service manager would start it; end both, as with `systemctl stop hived.socket hived`, then restore again",
        .socket.display()
    )]
    Reachable {
        /// The operator's socket.
        socket: PathBuf,
    },
    /// The state directory is not usable.
    #[error("the state directory {} cannot be changed; it must exist, and you must be its owner", .path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The error of the host.
        #[source]
        source: io::Error,
    },
    /// The file is not a backup of a hive.
    #[error("{} is not a backup of a hive: {problem}", .path.display())]
    NotABackup {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// A newer broker made the backup.
    #[error(transparent)]
    Version(#[from] MigrateError),
    /// The copy in the state directory was not made.
    #[error(transparent)]
    Copy(#[from] CopyError),
}

/// A restored backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Restored {
    /// The database.
    pub database: PathBuf,
    /// The database that it replaced, under its new name.
    pub replaced: Option<PathBuf>,
    /// Whether the numbers of the replaced database could be read.
    pub numbers_known: bool,
    /// What the database contains, if a broker of this version wrote the backup.
    pub content: Option<Content>,
    /// What the replaced database contains, if that could be read.
    pub replaced_content: Option<Content>,
}

/// The sockets of this host, one a line.
const SOCKETS: &str = "/proc/net/unix";
/// The flag of a socket that listens (SO_ACCEPTCON of the kernel).
const LISTENS: u32 = 1 << 16;

/// Fails if a program listens on the operator's socket: a broker, or a service manager that starts
/// one for the next call, perhaps in the middle of a restore. A call to find out would be the next
/// one, so the list of sockets is read.
pub fn refuse_if_reachable(socket: &Path) -> Result<(), RestoreError> {
    let sockets = std::fs::read(SOCKETS)
        .map_err(|source| RestoreError::Directory { path: SOCKETS.into(), source })?;
    if String::from_utf8_lossy(&sockets).lines().any(|line| listens_on(line, socket)) {
        return Err(RestoreError::Reachable { socket: socket.to_path_buf() });
    }
    Ok(())
}

/// Returns whether a line of the list is of a socket that listens at this path.
fn listens_on(line: &str, socket: &Path) -> bool {
    // Num, RefCount, Protocol, Flags, Type, St, Inode, Path.
    let mut fields = line.split_ascii_whitespace();
    let flags = fields.nth(3).and_then(|flags| u32::from_str_radix(flags, 16).ok());
    flags.is_some_and(|flags| flags & LISTENS != 0)
        && socket.to_str().is_some_and(|socket| line.ends_with(&format!(" {socket}")))
}

/// Removes the copy of a restore that was killed.
pub(in crate::store) fn remove_leftovers(dir: &Path) {
    private::remove(&dir.join(FILE));
}

/// Puts a backup in place of the database in `dir`. A copy without a mark is marked with `now`.
pub fn restore(dir: &Path, backup: &Path, now: WallTime) -> Result<Restored, RestoreError> {
    let directory = |source| RestoreError::Directory { path: dir.to_path_buf(), source };
    let _lock = Lock::take(dir)
        .map_err(directory)?
        .ok_or_else(|| RestoreError::InUse { path: dir.to_path_buf() })?;
    give_to_owner(dir, &dir.join(lock::FILE)).map_err(directory)?;
    backup::remove_leftovers(dir);
    create::remove_leftovers(dir);
    let database = dir.join("hive.db");
    let source = opened(backup)?;
    let (numbers, replaced_content) = numbers_of(&database).unzip();
    let copy = copy_to(&source, dir.join(FILE), |copy| {
        same_rows(&source, copy)?;
        mark::set(copy, mark::time(copy)?.unwrap_or(now))?;
        if let Some(numbers) = numbers {
            numbers.store(copy)?;
            mark::numbers_are_known(copy)?;
        }
        quick_check(copy)
    })
    .map_err(|error| unreadable(backup, error))?;
    let content = Content::read(&source).map_err(|error| unreadable(backup, error.into()))?;
    give_to_owner(dir, &copy.0).map_err(directory)?;
    hive_fault::point("broker.restore.copied");
    let replaced = replace(dir, &database, &copy.0).map_err(directory)?;
    let replaced_content = replaced_content.flatten();
    Ok(Restored { database, replaced, numbers_known: numbers.is_some(), content, replaced_content })
}

/// Gives a new file to the owner of the state directory: the broker could not open one of root's.
fn give_to_owner(dir: &Path, file: &Path) -> io::Result<()> {
    let (wanted, found) = (std::fs::metadata(dir)?, std::fs::metadata(file)?);
    if (wanted.uid(), wanted.gid()) == (found.uid(), found.gid()) || !geteuid().is_root() {
        return Ok(());
    }
    lchown(file, Some(wanted.uid()), Some(wanted.gid()))
}

/// Fails unless the copy has as many rows in each table as the backup.
fn same_rows(backup: &Connection, copy: &Connection) -> rusqlite::Result<()> {
    let (wanted, found) = (content::rows(backup)?, content::rows(copy)?);
    if wanted == found {
        return Ok(());
    }
    let said = format!("the copy has other rows than the backup: {found:?}, not {wanted:?}");
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(said)))
}

/// Opens a backup for reading, if it is a database of a hive that this broker knows.
fn opened(backup: &Path) -> Result<Connection, RestoreError> {
    let not = |problem: &str| RestoreError::NotABackup {
        path: backup.to_path_buf(),
        problem: problem.to_owned(),
    };
    let refused = |error: &rusqlite::Error| match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            not("it is no database; if it is compressed, decompress it first")
        }
        Some(ErrorCode::DatabaseCorrupt) => not("it is damaged; use another backup"),
        Some(ErrorCode::CannotOpen) => not("it does not exist, or you may not read it"),
        _ => not(hint(error)),
    };
    let conn = long_reader(backup, CancellationToken::new()).map_err(|error| refused(&error))?;
    match migrate::check(&conn) {
        Ok(0) => Err(not("it has no tables of Hive; name a file that `hivectl backup` made")),
        Ok(_) => Ok(conn),
        Err(MigrateError::Sql { source, .. }) => Err(refused(&source)),
        Err(error @ MigrateError::FromTheFuture { .. }) => Err(error.into()),
    }
}

/// Checks the pages of the copy.
fn quick_check(copy: &Connection) -> rusqlite::Result<()> {
    let said: String = copy.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    if said == "ok" {
        return Ok(());
    }
    Err(rusqlite::Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_CORRUPT), Some(said)))
}

/// Turns an error of reading the backup into one that names the backup.
fn unreadable(backup: &Path, error: CopyError) -> RestoreError {
    match error {
        CopyError::Unreadable { problem } => RestoreError::NotABackup {
            path: backup.to_path_buf(),
            problem: format!("it cannot be read to its end ({problem}); use another backup"),
        },
        CopyError::UnderWay
        | CopyError::NoRoom { .. }
        | CopyError::Unwritable { .. }
        | CopyError::Stopped
        | CopyError::Store(_) => error.into(),
    }
}

/// Reads the numbers of the database that is to be replaced, and folds its log into it, so that
/// the file is complete by itself; `None` if there is none, or if it cannot be read.
fn numbers_of(database: &Path) -> Option<(Numbers, Option<Content>)> {
    if !database.exists() {
        return None;
    }
    let read = || {
        open::rewrite_log(database).ok()?;
        let conn = open::plain(database).ok()?;
        if migrate::check(&conn).ok()? == 0 {
            return None;
        }
        open::sync(&conn).ok()?;
        let numbers = Numbers::read(&conn).ok()?;
        let content = Content::read(&conn).ok().flatten();
        conn.close().ok()?;
        Some((numbers, content))
    };
    read()
}

/// Gives the old database a second name, and the new one its name.
fn replace(dir: &Path, database: &Path, copy: &Path) -> io::Result<Option<PathBuf>> {
    File::open(copy)?.sync_all()?;
    let replaced = if database.exists() { Some(keep(dir, database)?) } else { None };
    // The log of the old database must not be applied to the new one.
    private::remove_beside(database)?;
    hive_fault::point("broker.restore.kept");
    std::fs::rename(copy, database)?;
    File::open(dir)?.sync_all()?;
    Ok(replaced)
}

/// Gives the old database, and a log that could not be folded into it, the first free second name.
fn keep(dir: &Path, database: &Path) -> io::Result<PathBuf> {
    let mut number = 1;
    loop {
        let kept = dir.join(format!("hive.replaced-{number}.db"));
        match std::fs::hard_link(database, &kept) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(error),
            Ok(()) => {
                let log = with_suffix(database, "-wal");
                if log.exists() {
                    std::fs::hard_link(log, with_suffix(&kept, "-wal"))?;
                }
                File::open(dir)?.sync_all()?;
                return Ok(kept);
            }
        }
    }
}

fn with_suffix(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
