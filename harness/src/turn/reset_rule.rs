//! The operator's rule for the end of a conversation: at a time of day, or after a pause.
//!
//! Invariant: the rule is checked only when a turn begins, so it never starts a turn of an idle
//! agent.

use std::time::Duration;

use hive_core::time::WallTime;
use hive_core::time_of_day::TimeOfDay;
use jiff::tz::TimeZone;

/// When a new conversation starts, regardless of the size of the old one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetRule {
    /// With the first mail after this time of each day.
    pub daily_at: Option<TimeOfDay>,
    /// With the first mail after this time without a turn.
    pub idle: Option<Duration>,
    /// Whether the agent first writes its notes in the old conversation.
    pub notes: bool,
    /// The zone of the time of day.
    pub zone: TimeZone,
}

impl Default for ResetRule {
    fn default() -> Self {
        Self { daily_at: None, idle: None, notes: false, zone: TimeZone::UTC }
    }
}

impl ResetRule {
    /// Returns why a conversation is over whose last turn began and was last measured at these
    /// times; `None`: it continues.
    pub fn reason(
        &self,
        began: WallTime,
        measured: WallTime,
        now: WallTime,
    ) -> Option<&'static str> {
        let last = self.daily_at.and_then(|time| time.last(now, &self.zone));
        if last.is_some_and(|last| began <= last) {
            return Some("the time of its daily reset has passed");
        }
        let has_rested = self.idle.is_some_and(|idle| now.since(measured) >= idle);
        has_rested.then_some("it has rested for as long as `reset` allows")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    fn is_over(rule: &ResetRule, began: i64, measured: i64, now: i64) -> bool {
        rule.reason(WallTime(began * HOUR), WallTime(measured * HOUR), WallTime(now * HOUR))
            .is_some()
    }

    #[test]
    fn a_rule_that_is_not_set_ends_nothing() {
        assert!(!is_over(&ResetRule::default(), 0, 0, 1_000_000));
    }

    #[test]
    fn a_daily_reset_comes_once_with_the_first_turn_after_its_time() {
        let rule = ResetRule { daily_at: TimeOfDay::parse("04:00"), ..ResetRule::default() };
        assert!(!is_over(&rule, 1, 1, 3));
        assert!(is_over(&rule, 1, 1, 5));
        assert!(!is_over(&rule, 5, 5, 27));
        assert!(is_over(&rule, 5, 5, 28));
        assert!(is_over(&rule, 3, 6, 7), "the last turn began before the time and ended after it");
    }

    #[test]
    fn a_rest_is_counted_from_the_end_of_the_last_turn() {
        let rule = ResetRule { idle: Some(Duration::from_secs(3600)), ..ResetRule::default() };
        assert!(!is_over(&rule, 1, 3, 3) && is_over(&rule, 1, 3, 4));
        let both = ResetRule { daily_at: TimeOfDay::parse("04:00"), ..rule };
        assert!(is_over(&both, 2, 2, 3) && is_over(&both, 3, 4, 4), "whichever comes first");
    }
}
