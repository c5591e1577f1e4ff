//! The time that the disk takes to sync a commit.
//!
//! The VFS of the log measures it for the thread that asks for it. Invariant: a thread that does
//! not ask for it reads no clock.

use std::cell::Cell;
use std::time::{Duration, Instant};

thread_local! {
    /// The syncs since this thread asked for their time.
    static SYNCS: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Measures the syncs of this thread from now on.
pub(in crate::store) fn begin() {
    SYNCS.set(Some(Duration::ZERO));
}

/// Returns the time of the syncs since [`begin`], and measures no more; `None` if there was none.
pub(in crate::store) fn end() -> Option<Duration> {
    SYNCS.take().filter(|syncs| !syncs.is_zero())
}

/// Does a sync, and measures it if this thread has asked for that.
pub(super) fn timed<T>(sync: impl FnOnce() -> T) -> T {
    let Some(before) = SYNCS.get() else { return sync() };
    let began = Instant::now();
    let done = sync();
    // A clock that has not moved must not look as if there had been no sync.
    SYNCS.set(Some(before + began.elapsed().max(Duration::from_nanos(1))));
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_syncs_of_a_thread_that_asks_are_measured() {
        timed(|| ());
        assert_eq!(end(), None);
        begin();
        assert_eq!(end(), None);
        begin();
        timed(std::thread::yield_now);
        assert!(end().is_some());
        timed(|| ());
        assert_eq!(end(), None);
    }
}
