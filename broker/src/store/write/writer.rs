//! The writer: commands and waiters are queued, and answered after the commit of their batch.
//!
//! ```text
//!   queue ──► BEGIN, command, command, … ──► COMMIT (one sync) ──► effects ──► replies
//!                                              │ fails
//!                                              └──► all refused, reopen, checkpoint, only then go on
//! ```
//!
//! A thread runs the batches with a [`Committer`], or, while there is one item at a time, the
//! caller that has queued it ([`Seat`]); a simulation steps them instead. A batch takes the queued
//! items and does not wait for more: the sync is the batching window. Invariant: each caller that
//! queued an item is answered exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use super::committer::{Committer, Parts};
use super::progress;
use super::queue::{Item, Job, Queue, Ran, Runner, Undo, catch, lock};
use super::seat::{Batches, Seat, Served};
use super::stepped::SteppedStore;
use super::tx::Tx;
use super::waiter::{Life, Poll, Polled, Waiter, Wake};
use crate::store::error::{CommandError, StoreError};
use crate::store::key::AgentKey;
use crate::store::place::{Answer, Place, Waiting};
use crate::sync::thread::{self, JoinHandle};
use crate::sync::{Mutex, mpsc, oneshot};

/// Slots of the queue; further callers wait for a slot.
const QUEUE_COMMANDS: usize = 4096;
/// Pause between attempts to open a faulted database again.
const RECOVERY_PAUSE: Duration = Duration::from_millis(500);

/// The store's end of the writer.
#[derive(Debug)]
pub(in crate::store) struct Writer {
    queue: Arc<Queue>,
    last_waiter: AtomicU64,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// The thread of a writer before it has a database.
#[derive(Debug)]
pub(in crate::store) struct Thread {
    seat: Arc<Seat>,
    give: mpsc::Sender<Box<Batches>>,
    thread: JoinHandle<()>,
}

impl Thread {
    /// Starts it. A new thread takes as long to begin as a database to open, so it begins before.
    pub(in crate::store) fn start() -> std::io::Result<Self> {
        let (seat, called) = Seat::new();
        let (give, mut given) = mpsc::channel(1);
        let work = {
            let seat = Arc::clone(&seat);
            move || {
                if let Some(batches) = given.blocking_recv() {
                    run(&seat, batches, called);
                }
            }
        };
        let thread = thread::Builder::new().name("writer".into()).spawn(work)?;
        Ok(Self { seat, give, thread })
    }
}

impl Writer {
    /// Returns a writer whose batches this thread runs.
    pub(in crate::store) fn on(thread: Thread, parts: Parts, conn: Connection) -> Self {
        let Thread { seat, give, thread } = thread;
        let (writer, items) = Self::new(Some(seat));
        let batches = Batches::new(Committer::new(parts, conn), items);
        // The channel has room for one, and the thread waits for it.
        let _is_given = give.try_send(batches).is_ok();
        *lock(&writer.thread) = Some(thread);
        writer
    }

    /// Returns a writer whose batches are stepped.
    pub(in crate::store) fn stepped(parts: Parts, conn: Connection) -> (Self, SteppedStore) {
        let (writer, items) = Self::new(None);
        (writer, SteppedStore::new(Committer::new(parts, conn), items))
    }

    fn new(runner: Option<Arc<dyn Runner>>) -> (Self, mpsc::Receiver<Item>) {
        let (queue, items) = Queue::new(QUEUE_COMMANDS, runner);
        (Self { queue, last_waiter: AtomicU64::new(0), thread: Mutex::default() }, items)
    }

    pub(in crate::store) async fn write<T, E, F>(&self, undo: Undo, command: F) -> Result<T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let (reply, answer) = oneshot::channel();
        let reply = move |answer| drop(reply.send(answer));
        let job = Box::new(Pending { undo, command: Some(command), answer: None, reply });
        let sent = self.queue.send(Item::Job(job)).await;
        sent.ok_or(StoreError::Closed)?.mail_first().await;
        answer.await.unwrap_or_else(|_| Err(StoreError::Closed.into()))
    }

    /// Runs a command as [`Self::write`] does, in less code and more steps.
    pub(in crate::store) fn write_compact<T, E, F>(&self, command: F) -> Answer<'_, T, E>
    where
        F: FnOnce(&Tx<'_>) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: CommandError,
    {
        let place = Place::default();
        let (done, is_done) = oneshot::channel();
        let reply = {
            let place = place.clone();
            move |answer| {
                place.put(answer);
                // The caller may be gone.
                let _is_there = done.send(()).is_ok();
            }
        };
        let undo = Undo::Savepoint;
        let job = Box::new(Pending { undo, command: Some(command), answer: None, reply });
        Answer::new(self.run(job, is_done), place)
    }

    /// Queues a command and waits until it has put its answer.
    fn run(&self, job: Box<dyn Job>, is_done: oneshot::Receiver<()>) -> Waiting<'_> {
        Box::pin(async move {
            let sent = self.queue.send(Item::Job(job)).await;
            sent.ok_or(StoreError::Closed)?.mail_first().await;
            is_done.await.map_err(|_| StoreError::Closed)
        })
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
        // It is cancelled if the caller goes away before the end of this.
        let waiter = Waiter::new(id, Arc::clone(&self.queue), receiver, life);
        // A writer that has ended drops the waiter, which its caller notices.
        let polled = Box::new(Polled::new(undo, life, poll, progress));
        drop(self.queue.send(Item::Wait(id, agent, polled)).await);
        waiter
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

/// Runs batches, and leaves the seat to callers while these may run them, until the queue is closed
/// and empty.
fn run(seat: &Seat, mut batches: Box<Batches>, mut called: mpsc::Receiver<()>) {
    loop {
        while !batches.committer.is_open() && !batches.committer.recover() {
            // Items that are queued in the meantime are refused at once.
            loop {
                match batches.items.try_recv() {
                    Ok(item) => batches.committer.refuse(item),
                    Err(mpsc::error::TryRecvError::Empty) => break,
                    Err(mpsc::error::TryRecvError::Disconnected) => return,
                }
            }
            thread::sleep(RECOVERY_PAUSE);
        }
        let Some(conn) = batches.committer.lend() else { continue };
        let served = batches.serve(&conn);
        batches.committer.take_back(conn);
        match served {
            Served::Failed => {}
            Served::Closed => break,
            Served::Lone => match seat.leave(batches, &mut called) {
                Some(back) => batches = back,
                None => {
                    tracing::error!("a caller panicked while it ran a batch; restart the broker");
                    return;
                }
            },
        }
    }
    batches.committer.close();
}

struct Pending<F, T, E, R> {
    undo: Undo,
    command: Option<F>,
    answer: Option<Result<T, E>>,
    reply: R,
}

impl<F, T, E, R> Job for Pending<F, T, E, R>
where
    F: FnOnce(&Tx<'_>) -> Result<T, E> + Send,
    R: FnOnce(Result<T, E>) + Send,
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
        (self.reply)(answer);
    }

    fn abort(self: Box<Self>, problem: &Arc<str>) {
        (self.reply)(Err(StoreError::unavailable(problem).into()));
    }
}
