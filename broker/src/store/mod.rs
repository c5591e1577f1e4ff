//! The store: SQLite behind two doors, `read` and `write`.
//!
//! One at a time has the write connection, mostly a thread for it, and commits queued commands
//! together; reads use connections of their own that cannot write. Only this module has SQL, one
//! file per table. Invariant: `write` answers after the commit that made its work durable, or with
//! an error that says it is not known to be. (WAL with `synchronous=FULL` syncs the log at every
//! commit.)

pub mod search;

mod blocked;
mod codec;
mod columns;
mod effect;
mod error;
mod file;
mod first;
mod key;
mod place;
mod row;
mod statement;
mod table;
mod write;

#[cfg(test)]
mod tests;

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hive_core::time::Now;
use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::measures::Measures;
use crate::sync::watch;
pub use effect::{Committed, Effect, Live, PresenceChange};
pub(crate) use error::is_fatal;
pub use error::{CommandError, Health, StoreError};
pub use file::migrate::{MigrateError, SCHEMA_VERSION};
pub use file::open::OpenError;
pub use file::progress::Migrating;
pub use file::{archive, backup, before, check, content, restore, turn_events};
pub use key::AgentKey;
pub use place::Answer;
pub use table::{
    action_run, agent, attention, command, delivery, event, inbox, lease, level, log, loose_end,
    message, purge, question, reminder, request, retention, schedule, stream, traced, tree, turn,
    turn_stats, turn_tool, wanted,
};
pub use write::stepped::{Step, SteppedStore};
pub use write::tx::Tx;
pub use write::waiter;

use archive::ArchiveError;
use backup::{Copied, CopyError};
use before::Migration;
use check::{CheckError, Checked};
use file::reader::Readers;
use file::{lock, open};
use place::{Place, Waiting};
use waiter::{Life, Poll, Waiter, Wake};
use write::committer::Parts;
use write::queue::Undo;
use write::writer::{Thread, Writer};

/// Runs work on a thread for such work. The runtime sees all of it as one type, so that its code
/// for it is compiled once and not for each query.
async fn on_a_thread(work: Box<dyn FnOnce() + Send>) -> Result<(), StoreError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| StoreError::Panicked)
}

/// The open database.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    writer: Writer,
    readers: Arc<Readers>,
    health: watch::Receiver<Health>,
    attention: Arc<AtomicBool>,
    traces: Arc<AtomicBool>,
    measures: Arc<OnceLock<Arc<Measures>>>,
    copying: Arc<tokio::sync::Mutex<()>>,
    is_stepped: bool,
    _lock: lock::Lock,
}

impl Store {
    /// Opens the database in `dir`, creating or migrating it as needed, and syncs what an earlier
    /// process may have left unsynced.
    pub fn open(
        dir: &Path,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
    ) -> Result<Self, OpenError> {
        let thread = Thread::start().map_err(OpenError::Thread)?;
        let opened = open::open(dir, clock.as_ref(), || {}, |_| Ok(()), Migration::SILENT)?;
        Ok(Self::on(thread, opened, clock, committed))
    }

