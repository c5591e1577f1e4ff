//! The next due time: when leases and sessions are swept next, and a signal if something is due
//! earlier.
//!
//! Most leases are acked long before they end, and a sweep for each of them would be a command of
//! the writer for each of them. Invariant: something that becomes due while a sweep runs, or before
//! the time for which the sweep waits, is followed by a sweep.

use std::sync::atomic::{AtomicI64, Ordering};

use hive_core::time::BootTime;

use crate::sync::Notify;

/// No time is after this one, so each due time is a signal.
const NEVER: i64 = i64::MAX;

/// The next due time of the sweep.
#[derive(Debug)]
pub struct Due {
    /// The time for which the sweep waits; `NEVER` while it runs.
    next: AtomicI64,
    sooner: Notify,
}

impl Default for Due {
    fn default() -> Self {
        Self { next: AtomicI64::new(NEVER), sooner: Notify::new() }
    }
}

impl Due {
    /// Notes that something is due at this time, from a commit that is on disk.
    pub fn at(&self, time: BootTime) {
        if time.0 < self.next.load(Ordering::SeqCst) {
            self.now();
        }
    }

    /// Notes that something is due now.
    pub fn now(&self) {
        self.sooner.notify_one();
    }

    /// Begins a sweep. The signal is for what becomes due after this.
    pub fn begin(&self) -> impl Future<Output = ()> + Send + '_ {
        self.next.store(NEVER, Ordering::SeqCst);
        self.sooner.notified()
    }

    /// Notes for which time the sweep waits from now on; `None` if nothing is due.
    pub fn wait_until(&self, time: Option<BootTime>) {
        self.next.store(time.map_or(NEVER, |time| time.0), Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns whether a signal was sent since the last one.
    async fn is_signalled(signal: impl Future<Output = ()>) -> bool {
        let signal = std::pin::pin!(signal);
        tokio::time::timeout(std::time::Duration::ZERO, signal).await.is_ok()
    }

    #[tokio::test]
    async fn only_what_is_due_before_the_next_sweep_brings_it_forward() {
        let due = Due::default();
        let signal = due.begin();
        due.wait_until(Some(BootTime(100)));
        due.at(BootTime(100));
        due.at(BootTime(200));
        assert!(!is_signalled(signal).await, "the timer of the sweep is not later");
        let signal = due.sooner.notified();
        due.at(BootTime(99));
        assert!(is_signalled(signal).await);
    }

    #[tokio::test]
    async fn all_that_becomes_due_while_a_sweep_runs_is_followed_by_another() {
        let due = Due::default();
        due.wait_until(Some(BootTime(1)));
        let signal = due.begin();
        due.at(BootTime(1000));
        due.wait_until(Some(BootTime(1)));
        assert!(is_signalled(signal).await, "the sweep may have read before it");
    }

    #[tokio::test]
    async fn a_sweep_that_waits_for_nothing_hears_of_everything() {
        let due = Due::default();
        let signal = due.begin();
        due.wait_until(None);
        due.at(BootTime(i64::MAX - 1));
        assert!(is_signalled(signal).await);
        let signal = due.begin();
        due.wait_until(Some(BootTime(1)));
        due.now();
        assert!(is_signalled(signal).await, "what is due now is earlier than any time");
    }
}
