//! The permit to work of the present call, which the engine can release before the call is
//! answered, or keep for a pause after it.
//!
//! The layer that took the permit polls the call in [`watched`]; code that begins to wait calls
//! [`release`]. Invariant: without that layer, as in a test, neither changes anything.

use std::cell::Cell;

/// What a call has said about its permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// Nothing: the class of the call decides.
    Nothing,
    /// It is released.
    Release,
    /// It is kept for a pause after the answer.
    Keep,
}

thread_local! {
    /// What the call that is being polled has said.
    static SAID: Cell<Said> = const { Cell::new(Said::Nothing) };
}

/// Polls a call; also returns what it said about its permit.
pub fn watched<T>(poll: impl FnOnce() -> T) -> (T, Said) {
    SAID.set(Said::Nothing);
    let polled = poll();
    (polled, SAID.replace(Said::Nothing))
}

/// Releases the permit of the present call: the call begins to wait, its stream is open, or it
/// continues as a job.
pub fn release() {
    SAID.set(Said::Release);
}

/// Keeps the permit of the present call for a pause after its answer: the call found nothing to do,
/// and a program that repeats it at full speed would keep the broker busy with nothing.
pub fn keep() {
    SAID.set(Said::Keep);
}