    /// Opens the database; a new one is created with `rows` in it. If they are refused, or there is
    /// a database, the caller writes them as any others. They have no effects. `begin` is called as
    /// soon as the directory is this broker's, if there is a database that needs no migration. If
    /// it is migrated, `migration` says how.
    pub fn open_filled<E: Display>(
        dir: &Path,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
        begin: impl FnOnce(),
        rows: impl FnOnce(&Tx<'_>) -> Result<(), E>,
        migration: Migration<'_>,
    ) -> Result<Self, OpenError> {
        let thread = Thread::start().map_err(OpenError::Thread)?;
        let now = clock.now();
        let write = |conn: &Connection| first::write(conn, now, rows);
        let opened = open::open(dir, clock.as_ref(), begin, write, migration)?;
        Ok(Self::on(thread, opened, clock, committed))
    }

    /// Returns a store whose writer is this thread.
    fn on(
        thread: Thread,
        opened: open::Opened,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
    ) -> Self {
        let start = |parts, conn| (Writer::on(thread, parts, conn), ());
        Self::with(opened, clock, committed, start).0
    }

    /// Opens it without threads, for a simulation: only steps of the [`SteppedStore`] write, and
    /// work that blocks runs on the caller's thread.
    pub fn open_stepped(
        dir: &Path,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
    ) -> Result<(Self, SteppedStore), OpenError> {
        let opened = open::open(dir, clock.as_ref(), || {}, |_| Ok(()), Migration::SILENT)?;
        let (mut store, stepped) = Self::with(opened, clock, committed, Writer::stepped);
        store.is_stepped = true;
        Ok((store, stepped))
    }

    /// Starts the writer of the database; also returns what the writer is stepped with.
    fn with<S>(
        opened: open::Opened,
        clock: Arc<dyn Clock>,
        committed: Arc<dyn Committed>,
        start: impl FnOnce(Parts, Connection) -> (Writer, S),
    ) -> (Self, S) {
        let open::Opened { path, conn, lock } = opened;
        let (faults, health) = watch::channel(Health::Ok);
        let readers = Arc::new(Readers::new(path.clone(), health.clone()));
        let attention = Arc::new(AtomicBool::new(false));
        let traces = Arc::new(AtomicBool::new(false));
        let measures = Arc::new(OnceLock::new());
        let parts = Parts {
            path: path.clone(),
            clock: Arc::clone(&clock),
            committed,
            faults,
            readers: Arc::clone(&readers),
            attention: Arc::clone(&attention),
            traces: Arc::clone(&traces),
            measures: Arc::clone(&measures),
        };
        let (writer, stepped) = start(parts, conn);
        let store = Self {
            path,
            clock,
            writer,
            readers,
            health,
            attention,
            traces,
            measures,
            copying: Arc::default(),
            is_stepped: false,
            _lock: lock,
        };
        (store, stepped)
    }

    /// Fills the operator outbox from the next commit on; without a notifier, no task would drain
    /// it.
    pub fn use_outbox(&self) {
        self.attention.store(true, Ordering::Relaxed);
    }

    /// Begins a trace for all work that has none, from the next commit on.
    pub fn begin_traces(&self) {
        self.traces.store(true, Ordering::Relaxed);
    }

    /// Counts commits, and what they bring about, from the next one on; returns the counts.
    pub fn measure(&self) -> Arc<Measures> {
        Arc::clone(self.measures.get_or_init(Arc::default))
    }

    /// Runs a command in a transaction and returns its result after the commit. If the command
    /// returns an error, its changes are undone.
    pub fn write<T, E, F>(&self, command: F) -> Answer<'_, T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.write_compact(command)
    }

    /// Runs a command that checks before it writes, without the cost of a savepoint. If it fails
    /// after it has written, its whole batch is aborted, as by a fault of the disk.
    pub async fn write_after_checks<T, E, F>(&self, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.write(Undo::Nothing, command).await
    }

    /// Queues a waiter: a command that is polled in each commit that wakes its agent, until it is
    /// ready.
    pub async fn wait<T, E, F>(&self, agent: AgentKey, mut poll: F) -> Waiter<T, E>
    where
        F: FnMut(&Tx<'_>) -> Result<Poll<T>, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.wait(Undo::Savepoint, Life::Once, agent, move |tx, _| poll(tx)).await
    }

    /// Queues a waiter whose polls check before they write; for these, as for the commands of
    /// [`Self::write_after_checks`], there is no savepoint.
    pub async fn wait_after_checks<T, E, F>(&self, agent: AgentKey, mut poll: F) -> Waiter<T, E>
    where
        F: FnMut(&Tx<'_>) -> Result<Poll<T>, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.wait(Undo::Nothing, Life::Once, agent, move |tx, _| poll(tx)).await
    }

