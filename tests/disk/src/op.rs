//! The operations that SQLite requests from a disk, and the disk's possible answers.

use rusqlite::ffi;

/// The role of a file for SQLite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Database,
    /// The write-ahead log.
    Log,
    /// The rollback journal.
    Journal,
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

    /// Returns the kind of a file that is deleted, for which SQLite gives only the name.
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

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Action {
    /// Opening or creating a file.
    Open,
    Read,
    Write,
    /// Truncating to a length.
    Truncate,
    Sync,
    Delete,
    /// Mapping the memory that its readers and writers share.
    Share,
}

/// One operation that SQLite requests from the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Op {
    /// The number of earlier operations on this disk.
    pub number: u64,
    /// The file's path below the disk's directory.
    pub file: String,
    pub kind: Kind,
    pub action: Action,
    /// The offset in the file; for `Truncate` the new length.
    pub offset: u64,
    pub len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// An I/O error (EIO).
    Io,
    /// No space left (ENOSPC).
    Full,
    /// No memory for the operation.
    NoMemory,
}

impl Error {
    /// Returns the host VFS's code for it.
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

/// The disk's decision about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Do the operation.
    Proceed,
    /// Do nothing and fail. A sync that fails so may succeed when repeated.
    Fail(Error),
    /// Write the first bytes only, and fail. Any other operation does nothing and fails.
    Torn(usize, Error),
    /// Fail a sync and forget its data: it can still be read, but no later sync writes it to disk,
    /// as on Linux. Any other operation fails with `Io`.
    Lose,
    /// The same, but part of the data has reached the disk; the number determines which.
    LoseSome(u64),
    /// Report a sync as successful without syncing. Any other operation proceeds.
    Pretend,
}
