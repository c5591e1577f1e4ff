//! The search index: the words of each message and question, in a database file of its own beside
//! the mail.
//!
//! ```text
//!   mail ── after(position) ──► batch ── put ──► search.sqlite3 ── find ──► ids ── hit ──► mail, if it may be seen
//! ```
//!
//! It holds no mail and has no authority: it proposes ids, and the mail decides which items exist
//! and who may see them. The file is made from the mail and can be rebuilt at any time, so it never
//! delays a send or a start. It is made when it is used first, and kept up to date from then on: a
//! hive in which nothing is searched has no index, and pays nothing for it. Invariant: the words of
//! a batch and the position up to which the mail is indexed are one transaction. A file that does
//! not match the mail is deleted.

mod file;
mod mail;
mod query;
mod script;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::Notify;

use super::codec::integer;
use super::file::open::hint;
use super::file::private;
pub use mail::{Batch, Hit, after, gone, hit};
pub use query::{Fault, Query};

/// Most messages and questions of one batch.
const BATCH_ROWS: u32 = 500;
/// Approximate limit of one batch in bytes.
const BATCH_BYTES: usize = 1024 * 1024;
/// Most idle connections that are kept: as many as there are searches at once.
const IDLE_MAX: usize = 2;

/// Why the index cannot answer.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index is not complete yet.
    #[error("the index is being made from the mail; try again in a moment")]
    Filling,
    /// The file of the index cannot be used.
    #[error("the index {} cannot be used: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the host or of SQLite.
        problem: Arc<str>,
    },
}

/// The position up to which the mail is in the index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The newest message or question that was read; 0 at the beginning.
    pub(super) id: u64,
    /// The mark of that row, which identifies it.
    pub(super) mark: String,
    /// Whether the row was seen in the mail since the file was opened.
    pub(super) proven: bool,
}

#[derive(Debug)]
struct Open {
    conn: Connection,
    position: Position,
}

/// The state that searches check.
#[derive(Debug, Default)]
enum State {
    /// The index has not been up to date since it was opened.
    #[default]
    Filling,
    /// The index has all mail except the newest.
    Filled,
    /// The index cannot be read or written.
    Unusable(Arc<str>),
}

#[derive(Debug, Default)]
struct Readers {
    state: State,
    idle: Vec<Connection>,
    /// The number of files so far; a connection to an older one is not kept.
    files: u64,
}

/// The index of a database.
#[derive(Debug)]
pub struct Index {
    path: PathBuf,
    /// Before the writer, which is closed last: it folds the log of the file and deletes it, and a
    /// connection that only reads cannot.
    readers: Mutex<Readers>,
    writer: Mutex<Option<Open>>,
    is_used: AtomicBool,
    /// Notified when the index has to be made or rebuilt.
    pub wanted: Notify,
}

impl Index {
    /// Returns the index beside a database; nothing is opened yet.
    #[must_use]
    pub fn beside(database: &Path) -> Self {
        let path = database.with_file_name("search.sqlite3");
        let is_used = AtomicBool::new(path.exists());
        Self {
            path,
            writer: Mutex::default(),
            readers: Mutex::default(),
            is_used,
            wanted: Notify::new(),
        }
    }