    /// Queues a waiter that goes on after it was ready, until its caller drops it. Its polls check
    /// before they write.
    pub async fn stand_after_checks<T, E, F>(&self, agent: AgentKey, poll: F) -> Waiter<T, E>
    where
        F: FnMut(&Tx<'_>, Wake) -> Result<Poll<T>, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        self.writer.wait(Undo::Nothing, Life::Standing, agent, poll).await
    }

    /// Runs a query on a consistent snapshot that includes every commit answered so far.
    pub fn read<T, E, F>(&self, query: F) -> Answer<'_, T, E>
    where
        F: FnOnce(&Connection, Now) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let place = Place::default();
        let work = {
            let (place, readers) = (place.clone(), Arc::clone(&self.readers));
            move |now| place.put(readers.read(|conn| query(conn, now)))
        };
        Answer::new(self.look(Box::new(work)), place)
    }

    /// Does the work of a query when it is its turn.
    fn look(&self, work: Box<dyn FnOnce(Now) + Send>) -> Waiting<'_> {
        Box::pin(async move {
            let turn = self.readers.turn().await;
            let now = self.clock.now();
            let work = move || {
                work(now);
                drop(turn);
            };
            self.blocking(work).await
        })
    }

    /// Runs work that may block on a thread for such work; in a stepped store on the caller's.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.is_stepped || cfg!(feature = "interleavings") {
            return Ok(work());
        }
        let (answer, answered) = tokio::sync::oneshot::channel();
        // A caller that has given up does not wait for the answer.
        on_a_thread(Box::new(move || drop(answer.send(work())))).await?;
        answered.await.map_err(|_| StoreError::Panicked)
    }

    /// Copies the database, unless another copy is being made or read. Stops once `stop` is
    /// cancelled.
    pub async fn copy(&self, stop: CancellationToken) -> Result<Copied, CopyError> {
        self.health.borrow().check()?;
        let slot = Arc::clone(&self.copying).try_lock_owned().map_err(|_| CopyError::UnderWay)?;
        let (path, now) = (self.path.clone(), self.clock.now().wall);
        let copied = self.blocking(move || backup::copy(&path, now, stop, slot)).await;
        // Checked again: after a fault the rows may be worthless.
        self.health.borrow().check()?;
        copied.unwrap_or_else(|error| Err(CopyError::Store(error)))
    }

    /// Adds a copy to the backups in `dir`, and keeps the newest `keep` of them. Stops once `stop`
    /// is cancelled.
    pub async fn archive(
        &self,
        dir: &Path,
        keep: u32,
        stop: CancellationToken,
    ) -> Result<PathBuf, ArchiveError> {
        self.health.borrow().check().map_err(CopyError::from)?;
        let slot = Arc::clone(&self.copying).try_lock_owned().map_err(|_| CopyError::UnderWay)?;
        let (path, dir, now) = (self.path.clone(), dir.to_path_buf(), self.clock.now().wall);
        let added = self.blocking(move || archive::add(&path, &dir, keep, now, stop, slot)).await;
        added.unwrap_or_else(|error| Err(CopyError::Store(error).into()))
    }

    /// Reads the whole database and reports its problems. Stops once `stop` is cancelled.
    pub async fn check(&self, stop: CancellationToken) -> Result<Checked, CheckError> {
        self.health.borrow().check()?;
        let path = self.path.clone();
        let checked = self.blocking(move || {
            let checked = check::check(&path, stop.clone());
            if stop.is_cancelled() { Err(CheckError::Stopped) } else { Ok(checked) }
        });
        let checked = checked.await;
        self.health.borrow().check()?;
        checked.unwrap_or_else(|error| Err(CheckError::Store(error)))
    }

    /// Returns whether the database can be used; the receiver sees changes.
    #[must_use]
    pub fn health(&self) -> watch::Receiver<Health> {
        self.health.clone()
    }

    /// Returns the path of the database file.
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
