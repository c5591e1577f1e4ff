//! The clocks of the simulated host. One time that only goes forward (tokio's paused clock) drives
//! both clocks of the broker.
//!
//! Invariant: the boot clock advances with the time and starts at zero with each boot; the wall
//! clock can also be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hive_broker::clock::Clock;
use hive_core::time::{BootTime, Now, WallTime};

/// The wall clock at the start of a simulation.
const WALL_START: i64 = 1_800_000_000_000;

#[derive(Debug)]
struct Inner {
    elapsed: AtomicI64,
    wall_offset: AtomicI64,
}

/// The time shared by all tasks of a run.
#[derive(Clone, Debug)]
pub(crate) struct Time(Arc<Inner>);

impl Time {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            elapsed: AtomicI64::new(0),
            wall_offset: AtomicI64::new(WALL_START),
        }))
    }

    /// Returns the milliseconds since the simulation began.
    pub(crate) fn elapsed(&self) -> i64 {
        self.0.elapsed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_elapsed(&self, elapsed: i64) {
        self.0.elapsed.store(elapsed, Ordering::Relaxed);
    }

    pub(crate) fn wall(&self) -> i64 {
        self.elapsed() + self.0.wall_offset.load(Ordering::Relaxed)
    }

    /// Moves the wall clock by this many ms.
    pub(crate) fn jump(&self, by: i64) {
        self.0.wall_offset.fetch_add(by, Ordering::Relaxed);
    }

    /// Sets the wall clock right.
    pub(crate) fn set_right(&self) {
        self.0.wall_offset.store(WALL_START, Ordering::Relaxed);
    }

    /// Returns the clock of a boot that began at `boot_start`.
    pub(crate) fn boot(&self, boot_id: String, boot_start: i64) -> SimClock {
        SimClock { time: self.clone(), boot_start, boot_id }
    }
}

/// The clock of one boot.
#[derive(Debug)]
pub(crate) struct SimClock {
    time: Time,
    boot_start: i64,
    boot_id: String,
}

impl Clock for SimClock {
    fn now(&self) -> Now {
        Now {
            wall: WallTime(self.time.wall()),
            boot: BootTime(self.time.elapsed() - self.boot_start),
        }
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}
