//! The committer: it owns the write connection and runs queued items together, one transaction a
//! batch.
//!
//! Each command runs in a savepoint, so one that fails takes back only itself. Invariant: no reply
//! leaves before the commit of its batch; after a failed commit nothing is answered from the file
//! until a checkpoint has succeeded.

use std::collections::{BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rusqlite::Connection;
use rusqlite::config::DbConfig;

use super::look::Waiting;
use super::reader::Readers;
use super::tx::Counters;
use super::writer::{Item, Job, Ran};
use super::{Committed, Health, Tx, open};
use crate::clock::Clock;
use crate::sync::{mpsc, watch};

pub(super) struct Parts {
    pub(super) path: PathBuf,
    pub(super) conn: Connection,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) committed: Arc<dyn Committed>,
    pub(super) faults: watch::Sender<Health>,
    pub(super) readers: Arc<Readers>,
    pub(super) attention: Arc<AtomicBool>,
}

/// Whether there is a connection to work on.
enum State {
    Open(Connection),
    /// The database failed; nothing of the old connection is trusted.
    Faulted(Arc<str>),
}

/// What works the queue off.
pub(super) struct Committer {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    committed: Arc<dyn Committed>,
    faults: watch::Sender<Health>,
    readers: Arc<Readers>,
    attention: Arc<AtomicBool>,
    state: State,
    counters: Counters,
    waiting: Waiting,
    backlog: VecDeque<Item>,
    /// Whether a sync may have failed since the log was written anew.
    log_is_doubtful: bool,
}

impl std::fmt::Debug for Committer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Committer")
            .field("path", &self.path)
            .field("open", &self.is_open())
            .finish_non_exhaustive()
    }
}

impl Committer {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts { path, conn, clock, committed, faults, readers, attention } = parts;
        let counters = Counters::default();
        let state = match counters.load(&conn) {
            Ok(()) => State::Open(conn),
            Err(error) => {
                let problem = text(error);
                faults.send_replace(Health::Faulted(Arc::clone(&problem)));
                State::Faulted(problem)
            }
        };
        let (waiting, backlog) = (Waiting::default(), VecDeque::new());
        Self {
            path,
            clock,
            committed,
            faults,
            readers,
            attention,
            state,
            counters,
            waiting,
            backlog,
            log_is_doubtful: true,
        }
    }

    /// Whether the database can be used.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// What is to be done before anything that is queued.
    pub(super) fn left_over(&mut self) -> Option<Item> {
        self.backlog.pop_front()
    }

    /// Runs the first item and up to `most - 1` that are queued behind it in one transaction, and
    /// tells what became of them.
    pub(super) fn batch(&mut self, first: Item, items: &mut mpsc::Receiver<Item>, most: usize) {
        let State::Open(conn) = &self.state else { return self.refuse(first) };
        if let Item::Stop(id) = first {
            // Nothing to write: it is not worth a transaction.
            return self.waiting.stop(id);
        }
        let mut tx =
            Tx::new(conn, &self.counters, self.clock.now(), self.attention.load(Ordering::Relaxed));
        if let Err(error) = statement(&tx, "BEGIN IMMEDIATE") {
            let problem = text(error);
            drop(tx);
            self.fail(Arc::clone(&problem), Vec::new(), BTreeSet::new());
            return first.void(&problem);
        }
        let start = tx.mark();
        let (mut jobs, mut looked) = (Vec::new(), BTreeSet::new());
        let queued = Queued { first, items, most };
        let ran = run_all(&mut tx, &*self.clock, queued, &mut self.waiting, &mut jobs, &mut looked);
        if hive_fault::planted!(ReplyBeforeCommit) {
            jobs.drain(..).for_each(Job::commit);
            crate::sync::thread::yield_now();
        }
        hive_fault::point("broker.commit.before");
        match ran.and_then(|()| statement(&tx, "COMMIT").map_err(text)) {
            Ok(()) => {
                hive_fault::point("broker.commit.after");
                let effects = tx.into_effects();
                self.committed.committed(&effects, self.counters.last_event());
                for job in jobs {
                    job.commit();
                    hive_fault::point("broker.replies.between");
                }
                for id in looked {
                    self.waiting.commit(id);
                }
            }
            Err(problem) => {
                // Nobody was told of these numbers. Whether the rows are there after all, the
                // counters learn when they are read again.
                tx.reset(start);
                drop(tx);
                self.fail(problem, jobs, looked);
            }
        }
    }

    /// The batch is void, and so is all that the connection shows.
    fn fail(&mut self, problem: Arc<str>, jobs: Vec<Box<dyn Job>>, looked: BTreeSet<u64>) {
        tracing::error!(%problem, "the database failed; nothing is accepted or answered until it has recovered");
        // First of all nobody reads any more: who hears that their command is void must not find it
        // in the file.
        self.faults.send_replace(Health::Faulted(Arc::clone(&problem)));
        jobs.into_iter().for_each(|job| job.void(&problem));
        self.waiting.void(looked, &problem);
        // Nothing of the old connections is trusted: what they show may never have been synced.
        if let State::Open(conn) = &self.state {
            // Nor may it fold the log as it is closed, for it takes for folded what the disk may
            // have lost.
            drop(conn.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true));
        }
        self.state = State::Faulted(problem);
        self.log_is_doubtful = true;
        self.readers.clear();
    }

    /// Refuses an item that comes while the database cannot be used.
    pub(super) fn refuse(&mut self, item: Item) {
        let problem = match &self.state {
            State::Faulted(problem) => Arc::clone(problem),
            State::Open(_) => "the database was just opened again".into(),
        };
        if let Item::Stop(id) = item {
            return self.waiting.refuse(id, &problem);
        }
        item.void(&problem);
    }

    /// Tries once to open the faulted database again; whether it is open.
    pub(super) fn recover(&mut self) -> bool {
        let opened = self.reopen();
        match opened {
            Ok(conn) => {
                tracing::warn!("the database has recovered");
                self.state = State::Open(conn);
                self.backlog.extend(self.waiting.again());
                self.committed.recovered();
                self.faults.send_replace(Health::Ok);
                true
            }
            Err(error) => {
                tracing::warn!(%error, "the database still cannot be used");
                false
            }
        }
    }

    fn reopen(&mut self) -> Result<Connection, String> {
        // Once for each fault: a disk that stays full would be written to without end.
        if self.log_is_doubtful {
            open::rewrite_log(&self.path).map_err(|error| error.to_string())?;
            self.log_is_doubtful = false;
        }
        let conn = open::reopen(&self.path).map_err(|error| error.to_string())?;
        self.counters.load(&conn).map_err(|error| error.to_string())?;
        Ok(conn)
    }

    /// Folds the log into the database and closes it.
    pub(super) fn close(self) {
        if let State::Open(conn) = &self.state
            && let Err(error) = open::sync(conn)
        {
            tracing::warn!(%error, "the log could not be folded into the database; the next start will do it");
        }
    }
}

