//! Backoff with jitter.

use std::time::Duration;

use crate::token;

/// The first pause.
const FIRST: Duration = Duration::from_millis(100);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(5);

/// A pause that doubles with each failure.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: u32,
}

impl Backoff {
    /// Resets to the first pause.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Returns the next pause: a random value from half of it to all of it, so that a fleet does
    /// not reconnect at one moment.
    pub fn next_rest(&mut self) -> Duration {
        let rest = FIRST.saturating_mul(1 << self.failures.min(10)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        rest.mul_f64(0.5 + token::fraction() / 2.0)
    }

    /// Waits for the next pause.
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
