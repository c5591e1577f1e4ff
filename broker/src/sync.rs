//! Primitives between tasks and the writer's thread: channels, hints, locks, and the thread itself.
//!
//! Only the store, the hints and the waiters of hints use them, so that their real code can run
//! under Shuttle, which chooses the order of the steps of threads and tasks. Invariant: without the
//! feature `interleavings` these are tokio's and the standard library's own.

#[cfg(not(feature = "interleavings"))]
mod real {
    pub use std::sync::{Mutex, MutexGuard, PoisonError};
    pub use std::thread;
    pub use tokio::sync::{Notify, mpsc, oneshot, watch};
}

#[cfg(feature = "interleavings")]
mod real {
    pub use shuttle::sync::{Mutex, MutexGuard};
    pub use shuttle::thread;
    pub use shuttle_tokio::sync::{Notify, mpsc, oneshot, watch};
    pub use std::sync::PoisonError;
}

pub use real::*;
