//! The permit to work of the present call, which the engine can release before the call is
//! answered.
//!
//! The layer that took the permit polls the call in [`watched`]; code that begins to wait calls
//! [`release`]. Invariant: without that layer, as in a test, a release changes nothing.

use std::cell::Cell;

thread_local! {
    /// Whether the call that is being polled has released its permit.
    static RELEASED: Cell<bool> = const { Cell::new(false) };
}

/// Polls a call; also returns whether it released its permit.
pub fn watched<T>(poll: impl FnOnce() -> T) -> (T, bool) {
    RELEASED.set(false);
    let polled = poll();
    (polled, RELEASED.take())
}

/// Releases the permit of the present call: the call begins to wait, its stream is open, or it
/// continues as a job.
pub fn release() {
    RELEASED.set(true);
}
