//! Two clocks, never mixed: the wall clock for due times and for people, the boot clock for leases,
//! grace and backoff.
//!
//! Invariant: nothing that a clock jump could break is computed from [`WallTime`].

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970 by the host's wall clock. May jump.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct WallTime(pub i64);

/// Milliseconds since the host booted. Never jumps, continues over a restart of the broker, and is
/// meaningless after a reboot.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct BootTime(pub i64);

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock.
    pub wall: WallTime,
    /// The boot clock.
    pub boot: BootTime,
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

impl WallTime {
    /// Returns the time this long after `self`.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// Returns the time this long before `self`.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl BootTime {
    /// Returns the time this long after `self`.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }

    /// Returns the time from `earlier` to `self`; zero if `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Now {
    /// Returns the wall time at which the boot clock will show `due`, for people.
    #[must_use]
    pub fn wall_at(&self, due: BootTime) -> WallTime {
        WallTime(self.wall.0.saturating_add(due.0.saturating_sub(self.boot.0)))
    }
}
