//! Reading: connections that cannot write, kept for reuse.
//!
//! Invariant: nothing is read while the database is faulted: a row could be visible without being
//! on disk.

use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::store::blocked::block_within;
use crate::store::error::Health;
use crate::store::error::StoreError;
use crate::store::file::open;
use crate::sync::{Mutex, MutexGuard, PoisonError, watch};

/// Bounds of the number of connections, which is one for each core: a query that waits for a core
/// need not have one. Each costs a quarter of a megabyte, for the schema and its statements, and
/// all are kept once they were made; other queries wait.
const CONNECTIONS: RangeInclusive<usize> = 2..=4;

#[derive(Debug)]
pub(in crate::store) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    /// The most connections.
    most: usize,
    turns: Arc<Semaphore>,
    health: watch::Receiver<Health>,
}

impl Readers {
    pub(in crate::store) fn new(path: PathBuf, health: watch::Receiver<Health>) -> Self {
        // Quotas of a control group are not looked at: that takes a tenth of a millisecond of each
        // start. A host with more cores than the call can tell has enough of them.
        let cores = rustix::thread::sched_getaffinity(None).map_or(u32::MAX, |cores| cores.count());
        let cores = usize::try_from(cores).unwrap_or(usize::MAX);
        let most = cores.clamp(*CONNECTIONS.start(), *CONNECTIONS.end());
        let turns = Arc::new(Semaphore::new(most));
        Self { path, idle: Mutex::new(Vec::new()), most, turns, health }
    }

    /// Waits until a query may have a connection, as long as it keeps the value.
    pub(in crate::store) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        // The semaphore is never closed.
        Arc::clone(&self.turns).acquire_owned().await.ok()
    }

    /// Waits until no query runs, at most this long; until the value is dropped, none begins. The
    /// caller is a thread that may block.
    pub(in crate::store) fn pause(&self, most: Duration) -> Option<OwnedSemaphorePermit> {
        let all = u32::try_from(self.most).ok()?;
        let mut pause = std::pin::pin!(Arc::clone(&self.turns).acquire_many_owned(all));
        block_within(most, |context| pause.as_mut().poll(context))?.ok()
    }

    /// Runs a query on one snapshot.
    pub(in crate::store) fn read<T, E: From<StoreError>>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, E>,
    ) -> Result<T, E> {
        let conn = self.begin()?;
        let answer = query(&conn);
        self.end(conn)?;
        answer
    }

    fn begin(&self) -> Result<Connection, StoreError> {
        self.health.borrow().check()?;
        let kept = self.lock().pop();
        let conn = kept.map_or_else(|| self.connect(), Ok)?;
        conn.execute_batch("BEGIN")?;
        Ok(conn)
    }

    /// Ends the snapshot, and keeps the connection for the next query.
    fn end(&self, conn: Connection) -> Result<(), StoreError> {
        let ended = conn.execute_batch("COMMIT");
        // Checked again: a fault during the query may have made its rows worthless.
        self.health.borrow().check()?;
        let mut idle = self.lock();
        if ended.is_ok() && idle.len() < self.most {
            idle.push(conn);
        }
        Ok(())
    }

    /// Frees the pages that idle connections have cached.
    pub(in crate::store) fn release_memory(&self) {
        self.lock().iter().for_each(open::release_memory);
    }

    /// Closes the idle connections, so that the database can be opened again.
    pub(in crate::store) fn clear(&self) {
        self.lock().clear();
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(&self.path, flags)?;
        conn.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        conn.pragma_update(None, "query_only", "on")?;
        conn.pragma_update(None, "cache_size", -1024)?;
        // A list of agents runs half a dozen statements in turn for each agent.
        conn.set_prepared_statement_cache_capacity(64);
        Ok(conn)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
