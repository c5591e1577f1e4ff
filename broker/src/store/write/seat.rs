//! The seat of the writer: the one that has it runs the batches.
//!
//! ```text
//!   the writer's thread ── one short batch with one item after the other ──► free
//!            ▲                                                                │
//!            │                                             a caller takes it for a batch
//!            │                                                                │
//!            └── more than one item, a slow disk, a fault, a long log ◄───────┘
//! ```
//!
//! A message that comes by itself is committed by the thread that has read it, and the one that
//! waits for it is answered there, without a hop to another thread. Under load the thread keeps the
//! seat. Invariant: one at a time has it, and none leaves it to callers while an item is queued,
//! because a caller that queues one and finds the seat taken does nothing more.

use std::sync::Arc;
use std::time::Duration;

use rusqlite::Connection;

use super::committer::Committer;
use super::held::{Held, Prepared};
use super::queue::{Announce, Item, Most, Runner, lock};
use crate::store::blocked::block_within;
use crate::sync::{Mutex, Others, mpsc};

/// The first command of a batch does not wait long for the last, and a message to everyone does not
/// hold up the commands behind it. The callers of a batch do nothing while it runs: with so many
/// changes, half of a hundred consumers who drain pages work on theirs in the meantime.
const BATCH: Most = Most { items: 512, changes: 3000, polls: 128 };
/// Batches in a row with one item each after which callers run them. The orders of threads are
/// explored with few items.
const LONE_BATCHES: u32 = if cfg!(feature = "interleavings") { 1 } else { 8 };
/// If a batch takes longer, the thread runs the next ones: a caller has other calls to serve.
const SHORT_MILLIS: i64 = 2;
/// Time without an item after which the log is folded.
const FOLD_AFTER: Duration = Duration::from_millis(100);
/// Time between two looks of the thread at the batches of callers. tokio's worker that runs a batch
/// may be the one that waits for all sockets. If the disk is slow, another one takes its place
/// after two looks; only the task that was woken last waits for the batch, and what comes on the
/// connection of the caller, which has no other call.
const LOOK_AFTER: Duration = Duration::from_millis(5);
/// Looks without a batch after which the thread sleeps until there is one.
const RESTS: u32 = 20;

/// The committer and its queue.
pub(super) struct Batches {
    pub(super) committer: Committer,
    pub(super) items: mpsc::Receiver<Item>,
    /// Short batches in a row that had one item each.
    lone: u32,
    /// All batches.
    count: u64,
}

/// Why the thread serves no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Served {
    /// Callers may run the next batches.
    Lone,
    /// The database has failed.
    Failed,
    /// The queue is closed and empty.
    Closed,
}

impl Batches {
    pub(super) fn new(committer: Committer, items: mpsc::Receiver<Item>) -> Box<Self> {
        Box::new(Self { committer, items, lone: 0, count: 0 })
    }

    /// Runs a batch of this item and of those that are queued.
    fn run(&mut self, conn: &Connection, statements: &dyn Prepared, first: Option<Item>) {
        let begin = self.committer.now();
        let items = self.committer.batch(conn, statements, first, &mut self.items, BATCH);
        self.count += 1;
        let took = self.committer.now().0 - begin.0;
        let is_lone = items == 1 && took <= SHORT_MILLIS;
        self.lone = if is_lone { self.lone.saturating_add(1) } else { 0 };
    }

    /// Returns whether nothing is left to do.
    fn is_idle(&self) -> bool {
        self.committer.woken_count() == 0 && self.items.is_empty()
    }

    /// Returns whether callers may run the next batch.
    fn is_for_callers(&self) -> bool {
        self.lone >= LONE_BATCHES
            && self.is_idle()
            && self.committer.is_open()
            && !self.committer.folding.is_long()
    }

    fn is_fold_due(&self) -> bool {
        self.committer.folding.is_due_when_idle()
    }

    /// Runs batches on the thread, until callers may run them.
    pub(super) fn serve(&mut self, conn: &Connection) -> Served {
        let statements = Held::new(conn);
        loop {
            self.committer.fold_if_long(conn);
            if !self.committer.is_open() {
                return Served::Failed;
            }
            let mut first = None;
            if self.committer.woken_count() == 0 {
                let (is_fold_due, items) = (self.is_fold_due(), &mut self.items);
                let next = if is_fold_due {
                    block_within(FOLD_AFTER, |context| items.poll_recv(context))
                } else {
                    Some(items.blocking_recv())
                };
                match next {
                    Some(Some(item)) => first = Some(item),
                    Some(None) => return Served::Closed,
                    None => {
                        self.committer.fold(conn);
                        self.committer.release_memory(conn);
                        continue;
                    }
                }
            }
            self.run(conn, &statements, first);
            drop(self.committer.announce());
            if self.is_for_callers() {
                return Served::Lone;
            }
        }
    }

    /// Runs one batch on the thread of a caller, if something is queued.
    fn serve_once(&mut self) -> Option<Announce> {
        let first = self.items.try_recv().ok()?;
        let Some(conn) = self.committer.lend() else {
            self.committer.refuse(first);
            return None;
        };
        self.run(&conn, &conn, Some(first));
        self.committer.take_back(conn);
        Some(self.committer.announce())
    }
}