/// What a batch may take from.
struct Queued<'q> {
    first: Item,
    items: &'q mut mpsc::Receiver<Item>,
    most: usize,
}

/// Runs queued items, and the looks that they wake, in one transaction. Where that fails, its jobs
/// are still to be told.
fn run_all(
    tx: &mut Tx<'_>,
    clock: &dyn Clock,
    queued: Queued<'_>,
    waiting: &mut Waiting,
    jobs: &mut Vec<Box<dyn Job>>,
    looked: &mut BTreeSet<u64>,
) -> Result<(), Arc<str>> {
    let Queued { first, items, most } = queued;
    let mut next = Some(first);
    let mut count = 0;
    while let Some(item) = next {
        match item {
            Item::Job(job) => {
                jobs.push(job);
                if let Some(job) = jobs.last_mut() {
                    one(tx, |tx| job.run(tx))?;
                }
            }
            Item::Look(id, agent, look) => {
                waiting.insert(id, agent, look);
                look_at(tx, waiting, id, looked)?;
            }
            Item::Again(id) => look_at(tx, waiting, id, looked)?,
            Item::Stop(id) => waiting.stop(id),
        }
        count += 1;
        next = if count < most { items.try_recv().ok() } else { None };
        // It may have been asked for since the batch began: no span that it sets may begin before
        // that.
        tx.now = clock.now();
    }
    for agent in tx.woken() {
        for id in waiting.of(agent) {
            look_at(tx, waiting, id, looked)?;
        }
    }
    Ok(())
}

/// Runs a look, if it still waits and is still wanted.
fn look_at(
    tx: &Tx<'_>,
    waiting: &mut Waiting,
    id: u64,
    looked: &mut BTreeSet<u64>,
) -> Result<(), Arc<str>> {
    let Some(look) = waiting.get(id).filter(|look| !look.is_over()) else { return Ok(()) };
    if !look.is_wanted() {
        waiting.remove(id);
        return Ok(());
    }
    looked.insert(id);
    one(tx, |tx| look.run(tx))
}

fn text(error: rusqlite::Error) -> Arc<str> {
    error.to_string().into()
}

/// Runs one command in a savepoint.
fn one(tx: &Tx<'_>, command: impl FnOnce(&Tx<'_>) -> Ran) -> Result<(), Arc<str>> {
    let mark = tx.mark();
    statement(tx, "SAVEPOINT command").map_err(text)?;
    match command(tx) {
        Ran::Keep => statement(tx, "RELEASE command").map_err(text),
        Ran::Undo => {
            tx.reset(mark);
            statement(tx, "ROLLBACK TO command")
                .and_then(|()| statement(tx, "RELEASE command"))
                .map_err(text)
        }
        Ran::Void(problem) => Err(problem),
    }
}

fn statement(conn: &Connection, sql: &str) -> rusqlite::Result<()> {
    conn.prepare_cached(sql)?.execute([]).map(|_| ())
}
