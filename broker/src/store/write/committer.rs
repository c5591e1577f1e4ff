//! The committer: it owns the write connection and runs queued items together, one transaction per
//! batch.
//!
//! A failed command rolls back only itself: it ran in a savepoint, or it had written nothing.
//! Invariant: no reply is sent before the commit of its batch; after a failed commit no row of the
//! file is returned until a checkpoint has succeeded.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use hive_core::time::BootTime;
use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::cache::Cache;
use super::command::{one, statement, text};
use super::folding::Folding;
use super::held::Prepared;
use super::measured::Measured;
use super::new_traces::NewTraces;
use super::queue::{Announce, Item, Job, Most};
use super::tx::{Counters, Tx};
use super::waiter::{Asked, Waiters};
use crate::clock::Clock;
use crate::kernel;
use crate::measures::Measures;
use crate::store::effect::Committed;
use crate::store::error::Health;
use crate::store::file::fold::new_log_pages;
use crate::store::file::open;
use crate::store::file::reader::Readers;
use crate::sync::{mpsc, watch};

/// The parts of the store that the committer shares.
pub(in crate::store) struct Parts {
    pub(in crate::store) path: PathBuf,
    pub(in crate::store) clock: Arc<dyn Clock>,
    pub(in crate::store) committed: Arc<dyn Committed>,
    pub(in crate::store) faults: watch::Sender<Health>,
    pub(in crate::store) readers: Arc<Readers>,
    pub(in crate::store) attention: Arc<AtomicBool>,
    pub(in crate::store) traces: Arc<AtomicBool>,
    pub(in crate::store) measures: Arc<OnceLock<Arc<Measures>>>,
}

/// The connection, or the fault of the database.
enum State {
    Open(Connection),
    /// The connection is lent to the one that runs the batches.
    Lent,
    /// The database failed; nothing of the old connection is trusted.
    Faulted(Arc<str>),
}

/// Runs the batches.
pub(super) struct Committer {
    parts: Parts,
    state: State,
    counters: Counters,
    cache: Cache,
    waiters: Waiters,
    pub(super) folding: Folding,
    new_traces: NewTraces,
    /// Whether a sync may have failed since the log was last rewritten.
    log_is_doubtful: bool,
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committer")
            .field("path", &self.parts.path)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}

impl Committer {
    pub(super) fn new(parts: Parts, conn: Connection) -> Self {
        let counters = Counters::default();
        let state = match counters.load(&conn) {
            Ok(()) => State::Open(conn),
            Err(error) => {
                let problem = text(error);
                parts.faults.send_replace(Health::Faulted(Arc::clone(&problem)));
                State::Faulted(problem)
            }
        };
        Self {
            new_traces: NewTraces::new(parts.clock.now().boot),
            parts,
            state,
            counters,
            cache: Cache::default(),
            waiters: Waiters::default(),
            folding: Folding::default(),
            log_is_doubtful: true,
        }
    }