#[derive(Default)]
struct State {
    /// `None` while the thread or a caller has them.
    batches: Option<Box<Batches>>,
    /// The caller that has them: the other threads of its runtime, and the batches before its own.
    caller: Option<(Others, u64)>,
    /// Whether the thread was called: callers leave the batches to it.
    is_called: bool,
    /// Whether the thread looks at the batches of callers.
    is_watched: bool,
    /// Whether the queue was closed. The thread finishes it.
    is_closing: bool,
    /// Whether a batch of a caller has panicked outside of its commands. There are none any more.
    is_lost: bool,
}

/// The seat.
pub(super) struct Seat {
    state: Mutex<State>,
    calls: mpsc::Sender<()>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Seat").finish_non_exhaustive()
    }
}

impl Seat {
    /// Returns the seat, which the thread has, and the calls to the thread.
    pub(super) fn new() -> (Arc<Self>, mpsc::Receiver<()>) {
        let (calls, called) = mpsc::channel(1);
        (Arc::new(Self { state: Mutex::default(), calls }), called)
    }

    /// Takes the batches of a free seat for a caller.
    fn take(&self) -> Option<(Box<Batches>, OnPanic<'_>)> {
        let mut state = lock(&self.state);
        if state.is_called || state.batches.is_none() {
            return None;
        }
        let Some(others) = Others::here() else {
            self.call_to(&mut state);
            return None;
        };
        let batches = state.batches.take()?;
        state.caller = Some((others, batches.count));
        if !std::mem::replace(&mut state.is_watched, true) {
            self.signal();
        }
        Some((batches, OnPanic(Some(self))))
    }

    /// Puts back what a caller has run.
    fn put_back(&self, batches: Box<Batches>) {
        let mut state = lock(&self.state);
        // With the lock: one that queues an item later finds the seat free.
        let is_for_callers = batches.is_for_callers() || hive_fault::planted!(LeftQueued);
        state.caller = None;
        state.batches = Some(batches);
        if state.is_closing || !is_for_callers {
            self.call_to(&mut state);
        }
    }

    /// Calls the thread, if the seat is free.
    fn call_to(&self, state: &mut State) {
        if state.batches.is_some() && !state.is_called {
            state.is_called = true;
            self.signal();
        }
    }

    /// Wakes the thread.
    fn signal(&self) {
        // If there is a signal already, it is enough.
        let _is_new = self.calls.try_send(()).is_ok();
    }

    /// Leaves the seat to callers, if they may run the next batch, and watches them until the
    /// thread is called, or is to fold the log; `None` once the batches are lost.
    pub(super) fn leave(
        &self,
        batches: Box<Batches>,
        called: &mut mpsc::Receiver<()>,
    ) -> Option<Box<Batches>> {
        let mut watch = Watch { seen: batches.count, rests: 0, running: None };
        {
            let mut state = lock(&self.state);
            if state.is_closing || !batches.is_for_callers() {
                return Some(batches);
            }
            state.batches = Some(batches);
            state.is_watched = true;
        }
        loop {
            let is_look = watch.rests < RESTS && !cfg!(feature = "interleavings");
            let is_signalled = if is_look {
                block_within(LOOK_AFTER, |context| called.poll_recv(context)).is_some()
            } else {
                called.blocking_recv().is_some()
            };
            let mut state = lock(&self.state);
            if is_signalled {
                watch.rests = 0;
            } else {
                watch.look(&state);
            }
            if state.is_lost {
                return None;
            }
            let is_at_rest = watch.rests == RESTS;
            let is_fold_due = state.batches.as_ref().is_some_and(|batches| batches.is_fold_due());
            if state.is_called || is_at_rest && is_fold_due {
                state.is_called = false;
                return state.batches.take();
            }
            state.is_watched = !is_at_rest;
        }
    }
}

impl Runner for Seat {
    fn serve(&self) -> Option<Announce> {
        let (mut batches, mut on_panic) = self.take()?;
        let announce = batches.serve_once();
        self.put_back(batches);
        on_panic.0 = None;
        announce
    }

    fn call(&self) {
        self.call_to(&mut lock(&self.state));
    }

    fn close(&self) {
        let mut state = lock(&self.state);
        state.is_closing = true;
        self.call_to(&mut state);
    }
}

/// What the thread has seen of the batches of callers.
#[derive(Debug)]
struct Watch {
    /// Batches at the last look at a free seat.
    seen: u64,
    /// Looks without a batch.
    rests: u32,
    /// The batch that ran at the last look.
    running: Option<u64>,
}

impl Watch {
    fn look(&mut self, state: &State) {
        let running = state.caller.as_ref().map(|(_, before)| *before);
        if let Some((others, _)) = &state.caller
            && running == self.running
        {
            others.wake();
        }
        self.running = running;
        let count = state.batches.as_ref().map(|batches| batches.count);
        self.rests = if count == Some(self.seen) { self.rests + 1 } else { 0 };
        self.seen = count.unwrap_or(self.seen);
    }
}

/// Notes that the batches are lost, unless they were put back.
struct OnPanic<'s>(Option<&'s Seat>);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if let Some(seat) = self.0.take() {
            lock(&seat.state).is_lost = true;
            seat.signal();
        }
    }
}
