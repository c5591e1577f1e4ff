//! Primitives between tasks and the writer's thread: channels, hints, locks, the thread itself, and
//! work in place of it.
//!
//! Only the store, the hints, the waiters of hints and the tasks of connections use them, so that
//! their real code can run under Shuttle, which chooses the order of the steps of threads and
//! tasks. Invariant: without the feature `interleavings` these are tokio's and the standard
//! library's own.

#[cfg(not(feature = "interleavings"))]
mod real {
    use std::cell::Cell;
    pub use std::sync::{Mutex, MutexGuard, PoisonError};
    pub use std::thread;
    use tokio::runtime::{Handle, RuntimeFlavor};
    pub use tokio::sync::{Notify, mpsc, oneshot, watch};
    pub use tokio::task::yield_now;

    thread_local! {
        /// Whether more than one call would wait for what this thread waits for.
        static IS_SHARED: Cell<bool> = const { Cell::new(false) };
    }

    /// Polls several calls that are one task: none of them may run a batch here, because the others
    /// would wait for the disk, too.
    pub fn without_waiting<T>(poll: impl FnOnce() -> T) -> T {
        let before = IS_SHARED.replace(true);
        let polled = poll();
        IS_SHARED.set(before);
        polled
    }

    /// The other threads of a runtime.
    #[derive(Debug)]
    pub struct Others(Handle);

    impl Others {
        /// Returns those beside this thread, if there are any: then it may wait for the disk.
        pub fn here() -> Option<Self> {
            if IS_SHARED.get() {
                return None;
            }
            let runtime = Handle::try_current().ok()?;
            let has_others = runtime.runtime_flavor() == RuntimeFlavor::MultiThread
                && runtime.metrics().num_workers() > 1;
            has_others.then_some(Self(runtime))
        }

        /// Wakes one of them, which then looks at the sockets. The caller is none of them.
        pub fn wake(&self) {
            drop(self.0.spawn(async {}));
        }
    }
}

#[cfg(feature = "interleavings")]
mod real {
    pub use shuttle::future::yield_now;
    pub use shuttle::sync::{Mutex, MutexGuard};
    pub use shuttle::thread;
    pub use shuttle_tokio::sync::{Notify, mpsc, oneshot, watch};
    pub use std::sync::PoisonError;

    /// Polls several calls that are one task.
    pub fn without_waiting<T>(poll: impl FnOnce() -> T) -> T {
        poll()
    }

    /// No thread holds up another one.
    #[derive(Debug)]
    pub struct Others;

    impl Others {
        pub fn here() -> Option<Self> {
            Some(Self)
        }

        pub fn wake(&self) {}
    }
}

pub use real::*;