    /// Returns whether the database can be used.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_) | State::Lent)
    }

    /// Lends the connection for batches.
    pub(super) fn lend(&mut self) -> Option<Connection> {
        match std::mem::replace(&mut self.state, State::Lent) {
            State::Open(conn) => Some(conn),
            other @ (State::Lent | State::Faulted(_)) => {
                self.state = other;
                None
            }
        }
    }

    /// Takes the connection back, and closes it if a batch has failed on it.
    pub(super) fn take_back(&mut self, conn: Connection) {
        if matches!(self.state, State::Lent) {
            self.state = State::Open(conn);
        }
    }

    /// Returns how many waiters may have to be polled, beside what is queued.
    pub(super) fn woken_count(&self) -> usize {
        self.waiters.woken_count()
    }

    /// Returns the time.
    pub(super) fn now(&self) -> BootTime {
        self.parts.clock.now().boot
    }

    /// Runs the first item and queued ones in one transaction, polls woken waiters, and notifies
    /// their callers; returns the number of items. Then [`announce`](Self::announce) is due.
    pub(super) fn batch(
        &mut self,
        conn: &Connection,
        statements: &dyn Prepared,
        first: Option<Item>,
        items: &mut mpsc::Receiver<Item>,
        most: Most,
    ) -> usize {
        if let Some(Item::Cancel(id)) = first
            && self.waiters.woken_count() == 0
        {
            // There is nothing to write, so no transaction is needed.
            self.waiters.cancel(id);
            self.note_waiting();
            return 1;
        }
        let measured = self.parts.measures.get().map(Measured::begin);
        let now = self.parts.clock.now();
        let is_tracing = self.parts.traces.load(Ordering::Relaxed);
        let new_traces = is_tracing.then(|| self.new_traces.refilled(now.boot));
        let mut tx = Tx::new(
            conn,
            &self.counters,
            &self.cache,
            now,
            self.parts.attention.load(Ordering::Relaxed),
        )
        .with_statements(statements)
        .counted(measured.is_some())
        .tracing(new_traces);
        if let Err(error) = statement(&tx, "BEGIN IMMEDIATE") {
            let problem = text(error);
            drop(tx);
            self.fail(conn, problem, Vec::new(), BTreeSet::new());
            if let Some(item) = first {
                self.refuse(item);
            }
            return 0;
        }
        let start = tx.mark();
        let (mut jobs, mut polled) = (Vec::new(), BTreeSet::new());
        let queued = Queued { first, items, most };
        let ran =
            run_all(&mut tx, &*self.parts.clock, queued, &mut self.waiters, &mut jobs, &mut polled);
        if hive_fault::planted!(ReplyBeforeCommit) {
            jobs.drain(..).for_each(Job::commit);
            crate::sync::thread::yield_now();
        }
        if hive_fault::planted!(LeasedBeforeCommit) {
            std::mem::take(&mut polled).into_iter().for_each(|id| self.waiters.commit(id));
        }
        hive_fault::point("broker.commit.before");
        let committed = ran.and_then(|items| {
            tx.write_back().and_then(|()| statement(&tx, "COMMIT")).map_err(text)?;
            Ok(items)
        });
        match committed {
            Ok(items) => {
                hive_fault::point("broker.commit.after");
                self.cache.committed();
                let effects = tx.into_effects();
                if let Some(measured) = measured {
                    measured.end(items, &effects);
                }
                self.parts.committed.committed(&effects, self.counters.last_event());
                // Mail before the receipts of it: the first one that is woken runs first.
                for id in polled {
                    self.waiters.commit(id);
                }
                for job in jobs {
                    job.commit();
                    hive_fault::point("broker.replies.between");
                }
                self.waiters.wake_again();
                self.note_waiting();
                if let Some(pages) = new_log_pages() {
                    self.folding.committed(pages);
                }
                items
            }
            Err(problem) => {
                // No caller has these numbers. If the rows are on disk after all, the counters are
                // updated when they are read again.
                tx.reset(start);
                drop(tx);
                self.fail(conn, problem, jobs, polled);
                0
            }
        }
    }

    /// Notes how many calls wait, if metrics are offered.
    fn note_waiting(&self) {
        if let Some(measures) = self.parts.measures.get() {
            measures.set_waiting(self.waiters.count());
        }
    }

    /// Returns what tells the watchers of this batch, which run after its callers.
    pub(super) fn announce(&self) -> Announce {
        Announce::new(Arc::clone(&self.parts.committed), self.counters.last_event())
    }

    /// Folds the log if it has grown so long that it is not left to an idle moment.
    pub(super) fn fold_if_long(&mut self, conn: &Connection) {
        if self.is_open() && self.folding.is_long() {
            self.fold(conn);
        }
    }

    /// Folds the log. After an error of the disk the connection is not trusted.
    pub(super) fn fold(&mut self, conn: &Connection) {
        if let Err(error) = self.folding.fold(conn, &self.parts.readers) {
            self.fail(conn, text(error), Vec::new(), BTreeSet::new());
        }
    }

    /// Gives the memory of cached pages back to the kernel, which still has these in its own cache.
    pub(super) fn release_memory(&self, conn: &Connection) {
        if self.is_open() {
            self.cache.release_memory();
            open::release_memory(conn);
            self.parts.readers.release_memory();
            kernel::trim_heap();
        }
    }

    /// Aborts the batch, and closes the connection, whose view of the file is not trusted.
    fn fail(
        &mut self,
        conn: &Connection,
        problem: Arc<str>,
        jobs: Vec<Box<dyn Job>>,
        polled: BTreeSet<u64>,
    ) {
        tracing::error!(%problem, "the database failed; nothing is accepted or answered until it has recovered");
        // Readers stop first: a caller whose command was aborted must not find it in the file.
        self.parts.faults.send_replace(Health::Faulted(Arc::clone(&problem)));
        jobs.into_iter().for_each(|job| job.abort(&problem));
        self.waiters.abort(polled, &problem);
        // The rows that the old connections show may never have been synced.
        // Closing must not checkpoint either, because the disk may have lost the pages that it
        // writes.
        drop(conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
        self.cache.clear();
        self.state = State::Faulted(problem);
        self.log_is_doubtful = true;
        self.parts.readers.clear();
    }

    /// Refuses an item that arrives while the database cannot be used.
    pub(super) fn refuse(&mut self, item: Item) {
        let problem = match &self.state {
            State::Faulted(problem) => Arc::clone(problem),
            State::Open(_) | State::Lent => "the database was just opened again".into(),
        };
        if let Item::Cancel(id) = item {
            return self.waiters.refuse(id, &problem);
        }
        item.abort(&problem);
    }

    /// Tries once to open the faulted database again; returns whether it is open.
    pub(super) fn recover(&mut self) -> bool {
        match self.reopen() {
            Ok(conn) => {
                tracing::warn!("the database has recovered");
                self.state = State::Open(conn);
                self.waiters.retry_all();
                self.parts.committed.recovered();
                self.parts.faults.send_replace(Health::Ok);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the database still cannot be used");
                false
            }
        }
    }

    fn reopen(&mut self) -> Result<Connection, String> {
        // Once for each fault, so that a full disk is not written to again and again.
        if self.log_is_doubtful {
            open::rewrite_log(&self.parts.path).map_err(|error| error.to_string())?;
            self.log_is_doubtful = false;
        }
        let conn = open::reopen(&self.parts.path).map_err(|error| error.to_string())?;
        self.folding = Folding::default();
        self.counters.load(&conn).map_err(|error| error.to_string())?;
        Ok(conn)
    }

    /// Checkpoints and closes the database.
    pub(super) fn close(self) {
        if let State::Open(conn) = &self.state
            && let Err(error) = open::sync(conn)
        {
            tracing::warn!(%error, "the log could not be folded into the database; the next start will do it");
        }
    }
}

