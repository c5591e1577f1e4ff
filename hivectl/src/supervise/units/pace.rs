//! The pause before an order is given again.
//!
//! Invariant: an order that has no effect, or whose effect does not last, is given at most every
//! thirty seconds, however often its unit is looked at.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(30);

/// When an order may be given again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    next: Option<(Instant, Duration)>,
}

impl Pace {
    /// Returns whether the order may be given now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        self.next.is_none_or(|(at, _)| at <= now)
    }

    /// Notes that the order is given; the pause after it is twice as long as the last one.
    pub(crate) fn given(&mut self, now: Instant) {
        let pause = self.next.map_or(FIRST, |(_, pause)| (pause * 2).min(LONGEST));
        self.next = Some((now + pause, pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_thirty_seconds() {
        let begin = Instant::now();
        let mut now = begin;
        let mut pace = Pace::default();
        let mut given = 0;
        while now < begin + Duration::from_secs(120) {
            if pace.allows(now) {
                pace.given(now);
                given += 1;
            }
            now += Duration::from_millis(100);
        }
        // After 0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5, 61.5 and 91.5 s.
        assert_eq!(given, 9);
    }
}