    /// Returns whether anything was ever searched, so that the index is kept up to date.
    #[must_use]
    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Acquire)
    }

    /// Notes that something is searched; returns whether it is the first time.
    #[must_use]
    pub fn begin_use(&self) -> bool {
        !self.is_used.swap(true, Ordering::AcqRel)
    }

    /// Returns the position of the index; opens or makes the file first, if that was not done yet.
    pub fn position(&self) -> Result<Position, SearchError> {
        let mut writer = lock(&self.writer);
        if let Some(open) = &*writer {
            return Ok(open.position.clone());
        }
        let (conn, position) = file::open(&self.path).map_err(|error| {
            lock(&self.readers).state = State::Unusable(problem(&error));
            self.file_error(&problem(&error))
        })?;
        *writer = Some(Open { conn, position: position.clone() });
        Ok(position)
    }

    /// Adds the batch after a position. No effect if another call did so, or if the file was
    /// rebuilt since.
    pub fn put(&self, position: &Position, batch: &Batch) -> Result<(), SearchError> {
        let mut writer = lock(&self.writer);
        let Some(open) = writer.as_mut().filter(|open| open.position.id == position.id) else {
            return Ok(());
        };
        let (id, mark) =
            batch.last.clone().unwrap_or_else(|| (open.position.id, open.position.mark.clone()));
        let next = Position { id, mark, proven: true };
        if next.id != position.id
            && let Err(error) = file::put(&mut open.conn, &batch.entries, &next)
        {
            drop(writer);
            // Until a write succeeds, searches fail instead of finding nothing.
            lock(&self.readers).state = State::Unusable(problem(&error));
            return Err(self.failed(&error, !file::is_of_host(&error)));
        }
        open.position = next;
        drop(writer);
        let mut readers = lock(&self.readers);
        readers.state = match readers.state {
            State::Filled if batch.more => State::Filled,
            State::Filling | State::Unusable(_) if batch.more => State::Filling,
            State::Filling | State::Filled | State::Unusable(_) => State::Filled,
        };
        Ok(())
    }

    /// Returns the ids of the items that have these words, newest first, all below `before`.
    pub fn find(
        &self,
        words: &str,
        before: Option<u64>,
        rows: u32,
    ) -> Result<Vec<u64>, SearchError> {
        let (conn, files) = self.reader()?;
        let found = file::find(&conn, words, before.map_or(i64::MAX, integer), rows);
        // If the file was replaced since, it needs no repair.
        let found = found.map_err(|error| {
            self.failed(&error, file::is_damage(&error) && lock(&self.readers).files == files)
        })?;
        let mut readers = lock(&self.readers);
        if readers.files == files && readers.idle.len() < IDLE_MAX {
            readers.idle.push(conn);
        }
        Ok(found)
    }

    /// Returns ids in the index after this one, in order; none until the index is known to match
    /// the mail.
    pub fn ids_after(&self, id: u64, rows: u32) -> Result<Vec<u64>, SearchError> {
        let writer = lock(&self.writer);
        let Some(open) = writer.as_ref().filter(|open| open.position.proven) else {
            return Ok(Vec::new());
        };
        let found = file::ids_after(&open.conn, integer(id), rows);
        drop(writer);
        found.map_err(|error| self.failed(&error, !file::is_of_host(&error)))
    }

    /// Removes deleted items from the index.
    pub fn remove(&self, ids: &[u64]) -> Result<(), SearchError> {
        let mut writer = lock(&self.writer);
        let Some(open) = writer.as_mut().filter(|open| open.position.proven) else { return Ok(()) };
        let removed = file::remove(&mut open.conn, ids);
        drop(writer);
        removed.map_err(|error| self.failed(&error, !file::is_of_host(&error)))
    }

    /// Deletes the file, because it is damaged or of other mail; the next [`Self::position`] makes
    /// a new one.
    pub fn forget(&self) {
        let mut writer = lock(&self.writer);
        let mut readers = lock(&self.readers);
        *writer = None;
        *readers = Readers { files: readers.files + 1, ..Readers::default() };
        private::remove(&self.path);
        drop((readers, writer));
        self.wanted.notify_one();
    }

    /// Returns a connection that only reads, and the number of its file.
    fn reader(&self) -> Result<(Connection, u64), SearchError> {
        let mut readers = lock(&self.readers);
        match &readers.state {
            State::Filling => return Err(SearchError::Filling),
            State::Unusable(problem) => return Err(self.file_error(problem)),
            State::Filled => {}
        }
        let files = readers.files;
        // Opened under the lock, so that the file cannot be replaced in between.
        let conn = match readers.idle.pop() {
            Some(conn) => conn,
            None => file::reader(&self.path).map_err(|error| self.file_error(&problem(&error)))?,
        };
        Ok((conn, files))
    }

    /// Handles an error: if a new file repairs it, the file is replaced; any other error may be
    /// temporary.
    fn failed(&self, error: &rusqlite::Error, mended: bool) -> SearchError {
        if mended {
            tracing::warn!(%error, "the search index is damaged and is made anew from the mail");
            self.forget();
            return SearchError::Filling;
        }
        self.file_error(&problem(error))
    }

    fn file_error(&self, problem: &Arc<str>) -> SearchError {
        SearchError::File { path: self.path.clone(), problem: Arc::clone(problem) }
    }
}

fn problem(error: &rusqlite::Error) -> Arc<str> {
    format!("{} ({error})", hint(error)).into()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
