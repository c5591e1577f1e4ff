//! The store: SQLite behind two doors, `read` and `write`.
//!
//! One thread owns the write connection and commits queued commands together; reads use connections of their own that cannot write. SQL
//! lives here alone, one file per table. Invariant: `write` answers after the commit that made its work durable (WAL with
//! `synchronous=FULL`, which syncs the log at every commit), or with an error that says it is not known to be.

pub mod agent;
pub mod attention;
pub mod backup;
pub mod check;
pub mod command;
pub mod delivery;
pub mod event;
pub mod inbox;
pub mod look;
pub mod loose_end;
pub mod message;
pub mod question;
pub mod reminder;
pub mod request;
pub mod retention;
pub mod search;
pub mod turn;
pub mod turn_events;
pub mod turn_stats;
pub mod turn_tool;

mod codec;
mod migrate;
mod open;
mod reader;
mod tx;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hive_core::time::Now;
use tokio::sync::watch;

use crate::clock::Clock;
pub use agent::AgentKey;
pub use migrate::{MigrateError, SCHEMA_VERSION};
pub use open::OpenError;
pub use tx::Tx;

/// What has to happen once a command is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The inbox has new work.
    Wake(AgentKey),
    /// The agent's session ended or was replaced.
    Session(AgentKey),
    /// The agent has a new command, or was changed.
    Told(AgentKey),
    /// Something became due earlier than it was: a lease, a grace time.
    Due,
    /// Something became due earlier than it was by the wall clock: a deadline, a reminder.
    WallDue,
    /// Something began to wait on the operator.
    Attention,
}

/// Told of what was committed, on the writer's thread, before the replies leave. Must not block.
pub trait Committed: Send + Sync {
    /// These effects are on disk; `last_event` is the newest event.
    fn committed(&self, effects: &[Effect], last_event: u64);
}

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

/// The open database.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    writer: writer::Writer,
    readers: Arc<reader::Readers>,
    health: watch::Receiver<Health>,
    attention: Arc<AtomicBool>,
    copying: Arc<tokio::sync::Mutex<()>>,
    _lock: std::fs::File,
}

impl Store {
    /// Opens the database in `dir`, creating or migrating it as needed, and syncs what an earlier process may have left unsynced.
    pub fn open(dir: &Path, clock: Arc<dyn Clock>, committed: Arc<dyn Committed>) -> Result<Self, OpenError> {
        let open::Opened { path, conn, lock } = open::open(dir, clock.as_ref())?;
        let (faults, health) = watch::channel(Health::Ok);
        let readers = Arc::new(reader::Readers::new(path.clone(), health.clone()));
        let attention = Arc::new(AtomicBool::new(false));
        let parts = writer::Parts {
            path: path.clone(),
            conn,
            clock: Arc::clone(&clock),
            committed,
            faults,
            readers: Arc::clone(&readers),
            attention: Arc::clone(&attention),
        };
        let writer = writer::Writer::start(parts).map_err(OpenError::Thread)?;
        Ok(Self { path, clock, writer, readers, health, attention, copying: Arc::default(), _lock: lock })
    }

    /// From the next commit on, what begins to wait on the operator goes into the outbox; before that nobody would take it out again.
    pub fn use_attention(&self) {
        self.attention.store(true, Ordering::Relaxed);
    }

    /// Runs a command in a transaction and answers after the commit. What the command returns as an error is undone.
    pub async fn write<T, E, F>(&self, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.write(command).await
    }

    /// Queues a look: a command that waits for an agent's wake where it finds nothing, and then runs in the commit that wakes it.
    pub async fn look<T, E, F>(&self, agent: AgentKey, look: F) -> look::Looking<T, E>
    where
        F: FnMut(&Tx<'_>) -> Result<look::Seen<T>, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.look(agent, look).await
    }

    /// Runs a query on a consistent snapshot that includes every commit answered so far.
    pub async fn read<T, E, F>(&self, query: F) -> Result<T, E>
    where
        F: FnOnce(&rusqlite::Connection, Now) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let readers = Arc::clone(&self.readers);
        let now = self.clock.now();
        let run = tokio::task::spawn_blocking(move || readers.read(|conn| query(conn, now)));
        run.await.unwrap_or_else(|_| Err(StoreError::Panicked.into()))
    }

    /// Whether the database can be used; changes are seen on the receiver.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finishes what is queued, folds the log into the database and closes it.
    pub fn close(&self) {
        self.writer.close();
        self.readers.clear();
    }
}