/// The items of a batch.
struct Queued<'q> {
    first: Option<Item>,
    items: &'q mut mpsc::Receiver<Item>,
    most: Most,
}

/// Runs queued items, and polls woken waiters, in one transaction; returns the number of items. If
/// that fails, the caller aborts the jobs.
fn run_all(
    tx: &mut Tx<'_>,
    clock: &dyn Clock,
    queued: Queued<'_>,
    waiters: &mut Waiters,
    jobs: &mut Vec<Box<dyn Job>>,
    polled: &mut BTreeSet<u64>,
) -> Result<usize, Arc<str>> {
    let Queued { first, items, most } = queued;
    let mut next = first.or_else(|| items.try_recv().ok());
    let (mut count, before) = (0, tx.changes());
    while let Some(item) = next {
        match item {
            Item::Job(job) => {
                jobs.push(job);
                if let Some(job) = jobs.last_mut() {
                    one(tx, job.undo(), |tx| job.run(tx))?;
                }
            }
            Item::Wait(id, agent, waiter) => {
                waiters.insert(id, agent, waiter);
                poll(tx, waiters, id, Asked::Yes, polled)?;
            }
            Item::Retry(id) => poll(tx, waiters, id, Asked::Yes, polled)?,
            Item::Cancel(id) => waiters.cancel(id),
        }
        count += 1;
        let is_full = count >= most.items || tx.changes() - before >= most.changes;
        next = if is_full { None } else { items.try_recv().ok() };
        // An item may be newer than the batch: no time span that it sets may begin before it was
        // queued.
        tx.now = clock.now();
    }
    waiters.wake(tx.hinted());
    for _ in 0..most.polls {
        let Some((id, asked)) = waiters.next_woken() else { break };
        poll(tx, waiters, id, asked, polled)?;
    }
    Ok(count)
}

/// Polls a waiter that is pending and whose caller still waits.
fn poll(
    tx: &Tx<'_>,
    waiters: &mut Waiters,
    id: u64,
    asked: Asked,
    polled: &mut BTreeSet<u64>,
) -> Result<(), Arc<str>> {
    let Some(waiter) = waiters.due_for_poll(id) else { return Ok(()) };
    polled.insert(id);
    one(tx, waiter.undo(), |tx| waiter.run(tx, asked == Asked::Yes))
}
