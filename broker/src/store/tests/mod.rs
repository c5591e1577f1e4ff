//! Tests of the store on real files.

mod archive;
mod backup;
mod batch;
mod cancelled_waiters;
mod counted_requests;
mod create;
mod each_version;
mod event_pages;
mod faults;
mod folding;
mod fresh_rows;
mod long_history;
mod many_waiters;
mod memory;
mod migrations;
mod open;
mod plans;
mod restore;
mod seat;
mod standing_waiters;
mod turn_lines;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::id::MessageId;
use hive_core::message::Origin;

use super::event::{Fact, log};
use super::message::{NewMessage, To};
use super::statement::all;
use super::{AgentKey, CommandError, Committed, Effect, Health, Store, StoreError, Tx};
use crate::clock::ManualClock;

/// Longer than any step of a test takes.
const GUARD: Duration = Duration::from_secs(30);

/// The error of a test's command.
#[derive(Debug, thiserror::Error)]
enum Failed {
    #[error("refused")]
    Refused,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl CommandError for Failed {
    fn storage(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }
}

/// A commit, as the store reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Commit {
    effects: Vec<Effect>,
    last_event: u64,
}

/// The commits so far.
#[derive(Debug, Default)]
struct Commits(Mutex<Vec<Commit>>);

impl Commits {
    fn all(&self) -> Vec<Commit> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Committed for Commits {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        let commit = Commit { effects: effects.to_vec(), last_event };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(commit);
    }

    fn answered(&self, _: u64) {}
}

/// Returns a directory in memory, if the host has one.
fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory for a test")
}

fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new("boot-0"))
}

/// Opens the store of a directory that outlives it.
fn open(dir: &Path) -> (Store, Arc<Commits>) {
    let commits = Arc::new(Commits::default());
    let committed: Arc<dyn Committed> = Arc::<Commits>::clone(&commits);
    (Store::open(dir, clock(), committed).expect("it opens"), commits)
}

/// Writes a message and an event, as a send does; returns the id of the message.
fn write(tx: &Tx<'_>, body: &str) -> Result<u64, Failed> {
    let id = tx.next_id();
    let message_id = MessageId::new(id).expect("not 0");
    let new = NewMessage::new(message_id, &Origin::System, To::One(AgentKey::OPERATOR), body);
    super::message::insert(tx, &new)?;
    log(tx, Fact::about(hive_core::event::Facts::MessageAccepted, AgentKey::OPERATOR));
    tx.after_commit(Effect::Hint(AgentKey::OPERATOR));
    Ok(id)
}

/// Writes a message in a commit.
async fn send(store: &Store, body: &str) -> Result<u64, Failed> {
    let body = body.to_owned();
    store.write(move |tx| write(tx, &body)).await
}

/// Reads the ids and bodies of the messages, and the numbers of the events.
async fn read(store: &Store) -> Result<(Vec<(u64, String)>, Vec<u64>), Failed> {
    let read = store.read(|conn, _| {
        let bodies = all(conn, "SELECT id, body FROM message ORDER BY id", [])?;
        Ok((bodies, all(conn, "SELECT sequence FROM event ORDER BY sequence", [])?))
    });
    read.await
}

/// A store in a directory of its own.
struct Rig {
    dir: tempfile::TempDir,
    store: Arc<Store>,
    commits: Arc<Commits>,
}

impl std::ops::Deref for Rig {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Rig {
    fn new() -> Self {
        Self::open(directory())
    }

    fn open(dir: tempfile::TempDir) -> Self {
        let (store, commits) = open(dir.path());
        Self { dir, store: Arc::new(store), commits }
    }

    /// Closes the store and opens it again.
    fn reopen(self) -> Self {
        drop(Arc::into_inner(self.store).expect("no other user"));
        Self::open(self.dir)
    }

    /// Writes a message in a commit; returns its id.
    async fn send(&self, body: &str) -> u64 {
        send(self, body).await.expect("committed")
    }

    /// Checks the messages, whose ids rise from 1, and that each has its event.
    async fn holds(&self, bodies: &[&str]) {
        let (messages, events) = read(self).await.expect("read");
        let wanted = (1..).zip(bodies.iter().map(|body| (*body).to_owned()));
        assert_eq!(messages, wanted.collect::<Vec<(u64, String)>>());
        assert_eq!(events, (1..=bodies.len() as u64).collect::<Vec<u64>>());
    }

    /// Holds the writer in a command, so that later calls fall into its batch.
    async fn hold(&self) -> Hold {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begun, holds) = tokio::sync::oneshot::channel();
        let task = self.queue(move |_| {
            begun.send(()).expect("the test waits");
            held.recv().expect("the test lets go");
            Ok(())
        });
        let task = task.await;
        holds.await.expect("the writer is held");
        Hold { release, task }
    }

    /// Queues a command without waiting for its result.
    async fn queue<T, F>(&self, command: F) -> Task<T>
    where
        T: Send + 'static,
        F: FnOnce(&Tx<'_>) -> Result<T, Failed> + Send + 'static,
    {
        let store = Arc::clone(&self.store);
        let task = tokio::spawn(async move { store.write(command).await });
        // One poll puts it into the queue.
        tokio::task::yield_now().await;
        Task(task)
    }

    /// Queues a message.
    async fn queue_send(&self, body: impl Into<String>) -> Task<u64> {
        let body = body.into();
        self.queue(move |tx| write(tx, &body)).await
    }

    /// Runs a command that moves the database away and then fails as the disk would.
    async fn lose(&self, code: i32) -> Lost {
        let lost =
            Lost { here: self.dir.path().join("hive.db"), aside: self.dir.path().join("aside.db") };
        let (from, to) = (lost.here.clone(), lost.aside.clone());
        let fault = self.store.write(move |tx| {
            write(tx, "aborted")?;
            std::fs::rename(&from, &to).expect("moved");
            Err::<(), _>(disk(code))
        });
        aborted(fault.await);
        lost
    }

    /// Waits until the database can be used.
    async fn recovered(&self) {
        let mut health = self.health();
        let ok = health.wait_for(|health| *health == Health::Ok);
        drop(in_time(ok).await.expect("the store is open"));
    }
}

/// A database that was moved away.
struct Lost {
    here: PathBuf,
    aside: PathBuf,
}

impl Lost {
    fn put_back(self) {
        std::fs::rename(self.aside, self.here).expect("moved back");
    }
}

/// A writer that is held.
struct Hold {
    release: std::sync::mpsc::Sender<()>,
    task: Task<()>,
}

impl Hold {
    /// Lets the writer go on; returns what becomes of the batch.
    async fn release(self) -> Result<(), Failed> {
        self.release.send(()).expect("the writer is held");
        self.task.result().await
    }
}

/// A queued command.
struct Task<T>(tokio::task::JoinHandle<Result<T, Failed>>);

impl<T> Task<T> {
    async fn result(self) -> Result<T, Failed> {
        self.0.await.expect("the caller does not panic")
    }

    async fn committed(self) -> T {
        self.result().await.expect("committed")
    }
}

/// Checks that the batch of a command was aborted.
fn aborted<T: std::fmt::Debug>(result: Result<T, Failed>) {
    let error = result.expect_err("aborted");
    assert!(matches!(error, Failed::Store(StoreError::Unavailable { .. })), "{error:?}");
}

/// Returns the error of a disk.
fn disk(code: i32) -> Failed {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(code), None).into()
}

/// Waits for an end that must come.
async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(GUARD, work).await.expect("it ends in time")
}
