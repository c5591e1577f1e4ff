//! The permit to work of the present call, which the engine can release before the call is
//! answered.
//!
//! The layer that took the permit runs the call in [`scope`]; code that begins to wait calls
//! [`release`]. Invariant: without a scope, as in a test, a release changes nothing.

use std::sync::Arc;

use tokio::sync::Notify;

tokio::task_local! {
    static RELEASED: Arc<Notify>;
}

/// Runs a call whose release notifies `released`.
pub fn scope<C: Future>(released: Arc<Notify>, call: C) -> impl Future<Output = C::Output> {
    RELEASED.scope(released, call)
}

/// Releases the permit of the present call: the call begins to wait, its stream is open, or it
/// continues as a job.
pub fn release() {
    // Outside of a call there is no permit.
    let _ = RELEASED.try_with(|released| released.notify_one());
}
