//! Spans of time as narrow as a column: how long ago, and how long until.

use std::time::Duration;

use hive_core::time::WallTime;
use prost_types::Timestamp as Wire;

use crate::output::time::from_wire;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Formats the time since then in one unit; at most four columns for the next 27 years.
pub(crate) fn age(since: WallTime, now: WallTime) -> String {
    short(now.since(since))
}

/// Formats the time since a time of the wire; `-` for none.
pub(crate) fn age_of(since: Option<Wire>, now: WallTime) -> String {
    from_wire(since).map_or_else(|| "-".to_owned(), |since| age(since, now))
}

/// Formats the time until a time of the wire; `-` for none.
pub(crate) fn until_of(time: Option<Wire>, now: WallTime) -> String {
    from_wire(time).map_or_else(|| "-".to_owned(), |time| until(time, now))
}

pub(crate) fn short(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..MINUTE => format!("{seconds}s"),
        MINUTE..HOUR => format!("{}m", seconds / MINUTE),
        HOUR..172_800 => format!("{}h", seconds / HOUR),
        _ => format!("{}d", seconds / DAY),
    }
}

/// Formats the time until then; below an hour it counts seconds.
pub(crate) fn until(time: WallTime, now: WallTime) -> String {
    // Rounds up, so that `now` is not shown before the time has come.
    let seconds = time.since(now).as_millis().div_ceil(1000);
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    match seconds {
        0 => "now".to_owned(),
        1..HOUR => format!("in {}:{:02}", seconds / MINUTE, seconds % MINUTE),
        HOUR..DAY => format!("in {}h {:02}m", seconds / HOUR, seconds % HOUR / MINUTE),
        _ => format!("in {}d {:02}h", seconds / DAY, seconds % DAY / HOUR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_the_unit_that_suits_them() {
        let shown = |seconds: i64| age(WallTime(0), WallTime(seconds * 1000));
        assert_eq!(
            [-5, 0, 59, 60, 3599, 3600, 172_799, 172_800].map(shown),
            ["0s", "0s", "59s", "1m", "59m", "1h", "47h", "2d"]
        );
    }

    #[test]
    fn a_countdown_ends_at_its_time_and_not_before() {
        let shown = |millis: i64| until(WallTime(millis), WallTime(0));
        assert_eq!(
            [-1, 0, 1, 1000, 1001, 59_999, 60_000, 3_599_000, 3_600_000, 90_000_000].map(shown),
            [
                "now",
                "now",
                "in 0:01",
                "in 0:01",
                "in 0:02",
                "in 1:00",
                "in 1:00",
                "in 59:59",
                "in 1h 00m",
                "in 1d 01h"
            ]
        );
    }
}
