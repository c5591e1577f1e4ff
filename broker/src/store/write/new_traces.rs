//! How many traces begin: at most so many a second, as many as a reader of traces can want.
//!
//! A hive under load would otherwise give its collector two spans for each of thousands of messages
//! a second, and the queue would drop parts of traces. Here whole traces are left out. Invariant:
//! work in a trace that a caller states, or that has begun, is not counted: its trace stays whole.

use std::cell::Cell;

use hive_core::time::BootTime;

/// Most traces that begin in a second, and at once.
const PER_SECOND: i64 = 100;
/// Milliseconds until one more may begin.
const MILLIS_EACH: i64 = 1000 / PER_SECOND;

/// The traces that may begin.
#[derive(Debug)]
pub(in crate::store) struct NewTraces {
    left: Cell<i64>,
    /// The time up to which `left` was increased.
    counted: Cell<BootTime>,
}

impl NewTraces {
    pub(super) fn new(now: BootTime) -> Self {
        Self { left: Cell::new(PER_SECOND), counted: Cell::new(now) }
    }

    /// Returns it with those that the time since the last call allows.
    pub(super) fn refilled(&self, now: BootTime) -> &Self {
        let since = now.0.saturating_sub(self.counted.get().0);
        let more = since / MILLIS_EACH;
        if more > 0 {
            self.left.set(self.left.get().saturating_add(more).min(PER_SECOND));
            // What is left of the time counts for the next one.
            self.counted.set(BootTime(now.0 - since % MILLIS_EACH));
        }
        self
    }

    /// Takes one; returns false if no more may begin now.
    pub(super) fn take(&self) -> bool {
        let left = self.left.get();
        if left > 0 {
            self.left.set(left - 1);
        }
        left > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(traces: &NewTraces) -> usize {
        std::iter::repeat_with(|| traces.take())
            .take(1000)
            .take_while(|may_begin| *may_begin)
            .count()
    }

    #[test]
    fn a_hundred_may_begin_at_once_and_in_each_second() {
        let traces = NewTraces::new(BootTime(5));
        assert_eq!(taken(&traces), 100);
        // The rest of the time is kept: 19 ms are one, and 21 ms are two.
        assert_eq!(taken(traces.refilled(BootTime(24))), 1);
        assert_eq!(taken(traces.refilled(BootTime(26))), 1);
        assert_eq!(taken(traces.refilled(BootTime(1005))), 98);
        assert_eq!(taken(traces.refilled(BootTime(1_000_000))), 100);
        // A clock that was set back gives none.
        assert_eq!(taken(traces.refilled(BootTime(1))), 0);
    }
}
