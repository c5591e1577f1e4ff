//! The writer: commands and waiters are queued, and answered after the commit of their batch.
//!
//! ```text
//!   queue ──► BEGIN, command, command, … ──► COMMIT (one sync) ──► effects ──► replies
//!                                              │ fails
//!                                              └──► all refused, reopen, checkpoint, only then go on
//! ```
//!
//! A thread runs the batches with a [`Committer`]; a simulation steps them instead. A batch takes
//! the queued items and does not wait for more: the sync is the batching window. Invariant: each
//! caller that queued an item is answered exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::committer::{Committer, Parts};
use super::held::Held;
use super::progress;
use super::queue::{Item, Job, Most, Queue, Ran, Undo, catch, lock};
use super::stepped::SteppedStore;
use super::tx::Tx;
use super::waiter::{Life, Poll, Polled, Waiter, Wake};
use crate::store::blocked::block_within;
use crate::store::error::{CommandError, StoreError};
use crate::store::key::AgentKey;
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, mpsc, oneshot};

/// Slots of the queue; further callers wait for a slot.
const QUEUE_COMMANDS: usize = 4096;
/// The first command of a batch does not wait long for the last, and a message to everyone does not
/// hold up the commands behind it. The callers of a batch do nothing while it runs: with so many
/// changes, half of a hundred consumers who drain pages work on theirs in the meantime.
const BATCH: Most = Most { items: 512, changes: 3000, polls: 128 };
/// Time without an item after which the log is folded.
const FOLD_AFTER: Duration = Duration::from_millis(100);
/// Pause between attempts to open a faulted database again.
const RECOVERY_PAUSE: Duration = Duration::from_millis(500);

/// The store's end of the writer.
#[derive(Debug)]
pub(in crate::store) struct Writer {
    queue: Arc<Queue>,
    last_waiter: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(in crate::store) fn start(parts: Parts, conn: Connection) -> std::io::Result<Self> {
        let (writer, items) = Self::new();
        let committer = Committer::new(parts, conn);
        let thread =
            thread::Builder::new().name("writer".into()).spawn(move || run(committer, items))?;
        *lock(&writer.thread) = Some(thread);
        Ok(writer)
    }

    /// Returns a writer whose batches are stepped.
    pub(in crate::store) fn stepped(parts: Parts, conn: Connection) -> (Self, SteppedStore) {
        let (writer, items) = Self::new();
        (writer, SteppedStore::new(Committer::new(parts, conn), items))
    }

    fn new() -> (Self, mpsc::Receiver<Item>) {
        let (queue, items) = Queue::new(QUEUE_COMMANDS);
        (Self { queue, last_waiter: AtomicU64::new(0), thread: Mutex::default() }, items)
    }

    pub(in crate::store) async fn write<T, E, F>(&self, undo: Undo, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Pending { undo, command: Some(command), answer: None, reply });
        if !self.queue.send(Item::Job(job)).await {
            return Err(StoreError::Closed.into());
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Queues a waiter for wakes of an agent.
    pub(in crate::store) async fn wait<T, E, F>(
        &self,
        undo: Undo,
        life: Life,
        agent: AgentKey,
        poll: F,
    ) -> Waiter<T, E>
    where
        F: FnMut(&Tx<'_>, Wake) -> Result<Poll<T>, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let (progress, receiver) = progress::channel();
        let id = self.last_waiter.fetch_add(1, Ordering::Relaxed);
        // A writer that has ended drops the waiter, which its caller notices.
        let polled = Box::new(Polled::new(undo, life, poll, progress));
        self.queue.send(Item::Wait(id, agent, polled)).await;
        Waiter::new(id, Arc::clone(&self.queue), receiver, life)
    }

    /// Lets the thread finish the queue, and waits for it.
    pub(in crate::store) fn close(&self) {
        self.queue.close();
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread
            && thread.join().is_err()
        {
            tracing::error!("the writer's thread panicked");
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// Runs batches on the thread until the queue is closed and empty.
fn run(mut committer: Committer, mut items: mpsc::Receiver<Item>) {
    loop {
        while !committer.is_open() && !committer.recover() {
            // Items that are queued in the meantime are refused at once.
            loop {
                match items.try_recv() {
                    Ok(item) => committer.refuse(item),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return,
                }
            }
            thread::sleep(RECOVERY_PAUSE);
        }
        let Some(conn) = committer.lend() else { continue };
        let is_over = serve(&mut committer, &conn, &mut items);
        committer.take_back(conn);
        if is_over {
            break;
        }
    }
    committer.close();
}

/// Runs batches on a connection, until one has failed or the queue is closed and empty; returns
/// whether it is.
fn serve(committer: &mut Committer, conn: &Connection, items: &mut mpsc::Receiver<Item>) -> bool {
    let statements = Held::new(conn);
    while committer.is_open() {
        let first = if committer.woken_count() == 0 {
            let next = if committer.folding.is_due_when_idle() {
                block_within(FOLD_AFTER, |context| items.poll_recv(context))
            } else {
                Some(items.blocking_recv())
            };
            match next {
                Some(Some(first)) => Some(first),
                Some(None) => return true,
                None => {
                    committer.fold(conn);
                    continue;
                }
            }
        } else {
            None
        };
        committer.batch(conn, &statements, first, items, BATCH);
    }
    false
}

struct Pending<F, T, E> {
    undo: Undo,
    command: Option<F>,
    answer: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Job for Pending<F, T, E>
where
    F: FnOnce(&Tx<'_>) -> Result<T, E> + Send,
    T: Send + 'static,
    E: CommandError,
{
    fn undo(&self) -> Undo {
        self.undo
    }

    fn run(&mut self, tx: &Tx<'_>) -> Ran {
        let command = self.command.take().expect("a job runs once");
        let (answer, ran) = catch(|| command(tx));
        self.answer = Some(answer);
        ran
    }

    fn commit(self: Box<Self>) {
        let answer = self.answer.expect("a committed job has run");
        // If the caller is gone, its rows stay, and a retry with its request id finds them.
        drop(self.reply.send(answer));
    }

    fn abort(self: Box<Self>, problem: &Arc<str>) {
        drop(self.reply.send(Err(StoreError::unavailable(problem).into())));
    }
}
