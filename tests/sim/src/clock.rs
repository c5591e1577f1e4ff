//! The clocks of the simulated host. One time that only goes forward (tokio's paused clock) drives
//! both clocks of the broker.
//!
//! Invariant: the boot clock advances with the time and starts at zero with each boot; the wall
//! clock can also be set.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use hive_broker::clock::Clock;
use hive_core::time::{BootTime, Now, WallTime};

/// The wall clock at the start of a simulation: five hours before the end of summer time in most of
/// Europe in 2026, or before its beginning in 2027.
const WALL_STARTS: [i64; 2] = [1_792_872_000_000, 1_806_177_600_000];

#[derive(Debug)]
struct Inner {
    elapsed: AtomicI64,
    wall_start: i64,
    wall_offset: AtomicI64,
}

/// The time shared by all tasks of a run.
#[derive(Clone, Debug)]
pub(crate) struct Time(Arc<Inner>);

impl Time {
    /// Returns the time of a seed.
    pub(crate) fn of(seed: u64) -> Self {
        let wall_start = WALL_STARTS[usize::from(seed % 2 == 1)];
        Self(Arc::new(Inner {
            elapsed: AtomicI64::new(0),
            wall_start,
            wall_offset: AtomicI64::new(wall_start),
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
        self.0.wall_offset.store(self.0.wall_start, Ordering::Relaxed);
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
