//! Tests of the store: what a receipt is worth, on real files.

mod backup;
mod batch;
mod cancelled_waiters;
mod faults;
mod long_history;
mod migrations;
mod open;
mod sums;
mod turn_lines;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::id::MessageId;
use hive_core::message::Origin;

use super::event::{Fact, log};
use super::message::{NewMessage, To};
use super::{AgentKey, CommandError, Committed, Effect, Health, Store, StoreError, Tx};
use crate::clock::ManualClock;

/// Longer than anything here takes.
const GUARD: Duration = Duration::from_secs(30);

/// How a test's command fails.
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

impl Failed {
    fn is_unavailable(&self) -> bool {
        matches!(self, Self::Store(StoreError::Unavailable { .. }))
    }
}

/// What one commit told of.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    effects: Vec<Effect>,
    last_event: u64,
}

/// Remembers the commits.
#[derive(Debug, Default)]
struct Commits(Mutex<Vec<Told>>);

impl Commits {
    fn all(&self) -> Vec<Told> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Committed for Commits {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        let told = Told { effects: effects.to_vec(), last_event };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(told);
    }
}

/// A directory in memory, where there is one.
fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let dir = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    dir.expect("a directory for a test")
}

fn open(dir: &Path) -> (Store, Arc<Commits>) {
    let commits = Arc::new(Commits::default());
    let committed: Arc<dyn Committed> = Arc::<Commits>::clone(&commits);
    (Store::open(dir, Arc::new(ManualClock::new("boot-0")), committed).expect("it opens"), commits)
}

/// Writes a message and an event, as a send does.
fn say(tx: &Tx<'_>, body: &str) -> rusqlite::Result<u64> {
    let id = tx.next_id();
    let message_id = MessageId::new(id).expect("not 0");
    let new = NewMessage::new(message_id, &Origin::System, To::One(AgentKey::OPERATOR), body);
    super::message::insert(tx, &new)?;
    log(tx, Fact::about(hive_core::event::Kind::MessageAccepted, AgentKey::OPERATOR))?;
    tx.after_commit(Effect::Hint(AgentKey::OPERATOR));
    Ok(id)
}

/// Says something, and answers its number.
async fn said(store: &Store, body: &str) -> Result<u64, Failed> {
    let body = body.to_owned();
    store.write(move |tx| Ok(say(tx, &body)?)).await
}

/// What was said, in order, and the numbers of the events.
async fn heard(store: &Store) -> Result<(Vec<(u64, String)>, Vec<u64>), Failed> {
    let read = store.read(|conn, _| {
        let mut select = conn.prepare("SELECT id, body FROM message ORDER BY id")?;
        let bodies = select.query_map([], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)))?;
        let bodies = bodies.map(|row| row.map(|(id, body)| (u64::try_from(id).unwrap_or(0), body)));
        let bodies = bodies.collect::<rusqlite::Result<_>>()?;
        let mut select = conn.prepare("SELECT sequence FROM event ORDER BY sequence")?;
        let events = select.query_map([], |row| row.get::<_, i64>(0))?;
        let events = events.map(|row| row.map(|number| u64::try_from(number).unwrap_or(0)));
        Ok::<_, Failed>((bodies, events.collect::<rusqlite::Result<_>>()?))
    });
    read.await
}

/// A command in which the writer waits, so that later calls fall into its batch.
struct Hold {
    release: std::sync::mpsc::Sender<()>,
    task: tokio::task::JoinHandle<Result<(), Failed>>,
}

impl Hold {
    async fn on(store: &Arc<Store>) -> Self {
        let store = Arc::clone(store);
        let (release, held) = std::sync::mpsc::channel::<()>();
        let (begun, holds) = tokio::sync::oneshot::channel();
        let task = tokio::spawn(async move {
            let hold = store.write(move |_| {
                begun.send(()).expect("the test waits");
                held.recv().expect("the test lets go");
                Ok(())
            });
            hold.await
        });
        holds.await.expect("the writer is held");
        Self { release, task }
    }

    /// Lets the writer go on; answers what becomes of the command.
    async fn release(self) -> Result<(), Failed> {
        self.release.send(()).expect("the writer is held");
        self.task.await.expect("no panic")
    }
}

/// Queues a command without waiting for its answer.
async fn queue<T, F>(store: &Arc<Store>, command: F) -> tokio::task::JoinHandle<Result<T, Failed>>
where
    T: Send + 'static,
    F: FnOnce(&Tx<'_>) -> Result<T, Failed> + Send + 'static,
{
    let store = Arc::clone(store);
    let task = tokio::spawn(async move { store.write(command).await });
    // One poll puts it into the queue.
    tokio::task::yield_now().await;
    task
}

/// Waits until the database can be used.
async fn recovered(store: &Store) {
    let mut health = store.health();
    let ok = health.wait_for(|health| *health == Health::Ok);
    drop(tokio::time::timeout(GUARD, ok).await.expect("it recovers").expect("the store is open"));
}
