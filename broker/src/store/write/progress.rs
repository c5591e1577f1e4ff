//! The progress of one waiter, from the writer to its caller.
//!
//! Invariant: results arrive once and in order. Of the notes that it waits only the newest is kept,
//! so a caller that does not look costs nothing.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hive_core::time::BootTime;

use super::queue::lock;
use crate::sync::{Mutex, Notify};

/// The state of a waiter, as its caller gets it.
#[derive(Debug)]
pub enum Progress<T, E> {
    /// The waiter is over; a standing one only by an error.
    Done(Result<T, E>),
    /// The waiter is pending.
    Waiting {
        /// The answer for a caller that does not wait.
        so_far: T,
        /// The time of the next retry, if no hint arrives before.
        next_due: Option<BootTime>,
    },
}

/// What the caller has not looked at.
#[derive(Debug)]
struct Unseen<T, E> {
    results: VecDeque<Result<T, E>>,
    /// The note that it waits, with the parts of [`Progress::Waiting`]; newer than all results. It
    /// has a place of its own, because a queue has places for several as soon as it has one.
    waits: Option<(T, Option<BootTime>)>,
}

#[derive(Debug)]
struct Shared<T, E> {
    unseen: Mutex<Unseen<T, E>>,
    came: Notify,
    /// Whether one of the ends has been dropped.
    is_over: AtomicBool,
}

/// The writer's end.
#[derive(Debug)]
pub(super) struct Reporter<T, E>(Arc<Shared<T, E>>);

/// The caller's end.
#[derive(Debug)]
pub(super) struct Listener<T, E>(Arc<Shared<T, E>>);

/// Returns both ends.
pub(super) fn channel<T, E>() -> (Reporter<T, E>, Listener<T, E>) {
    let shared = Shared {
        unseen: Mutex::new(Unseen { results: VecDeque::new(), waits: None }),
        came: Notify::new(),
        is_over: AtomicBool::new(false),
    };
    let shared = Arc::new(shared);
    (Reporter(Arc::clone(&shared)), Listener(shared))
}

impl<T, E> Unseen<T, E> {
    fn next(&mut self) -> Option<Progress<T, E>> {
        let result = self.results.pop_front().map(Progress::Done);
        let waits = |(so_far, next_due)| Progress::Waiting { so_far, next_due };
        result.or_else(|| self.waits.take().map(waits))
    }
}

impl<T, E> Reporter<T, E> {
    pub(super) fn send(&self, progress: Progress<T, E>) {
        let mut unseen = lock(&self.0.unseen);
        unseen.waits = match progress {
            Progress::Waiting { so_far, next_due } => Some((so_far, next_due)),
            Progress::Done(result) => {
                unseen.results.push_back(result);
                None
            }
        };
        drop(unseen);
        self.0.came.notify_one();
    }

    /// Returns whether its caller has gone.
    pub(super) fn is_closed(&self) -> bool {
        self.0.is_over.load(Ordering::Acquire)
    }
}

impl<T, E> Listener<T, E> {
    /// Waits for the next progress; `None` once the writer has dropped its end.
    pub(super) async fn recv(&mut self) -> Option<Progress<T, E>> {
        loop {
            // Read before the queue: what was sent before the end is returned first.
            let is_over = self.0.is_over.load(Ordering::Acquire);
            if let Some(progress) = lock(&self.0.unseen).next() {
                return Some(progress);
            }
            if is_over {
                return None;
            }
            self.0.came.notified().await;
        }
    }
}

impl<T, E> Drop for Reporter<T, E> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
        self.0.came.notify_one();
    }
}

impl<T, E> Drop for Listener<T, E> {
    fn drop(&mut self) {
        self.0.is_over.store(true, Ordering::Release);
    }
}
