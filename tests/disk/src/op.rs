//! What SQLite asks of a disk, and what the disk may answer.

use rusqlite::ffi;

/// What a file is to SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The database.
    Database,
    /// The write-ahead log.
    Log,
    /// The rollback journal.
    Journal,
    /// Any other.
    Other,
}

impl Kind {
    pub(crate) fn of_flags(flags: i32) -> Self {
        match flags & 0x000f_ff00 {
            ffi::SQLITE_OPEN_MAIN_DB => Self::Database,
            ffi::SQLITE_OPEN_WAL => Self::Log,
            ffi::SQLITE_OPEN_MAIN_JOURNAL => Self::Journal,
            _ => Self::Other,
        }
    }

    /// Of a file that is deleted, of which SQLite tells the name alone.
    pub(crate) fn of_name(name: &str) -> Self {
        if name.ends_with("-wal") {
            Self::Log
        } else if name.ends_with("-journal") {
            Self::Journal
        } else {
            Self::Other
        }
    }
}

/// What is done with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// It is opened, or made.
    Open,
    /// It is read.
    Read,
    /// It is written.
    Write,
    /// It is cut to a length.
    Truncate,
    /// It is synced.
    Sync,
    /// It is deleted.
    Delete,
    /// The memory that its readers and writers share is mapped.
    Share,
}

/// One thing that SQLite asks of the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// How many were asked of this disk before.
    pub number: u64,
    /// The file's path below the disk's directory.
    pub file: String,
    /// What the file is.
    pub kind: Kind,
    /// What is done.
    pub action: Action,
    /// Where: for `Truncate` the new length.
    pub offset: u64,
    /// How many bytes.
    pub len: usize,
}

/// What is wrong with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// It fails (EIO).
    Io,
    /// It is full (ENOSPC).
    Full,
    /// There is no memory for it.
    NoMemory,
}

impl Error {
    /// What the host's VFS says then.
    pub(crate) fn code(self, action: Action) -> i32 {
        match (self, action) {
            (Self::NoMemory, _) => ffi::SQLITE_NOMEM,
            (Self::Io | Self::Full, Action::Open) => ffi::SQLITE_CANTOPEN,
            (Self::Io | Self::Full, Action::Read) => ffi::SQLITE_IOERR_READ,
            (Self::Io, Action::Write) => ffi::SQLITE_IOERR_WRITE,
            (Self::Full, Action::Write) => ffi::SQLITE_FULL,
            (Self::Io | Self::Full, Action::Truncate) => ffi::SQLITE_IOERR_TRUNCATE,
            (Self::Io | Self::Full, Action::Sync) => ffi::SQLITE_IOERR_FSYNC,
            (Self::Io | Self::Full, Action::Delete) => ffi::SQLITE_IOERR_DELETE,
            (Self::Io, Action::Share) => ffi::SQLITE_IOERR_SHMMAP,
            (Self::Full, Action::Share) => ffi::SQLITE_IOERR_SHMSIZE,
        }
    }
}

/// What the disk does about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What was asked.
    Proceed,
    /// Nothing, and says so. A sync that fails so may be repeated with success.
    Fail(Error),
    /// A write does its first bytes alone, and fails. Anything else does nothing and fails.
    Torn(usize, Error),
    /// A sync fails, and what it was to sync is forgotten: it can still be read, but no later sync
    /// brings it to disk. Linux is like that. Anything else fails with `Io`.
    Lose,
    /// The same, but some of it has reached the disk; which, follows from the number.
    LoseSome(u64),
    /// A sync says that all went well and does nothing: a disk that lies. Anything else proceeds.
    Pretend,
}
