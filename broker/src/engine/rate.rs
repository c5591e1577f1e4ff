//! Rates: how fast an origin may send. A bucket per origin, filled by the boot clock; the operator and the broker have none.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hive_core::time::BootTime;

use crate::store::AgentKey;

/// Tokens left, in thousandths, and when that was counted.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    millis: u64,
    counted: BootTime,
}

/// Everybody's buckets.
#[derive(Debug)]
pub struct Buckets {
    per_minute: u32,
    buckets: Mutex<HashMap<AgentKey, Bucket>>,
}

impl Buckets {
    /// Buckets that hold a minute's worth.
    #[must_use]
    pub fn new(per_minute: u32) -> Self {
        Self { per_minute, buckets: Mutex::default() }
    }

    /// Takes one token, or says how long until there is one.
    pub fn take(&self, origin: AgentKey, now: BootTime) -> Result<(), Duration> {
        let full = u64::from(self.per_minute) * 1000;
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let bucket = buckets.entry(origin).or_insert(Bucket { millis: full, counted: now });
        let passed = u64::try_from(now.since(bucket.counted).as_millis()).unwrap_or(u64::MAX);
        // A token a minute is 1000 thousandths in 60,000 ms.
        let filled = passed.saturating_mul(u64::from(self.per_minute)) / 60;
        if filled > 0 {
            *bucket = Bucket { millis: bucket.millis.saturating_add(filled).min(full), counted: now };
        }
        if bucket.millis >= 1000 {
            bucket.millis -= 1000;
            return Ok(());
        }
        let missing = 1000 - bucket.millis;
        Err(Duration::from_millis((missing * 60).div_ceil(u64::from(self.per_minute.max(1)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_a_minute_then_the_rate() {
        let buckets = Buckets::new(60);
        let agent = AgentKey(7);
        for _ in 0..60 {
            assert!(buckets.take(agent, BootTime(0)).is_ok());
        }
        assert_eq!(buckets.take(agent, BootTime(0)), Err(Duration::from_secs(1)));
        assert!(buckets.take(agent, BootTime(999)).is_err());
        assert!(buckets.take(agent, BootTime(1000)).is_ok());
        assert!(buckets.take(AgentKey(8), BootTime(0)).is_ok());
    }
}
