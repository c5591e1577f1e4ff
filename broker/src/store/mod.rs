//! The store: SQLite behind two doors, `read` and `write`.
//!
//! One thread owns the write connection and commits queued commands together; reads use connections
//! of their own that cannot write. SQL lives here alone, one file per table. Invariant: `write`
//! answers after the commit that made its work durable (WAL with `synchronous=FULL`, which syncs
//! the log at every commit), or with an error that says it is not known to be.

pub mod agent;
pub mod attention;
pub mod backup;
pub mod check;
pub mod command;
pub mod delivery;
pub mod effect;
pub mod event;
pub mod inbox;
pub mod look;
pub mod loose_end;
pub mod message;
pub mod purge;
pub mod question;
pub mod reminder;
pub mod request;
pub mod retention;
pub mod search;
pub mod tree;
pub mod turn;
pub mod turn_events;
pub mod turn_stats;
pub mod turn_tool;

mod codec;
mod committer;
mod hand;
mod lock;
mod migrate;
mod open;
mod reader;
mod reply;
mod tx;
mod writer;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hive_core::time::Now;

use crate::clock::Clock;
use crate::sync::watch;
pub use agent::AgentKey;
pub use effect::Effect;
pub use hand::{Hand, Stepped};
pub use migrate::{MigrateError, SCHEMA_VERSION};
pub use open::OpenError;
pub use tx::Tx;
pub(crate) use writer::is_fatal;

/// Told of what was committed, on the writer's thread, before the replies leave. Must not block.
pub trait Committed: Send + Sync {
    /// These effects are on disk; `last_event` is the newest event.
    fn committed(&self, effects: &[Effect], last_event: u64);

    /// The database can be used again after a failure. A batch that was aborted may be on disk
    /// after all, and its effects were not applied.
    fn recovered(&self) {}
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
    by_hand: bool,
    _lock: lock::Lock,
}

/// A store but for its writer.
struct Prepared {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    readers: Arc<reader::Readers>,
    health: watch::Receiver<Health>,
    attention: Arc<AtomicBool>,
    lock: lock::Lock,
}

impl Prepared {
    fn with(self, writer: writer::Writer, by_hand: bool) -> Store {
        let Self { path, clock, readers, health, attention, lock } = self;
        Store {
            path,
            clock,
            writer,
            readers,
            health,
            attention,
            copying: Arc::default(),
            by_hand,
            _lock: lock,
        }
    }
}

fn prepare(
    dir: &Path,
    clock: Arc<dyn Clock>,
    committed: Arc<dyn Committed>,
) -> Result<(Prepared, committer::Parts), OpenError> {
    let open::Opened { path, conn, lock } = open::open(dir, clock.as_ref())?;
    let (faults, health) = watch::channel(Health::Ok);
    let readers = Arc::new(reader::Readers::new(path.clone(), health.clone()));
    let attention = Arc::new(AtomicBool::new(false));
    let parts = committer::Parts {
        path: path.clone(),
        conn,
        clock: Arc::clone(&clock),
        committed,
        faults,
        readers: Arc::clone(&readers),
        attention: Arc::clone(&attention),
    };
    Ok((Prepared { path, clock, readers, health, attention, lock }, parts))
}

impl Store {
    /// Opens the database in `dir`, creating or migrating it as needed, and syncs what an earlier
    /// process may have left unsynced.
    pub fn open(
        dir: &Path,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
    ) -> Result<Self, OpenError> {
        let (open, parts) = prepare(dir, clock, committed)?;
        Ok(open.with(writer::Writer::start(parts).map_err(OpenError::Thread)?, false))
    }

    /// The same without threads, for a simulation: nothing is written but by the steps of the hand,
    /// and what blocks does so where it is called.
    pub fn open_by_hand(
        dir: &Path,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
    ) -> Result<(Self, Hand), OpenError> {
        let (open, parts) = prepare(dir, clock, committed)?;
        let (writer, hand) = writer::Writer::by_hand(parts);
        Ok((open.with(writer, true), hand))
    }

    /// From the next commit on, what begins to wait on the operator goes into the outbox; before
    /// that nobody would take it out again.
    pub fn use_attention(&self) {
        self.attention.store(true, Ordering::Relaxed);
    }

    /// Runs a command in a transaction and answers after the commit. What the command returns as an
    /// error is undone.
    pub async fn write<T, E, F>(&self, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.write(command).await
    }

    /// Queues a look: a command that waits for an agent's wake where it finds nothing, and then
    /// runs in the commit that wakes it.
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
        self.blocking(move || readers.read(|conn| query(conn, now)))
            .await
            .unwrap_or_else(|error| Err(error.into()))
    }

    /// Does what may block on a thread that is there for it; where the store is worked by hand, on
    /// the caller's.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.by_hand || cfg!(feature = "interleavings") {
            return Ok(work());
        }
        let (reply, answer) = reply::reply();
        // One type to the runtime, so that its code for a task is compiled once.
        let work: Box<dyn FnOnce() + Send> = Box::new(move || reply.send(work()));
        tokio::task::spawn_blocking(work);
        answer.await.ok_or(StoreError::Panicked)
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
