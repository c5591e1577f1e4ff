//! A time of day, as `04:00`, and the last moment at which the local clock showed it.
//!
//! Invariant: that moment is never later than now, and every day has one. If a clock change skips
//! the time, the moment is the first after the gap.

use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;

use crate::time::WallTime;

/// A time of day, to the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay(Time);

impl TimeOfDay {
    /// Parses `HH:MM`, with 24 hours.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (hour, minute) = text.split_once(':')?;
        let number = |text: &str| {
            let is_plain = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
            is_plain.then(|| text.parse().ok()).flatten()
        };
        Time::new(number(hour)?, number(minute)?, 0, 0).ok().map(Self)
    }

    /// Returns it as the calendar has it.
    pub(crate) fn time(self) -> Time {
        self.0
    }

    /// Returns the last moment up to `now` at which the clock of `zone` showed this time; `None` if
    /// no such moment can be computed.
    #[must_use]
    pub fn last(self, now: WallTime, zone: &TimeZone) -> Option<WallTime> {
        let today = Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone.clone()).date();
        let days = [Some(today), today.yesterday().ok()];
        let moments = days
            .into_iter()
            .flatten()
            .filter_map(|day| zone.to_zoned(day.to_datetime(self.0)).ok());
        moments
            .map(|moment| WallTime(moment.timestamp().as_millisecond()))
            .find(|moment| *moment <= now)
    }
}

impl std::fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:02}:{:02}", self.0.hour(), self.0.minute())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> WallTime {
        WallTime(text.parse::<Timestamp>().expect("a time").as_millisecond())
    }

    fn last(time: &str, now: &str, zone: &str) -> WallTime {
        let zone = TimeZone::posix(zone).expect("a zone");
        TimeOfDay::parse(time).expect("a time of day").last(at(now), &zone).expect("a moment")
    }

    #[test]
    fn hours_and_minutes_have_two_digits_each() {
        for text in ["00:00", "04:00", "23:59"] {
            assert!(TimeOfDay::parse(text).is_some(), "{text}");
        }
        for text in
            ["", "4:00", "04:0", "24:00", "23:60", "04:00:00", "04.00", "+4:00", "04:+1", "noon"]
        {
            assert_eq!(TimeOfDay::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_last_moment_is_today_or_yesterday_by_the_local_clock() {
        assert_eq!(last("04:00", "2027-03-02T04:00:00Z", "UTC0"), at("2027-03-02T04:00:00Z"));
        assert_eq!(last("04:00", "2027-03-02T03:59:59.999Z", "UTC0"), at("2027-03-01T04:00:00Z"));
        // Two hours east of Greenwich it is the next day already.
        assert_eq!(last("00:30", "2027-03-01T22:31:00Z", "EET-2"), at("2027-03-01T22:30:00Z"));
        assert_eq!(last("00:30", "2027-03-01T22:29:00Z", "EET-2"), at("2027-02-28T22:30:00Z"));
    }

    #[test]
    fn a_day_whose_clock_changes_has_one_moment() {
        let berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
        // 02:30 is skipped: the clock goes from 02:00 to 03:00 at 01:00 UTC.
        assert_eq!(last("02:30", "2027-03-28T12:00:00Z", berlin), at("2027-03-28T01:30:00Z"));
        // 02:30 occurs twice: the first one counts.
        assert_eq!(last("02:30", "2027-10-31T12:00:00Z", berlin), at("2027-10-31T00:30:00Z"));
    }
}
