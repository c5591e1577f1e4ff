//! Declarative faults, for tests that need no judge of their own: "the second sync of the log
//! fails".
//!
//! Invariant: a fault's effect depends only on how often it was met.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::op::{Action, Error, Kind, Op, Verdict};

#[derive(Debug)]
pub struct Fault {
    action: Action,
    kind: Option<Kind>,
    skip: u64,
    times: u64,
    verdict: Verdict,
    met: AtomicU64,
}

impl Fault {
    /// Returns a fault that makes each of these actions fail with EIO, until the disk is healed.
    pub fn at(action: Action) -> Self {
        Self {
            action,
            kind: None,
            skip: 0,
            times: u64::MAX,
            verdict: Verdict::Fail(Error::Io),
            met: AtomicU64::new(0),
        }
    }

    /// Limits the fault to files of this kind.
    #[must_use]
    pub fn of(mut self, kind: Kind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Lets this number of operations succeed first.
    #[must_use]
    pub fn after(mut self, count: u64) -> Self {
        self.skip = count;
        self
    }

    /// Limits the fault to this number of operations.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.times = count;
        self
    }

    /// Sets the verdict.
    #[must_use]
    pub fn with(mut self, verdict: Verdict) -> Self {
        self.verdict = verdict;
        self
    }

    /// Returns the fault's verdict on an operation.
    pub fn judge(&self, op: &Op) -> Verdict {
        if op.action != self.action || self.kind.is_some_and(|kind| kind != op.kind) {
            return Verdict::Proceed;
        }
        let met = self.met.fetch_add(1, Ordering::Relaxed);
        let strikes = met >= self.skip && met - self.skip < self.times;
        if strikes { self.verdict } else { Verdict::Proceed }
    }
}
