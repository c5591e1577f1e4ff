//! Answers that are awaited by less code: what waits for a command or a query is compiled once for
//! each type of answer, and not for each command, and holds nothing of the command itself.
//!
//! ```text
//!   command ──► the heap ──► writer or reader ──► place ──┐
//!   caller ◄── Answer: a pointer to what waits, and the place
//! ```
//!
//! Invariant: an answer is put in its place before the caller is notified, and taken once.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use crate::store::error::StoreError;
use crate::sync::{Mutex, PoisonError};

/// Waits until an answer is in its place, or there will be none.
pub(in crate::store) type Waiting<'a> =
    Pin<Box<dyn Future<Output = Result<(), StoreError>> + Send + 'a>>;

/// Where a thread puts an answer.
#[derive(Debug)]
pub(in crate::store) struct Place<T>(Arc<Mutex<Option<T>>>);

impl<T> Place<T> {
    pub(in crate::store) fn put(&self, answer: T) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    }

    fn take(&self) -> Option<T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<T> Default for Place<T> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(None)))
    }
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

/// The answer to a command or a query, once it is there. Nothing is done before the first poll.
#[must_use = "nothing is done before it is polled"]
pub struct Answer<'a, T, E> {
    waiting: Waiting<'a>,
    place: Place<Result<T, E>>,
}

impl<'a, T, E> Answer<'a, T, E> {
    pub(in crate::store) fn new(waiting: Waiting<'a>, place: Place<Result<T, E>>) -> Self {
        Self { waiting, place }
    }
}

impl<T, E: From<StoreError>> Future for Answer<'_, T, E> {
    type Output = Result<T, E>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(self.waiting.as_mut().poll(context))?;
        Poll::Ready(self.place.take().unwrap_or_else(|| Err(StoreError::Panicked.into())))
    }
}

impl<T, E> std::fmt::Debug for Answer<'_, T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").finish_non_exhaustive()
    }
}
