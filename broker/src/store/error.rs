//! Errors of the store, and whether the database can be used.
//!
//! Invariant: an error of a command is told apart from one of the disk, which aborts a whole batch.

use std::sync::Arc;

use rusqlite::ErrorCode;

/// Why nothing was read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be used now; whether the last write reached the disk is not known.
    #[error("the database cannot be used now: {problem}")]
    Unavailable {
        /// What is wrong.
        problem: Arc<str>,
    },
    /// SQLite refused a statement.
    #[error("a statement failed")]
    Sql(#[from] rusqlite::Error),
    /// The broker has a bug.
    #[error("a command panicked")]
    Panicked,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

/// What a command fails with: its own refusals, and whatever happened to the store.
pub trait CommandError: From<StoreError> + Send + 'static {
    /// What happened to the store, if that is what it is.
    fn storage(&self) -> Option<&StoreError>;
}

/// Whether the database can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Yes.
    Ok,
    /// Not now; the text says why.
    Faulted(Arc<str>),
}

/// Errors that are the disk's, the memory's or the file's, not the command's.
pub(crate) fn is_fatal(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase
                | ErrorCode::CannotOpen
                | ErrorCode::ReadOnly
        )
    )
}
