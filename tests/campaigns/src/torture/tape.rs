//! The tape: what all players in this process record, in one order, and the number of answers so
//! far.
//!
//! Invariant: a call is on the tape before it leaves, and its answer after it came. So the order on
//! the tape is one that happened.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hive_history::{Answer, Event, History, Mark, Op, QuestionSeen, Setting};
use rustix::time::{ClockId, clock_gettime};
use tokio::sync::watch;

#[derive(Debug)]
pub(crate) struct Tape {
    history: Mutex<History>,
    start: i64,
    answers: watch::Sender<u64>,
    numbers: AtomicU64,
}

impl Tape {
    pub(crate) fn new(setting: Setting) -> Arc<Self> {
        Arc::new(Self {
            history: Mutex::new(History::new(setting)),
            start: boot_ms(),
            answers: watch::Sender::new(0),
            numbers: AtomicU64::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn at(&self) -> u64 {
        u64::try_from(boot_ms() - self.start).unwrap_or(0)
    }

    /// Returns an unused number.
    pub(crate) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Records a call that is about to leave; returns its number.
    pub(crate) fn invoke(&self, caller: &str, request_id: &str, op: &Op) -> u64 {
        let mut history = self.lock();
        history.invoke(self.at(), wall_ms(), caller, request_id, op.clone())
    }

    /// Records the end of a call.
    pub(crate) fn answer(&self, call: u64, answer: Answer) {
        let known = !matches!(answer, Answer::Unknown(_));
        let mut history = self.lock();
        history.answer(self.at(), wall_ms(), call, answer);
        drop(history);
        if known {
            self.answers.send_modify(|count| *count += 1);
        }
    }

    pub(crate) fn mark(&self, mark: Mark) {
        let mut history = self.lock();
        history.push(self.at(), wall_ms(), Event::Mark(mark));
    }

    /// Records a question seen in a list or a watch, perhaps not in its current state.
    pub(crate) fn saw(&self, question: QuestionSeen) {
        let mut history = self.lock();
        history.push(self.at(), wall_ms(), Event::Saw(question));
    }

    /// Returns the number of answered calls, as it grows.
    pub(crate) fn answers(&self) -> watch::Receiver<u64> {
        self.answers.subscribe()
    }

    /// Returns a copy of the history so far.
    pub(crate) fn copy(&self) -> History {
        self.lock().clone()
    }
}

fn millis(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec * 1000 + time.tv_nsec / 1_000_000
}

fn boot_ms() -> i64 {
    millis(ClockId::Boottime)
}

/// Returns the wall clock, in ms since 1970.
pub fn wall_ms() -> i64 {
    millis(ClockId::Realtime)
}
