//! Errors of the store, and whether the database can be used.
//!
//! Invariant: an error of a command is distinct from one of the disk, which aborts a whole batch.

use std::sync::Arc;

use rusqlite::ErrorCode;

/// Why a read or a write failed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database cannot be used now; whether the last write reached the disk is not known.
    #[error("the database cannot be used now: {problem}")]
    Unavailable {
        /// The fault of the database.
        problem: Arc<str>,
    },
    /// The database can be used again, and memory may lack changes of the batch that failed.
    #[error("the database has failed and recovered; begin the watch again")]
    Recovered,
    /// SQLite refused a statement.
    #[error("a statement failed")]
    Sql(#[from] rusqlite::Error),
    /// A command panicked: the broker has a bug.
    #[error("a command panicked")]
    Panicked,
    /// The store was closed.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(super) fn unavailable(problem: &Arc<str>) -> Self {
        Self::Unavailable { problem: Arc::clone(problem) }
    }
}

/// The error of a command: its own refusals, and errors of the store.
pub trait CommandError: From<StoreError> + Send + 'static {
    /// Returns the error of the store, if it is one.
    fn storage(&self) -> Option<&StoreError>;
}

/// Whether the database can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// The database can be used.
    Ok,
    /// The database cannot be used now; the text says why.
    Faulted(Arc<str>),
}

impl Health {
    /// Fails if the database cannot be used.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        match self {
            Self::Ok => Ok(()),
            Self::Faulted(problem) => Err(StoreError::unavailable(problem)),
        }
    }
}

/// Returns whether an error is the disk's, the memory's or the file's, not the command's.
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
