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

#[derive(Debug)]
struct Shared<T, E> {
    queue: Mutex<VecDeque<Progress<T, E>>>,
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
        queue: Mutex::new(VecDeque::new()),
        came: Notify::new(),
        is_over: AtomicBool::new(false),
    };
    let shared = Arc::new(shared);
    (Reporter(Arc::clone(&shared)), Listener(shared))
}

impl<T, E> Reporter<T, E> {
    pub(super) fn send(&self, progress: Progress<T, E>) {
        let mut queue = lock(&self.0.queue);
        if let Some(Progress::Waiting { .. }) = queue.back() {
            queue.pop_back();
        }
        queue.push_back(progress);
        drop(queue);
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
            if let Some(progress) = lock(&self.0.queue).pop_front() {
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
