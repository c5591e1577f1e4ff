//! Rates: how often an origin may act. A bucket per origin, refilled by the boot clock; the
//! operator and the broker have none.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hive_core::time::BootTime;

use crate::map::Map;
use crate::store::AgentKey;

/// The parts of a token: each millisecond adds as many parts as a minute adds tokens, so that
/// rounding loses nothing.
const TOKEN_PARTS: u64 = 60_000;

/// The parts that are left, and when they were counted.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    parts: u64,
    counted: BootTime,
}

/// The buckets of all origins.
#[derive(Debug, Default)]
pub struct Buckets {
    buckets: Mutex<Map<AgentKey, Bucket>>,
}

impl Buckets {
    /// Takes one token from a bucket that holds those of a minute, or returns how long until there
    /// is one.
    pub fn take(&self, origin: AgentKey, per_minute: u32, now: BootTime) -> Result<(), Duration> {
        let per_minute = u64::from(per_minute);
        let full = per_minute * TOKEN_PARTS;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(origin).or_insert(Bucket { parts: full, counted: now });
        let passed = u64::try_from(now.since(bucket.counted).as_millis()).unwrap_or(u64::MAX);
        let filled = passed.saturating_mul(per_minute);
        *bucket = Bucket { parts: bucket.parts.saturating_add(filled).min(full), counted: now };
        if bucket.parts >= TOKEN_PARTS {
            bucket.parts -= TOKEN_PARTS;
            return Ok(());
        }
        Err(Duration::from_millis((TOKEN_PARTS - bucket.parts).div_ceil(per_minute.max(1))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_a_minute_then_the_rate() {
        let buckets = Buckets::default();
        let agent = AgentKey(7);
        for _ in 0..60 {
            assert!(buckets.take(agent, 60, BootTime(0)).is_ok());
        }
        assert_eq!(buckets.take(agent, 60, BootTime(0)), Err(Duration::from_secs(1)));
        assert!(buckets.take(agent, 60, BootTime(999)).is_err());
        assert!(buckets.take(agent, 60, BootTime(1000)).is_ok());
        assert!(buckets.take(AgentKey(8), 60, BootTime(0)).is_ok());
    }
}
