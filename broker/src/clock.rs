//! The broker's clocks, injected everywhere: the host's clocks, and a manual clock for tests.
//!
//! Invariant: nothing else in the broker reads the host's time.

use std::sync::Mutex;
use std::time::Duration;

use hive_core::time::{BootTime, Now, WallTime};
use rustix::time::{ClockId, clock_gettime};

/// A source of the time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// Returns the time of both clocks, read together.
    fn now(&self) -> Now;
    /// Identifies this boot of the host; boot times of another one mean nothing.
    fn boot_id(&self) -> &str;
}

/// The host's clocks.
#[derive(Debug)]
pub struct SystemClock {
    boot_id: String,
}

impl SystemClock {
    /// Reads which boot this is.
    pub fn new() -> std::io::Result<Self> {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        Ok(Self { boot_id })
    }
}

fn milliseconds(clock: ClockId) -> i64 {
    let time = clock_gettime(clock);
    time.tv_sec.saturating_mul(1000).saturating_add(time.tv_nsec / 1_000_000)
}

impl Clock for SystemClock {
    fn now(&self) -> Now {
        // The boot clock counts through a suspend, so a lease does not outlive its time on a laptop
        // that slept.
        Now {
            wall: WallTime(milliseconds(ClockId::Realtime)),
            boot: BootTime(milliseconds(ClockId::Boottime)),
        }
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}

/// A clock that does not move by itself.
#[derive(Debug)]
pub struct ManualClock {
    now: Mutex<Now>,
    boot_id: String,
}

impl ManualClock {
    /// Returns a clock at a fixed moment of this boot.
    #[must_use]
    pub fn new(boot_id: &str) -> Self {
        let now = Now { wall: WallTime(1_800_000_000_000), boot: BootTime(1_000_000) };
        Self { now: Mutex::new(now), boot_id: boot_id.to_owned() }
    }

    /// Advances both clocks.
    pub fn advance(&self, span: Duration) {
        let mut now = self.now.lock().expect("no test panics while it moves the clock");
        *now = Now { wall: now.wall.after(span), boot: now.boot.after(span) };
    }

    /// Sets the wall clock, as an administrator or NTP would; the boot clock does not change.
    pub fn set_wall(&self, wall: WallTime) {
        self.now.lock().expect("no test panics while it moves the clock").wall = wall;
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        *self.now.lock().expect("no test panics while it moves the clock")
    }

    fn boot_id(&self) -> &str {
        &self.boot_id
    }
}
