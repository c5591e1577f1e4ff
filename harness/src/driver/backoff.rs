//! Waiting longer each time, with jitter.

use std::time::Duration;

use crate::token;

/// The first rest.
const FIRST: Duration = Duration::from_millis(100);
/// The longest rest.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits longer each time.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Begins again with the first rest.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The next rest: from half of it to all of it, so that a fleet does not come back at one
    /// moment.
    pub fn next_rest(&mut self) -> Duration {
        let rest = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        rest.mul_f64(0.5 + token::fraction() / 2.0)
    }

    /// Waits it out.
    pub async fn rest(&mut self) {
        tokio::time::sleep(self.next_rest()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_grow_to_their_bound_and_begin_again() {
        let mut backoff = Backoff::default();
        let rests: Vec<Duration> = (0..20).map(|_| backoff.next_rest()).collect();
        assert!(rests[0] >= FIRST / 2 && rests[0] <= FIRST);
        assert!(rests[19] >= LONGEST / 2 && rests[19] <= LONGEST);
        backoff.reset();
        assert!(backoff.next_rest() <= FIRST);
    }
}
