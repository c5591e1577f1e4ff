//! Heartbeats of agents: the times of a day at which an idle agent looks after its own work.
//!
//! A window of the day begins at a time of day in a zone. The due times are its begin, and each
//! whole multiple of the interval after it, until its end. Each day counts afresh from its begin,
//! so a change of summer time shifts one day alone. Invariant: the next due time is later than the
//! time that it follows.

use std::time::Duration;

use jiff::Timestamp;
use jiff::civil::{Date, Time};

use crate::schedule::Zone;
use crate::time::WallTime;
use crate::time_of_day::TimeOfDay;

/// Shortest interval.
pub(crate) const EVERY_MIN: Duration = Duration::from_secs(60);
/// Longest interval.
pub(crate) const EVERY_MAX: Duration = Duration::from_secs(24 * 3600);
/// No due time is later than this after the one before it: a day, with all changes of its length.
pub const APART_MAX: Duration = Duration::from_secs(72 * 3600);

/// Due times, counted in days of a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heartbeat {
    /// The time from one due time to the next in a window.
    pub every: Duration,
    /// The window of each day; `None`: the whole day.
    pub window: Option<Window>,
    /// The zone of the days.
    pub zone: Zone,
}

/// A part of each day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its begin, which is part of it.
    pub begin: TimeOfDay,
    /// Its end, which is not; on the next day, unless it is later than the begin.
    pub end: TimeOfDay,
}

impl Window {
    /// Parses `HH:MM-HH:MM`, with two different times.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (begin, end) = text.split_once('-')?;
        let window = Self { begin: TimeOfDay::parse(begin)?, end: TimeOfDay::parse(end)? };
        (window.begin != window.end).then_some(window)
    }
}

impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}-{}", self.begin, self.end)
    }
}

impl Heartbeat {
    /// Returns the first due time after `after`; `None` where the calendar ends.
    #[must_use]
    pub fn next(&self, after: WallTime) -> Option<WallTime> {
        let every = i64::try_from(self.every.as_millis()).ok().filter(|every| *every > 0)?;
        self.windows_around(after)?.into_iter().find_map(|(begin, end)| {
            if after < begin {
                return Some(begin);
            }
            let passed = (after.0 - begin.0) / every;
            let next = WallTime(begin.0.checked_add(every.checked_mul(passed + 1)?)?);
            (next < end).then_some(next)
        })
    }

    /// Returns whether a time is in the window of a day.
    #[must_use]
    pub fn contains(&self, time: WallTime) -> bool {
        let windows = self.windows_around(time).unwrap_or_default();
        windows.iter().any(|(begin, end)| (*begin..*end).contains(&time))
    }

    /// Returns begin and end of the windows of some days before and after a time. A window ends
    /// before the next one begins.
    fn windows_around(&self, time: WallTime) -> Option<Vec<(WallTime, WallTime)>> {
        let zone = self.zone.time_zone();
        let date = zone.to_datetime(Timestamp::from_millisecond(time.0).ok()?).date();
        // A zone that changed sides of the date line has left out a whole day.
        let mut day = Some(date);
        for _ in 0..2 {
            day = day.and_then(|day| day.yesterday().ok());
        }
        let mut windows = Vec::new();
        for _ in 0..5 {
            let Some(date) = day else { break };
            windows.extend(self.window_of(date));
            day = date.tomorrow().ok();
        }
        Some(windows)
    }

    /// Returns begin and end of the window that begins on a day.
    fn window_of(&self, date: Date) -> Option<(WallTime, WallTime)> {
        let midnight = Time::midnight();
        let (begin, end) = self
            .window
            .map_or((midnight, midnight), |window| (window.begin.time(), window.end.time()));
        let tomorrow = date.tomorrow().ok()?;
        let last = if begin < end { date } else { tomorrow };
        let start = self.moment(date, begin)?;
        let end = self.moment(last, end)?.min(self.moment(tomorrow, begin)?);
        // If the clock is set forward over the whole window, its begin alone is due.
        Some((start, end.max(WallTime(start.0 + 1))))
    }

    /// Returns when the clock shows this time. A time that a day does not have is as much later as
    /// the clock was set forward; of one that it has twice, the first counts.
    fn moment(&self, date: Date, time: Time) -> Option<WallTime> {
        let zone = self.zone.time_zone();
        let moment = zone.to_ambiguous_timestamp(date.to_datetime(time)).compatible().ok()?;
        Some(WallTime(moment.as_millisecond()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> WallTime {
        WallTime(text.parse::<Timestamp>().expect("a time").as_millisecond())
    }

    fn heartbeat(minutes: u64, between: &str, zone: &str) -> Heartbeat {
        let window = (!between.is_empty()).then(|| Window::parse(between).expect("a window"));
        let zone = Zone::parse(zone).expect("a zone");
        Heartbeat { every: Duration::from_secs(60 * minutes), window, zone }
    }

    /// The due times after a time, without the last digits.
    fn after(heartbeat: &Heartbeat, from: &str, count: usize) -> Vec<String> {
        let due = std::iter::successors(heartbeat.next(time(from)), |due| heartbeat.next(*due));
        let shown = |due: WallTime| Timestamp::from_millisecond(due.0).expect("a time").to_string();
        due.take(count).map(|due| shown(due).replace(":00Z", "")).collect()
    }

    #[test]
    fn a_window_has_two_different_times() {
        for text in ["08:00-22:00", "22:30-06:00", "00:00-23:59"] {
            assert_eq!(Window::parse(text).map(|window| window.to_string()), Some(text.to_owned()));
        }
        for text in ["", "08:00", "08:00-08:00", "8:00-22:00", "08:00-24:00", "08:00 - 22:00"] {
            assert_eq!(Window::parse(text), None, "{text}");
        }
    }

    #[test]
    fn the_begin_is_due_and_the_end_is_not() {
        let hourly = heartbeat(60, "08:00-10:00", "UTC");
        let wanted = ["2027-03-02T08:00", "2027-03-02T09:00", "2027-03-03T08:00"];
        assert_eq!(after(&hourly, "2027-03-02T07:59:59.999Z", 3), wanted);
        assert_eq!(after(&hourly, "2027-03-02T08:00:00Z", 2), wanted[1..]);
        assert!(!hourly.contains(time("2027-03-02T10:00:00Z")));
        assert!(hourly.contains(time("2027-03-02T09:59:59.999Z")));
        // Each day counts afresh from its begin.
        let odd = heartbeat(50, "08:00-10:00", "UTC");
        let wanted = ["2027-03-02T08:50", "2027-03-02T09:40", "2027-03-03T08:00"];
        assert_eq!(after(&odd, "2027-03-02T08:00:00Z", 3), wanted);
        let rare = heartbeat(24 * 60, "08:00-10:00", "UTC");
        assert_eq!(after(&rare, "2027-03-02T08:00:00Z", 1), wanted[2..]);
    }

    #[test]
    fn a_window_may_go_over_midnight_and_a_day_may_have_none() {
        let night = heartbeat(180, "22:00-06:00", "Europe/Berlin");
        let wanted = ["2027-01-01T00:00", "2027-01-01T03:00", "2027-01-01T21:00"];
        assert_eq!(after(&night, "2026-12-31T21:00:00Z", 3), wanted);
        let whole = heartbeat(11 * 60, "", "Europe/Berlin");
        let wanted = ["2027-01-01T10:00", "2027-01-01T21:00", "2027-01-01T23:00"];
        assert_eq!(after(&whole, "2026-12-31T23:00:00Z", 3), wanted);
    }

    #[test]
    fn days_with_a_change_of_the_clock_begin_at_their_time_of_day() {
        let early = heartbeat(120, "01:00-05:00", "Europe/Berlin");
        // From 2 to 3 at 01:00 UTC: the window has three hours.
        let wanted = ["2027-03-28T00:00", "2027-03-28T02:00", "2027-03-28T23:00"];
        assert_eq!(after(&early, "2027-03-27T12:00:00Z", 3), wanted);
        // From 3 to 2 at 01:00 UTC: it has five.
        let wanted = ["2027-10-30T23:00", "2027-10-31T01:00", "2027-10-31T03:00"];
        assert_eq!(after(&early, "2027-10-30T12:00:00Z", 3), wanted);
        // The clock jumps over the whole window.
        let skipped = heartbeat(10, "02:15-02:45", "Europe/Berlin");
        let wanted = ["2027-03-28T01:15", "2027-03-28T01:25", "2027-03-28T01:35"];
        assert_eq!(after(&skipped, "2027-03-27T12:00:00Z", 3), wanted);
        let half = heartbeat(10, "02:30-03:00", "Europe/Berlin");
        let wanted = ["2027-03-28T01:30", "2027-03-29T00:30"];
        assert_eq!(after(&half, "2027-03-27T12:00:00Z", 2), wanted);
        // That Friday was left out in Samoa.
        let samoa = heartbeat(24 * 60, "09:00-10:00", "Pacific/Apia");
        let wanted = ["2011-12-29T19:00", "2011-12-30T19:00", "2011-12-31T19:00"];
        assert_eq!(after(&samoa, "2011-12-29T00:00:00Z", 3), wanted);
    }

    #[test]
    fn no_calendar_no_due_time() {
        for far in [i64::MIN, i64::MAX, 253_402_207_200_000] {
            assert_eq!(heartbeat(60, "08:00-09:00", "UTC").next(WallTime(far)), None, "{far}");
            assert!(!heartbeat(60, "08:00-09:00", "UTC").contains(WallTime(far)));
        }
    }

    fn any_heartbeat() -> impl Strategy<Value = Heartbeat> {
        let zone = prop_oneof![
            Just("UTC"),
            Just("Europe/Berlin"),
            Just("America/St_Johns"),
            Just("Australia/Lord_Howe"),
            Just("Pacific/Apia"),
        ];
        let minute = || 0..24 * 60_u32;
        let window = proptest::option::of((minute(), minute()).prop_map(|(begin, end)| {
            let end = if begin == end { (end + 1) % (24 * 60) } else { end };
            let text = |minute: u32| format!("{:02}:{:02}", minute / 60, minute % 60);
            Window::parse(&format!("{}-{}", text(begin), text(end))).expect("a window")
        }));
        (60..=24 * 3600_u64, window, zone).prop_map(|(every, window, zone)| Heartbeat {
            every: Duration::from_secs(every),
            window,
            zone: Zone::parse(zone).expect("a zone"),
        })
    }

    proptest! {
        #[test]
        fn the_next_due_time_is_later_in_the_window_and_at_most_a_day_away(
            heartbeat in any_heartbeat(),
            // 2011 to 2037, with all changes of these zones.
            after in 1_300_000_000_000..2_130_000_000_000_i64,
            days in proptest::bool::weighted(0.2),
        ) {
            // Some are near the day that Samoa left out.
            let after = if days { 1_325_152_800_000 + after % 172_800_000 } else { after };
            let after = WallTime(after);
            let next = heartbeat.next(after).expect("a due time");
            prop_assert!(next > after);
            prop_assert!(heartbeat.contains(next));
            prop_assert!(next.since(after) <= APART_MAX);
            let following = heartbeat.next(next).expect("a due time");
            let is_quiet = heartbeat.zone.as_str() == "UTC";
            prop_assert!(!is_quiet || following.since(next) <= EVERY_MAX);
            prop_assert!(!is_quiet || next.since(after) <= EVERY_MAX);
            // Nothing is due between: what is asked for a bit later has the same answer.
            let between = WallTime(after.0 + (next.0 - after.0 - 1) / 2);
            prop_assert_eq!(heartbeat.next(between), Some(next));
            prop_assert_eq!(heartbeat.next(WallTime(next.0 - 1)), Some(next));
        }

        #[test]
        fn without_a_change_of_the_clock_due_times_are_whole_intervals_after_the_begin(
            minutes in 1..=24 * 60_u64,
            begin in 0..24 * 60_i64,
            length in 1..24 * 60_i64,
            after in 1_300_000_000_000..2_130_000_000_000_i64,
        ) {
            let text = |minute: i64| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
            let between = format!("{}-{}", text(begin), text(begin + length));
            let heartbeat = heartbeat(minutes, &between, "UTC");
            let next = heartbeat.next(WallTime(after)).expect("a due time");
            let since_begin = (next.0 - begin * 60_000).rem_euclid(86_400_000);
            prop_assert!(since_begin < length * 60_000, "outside the window");
            let every = i64::try_from(minutes).expect("small") * 60_000;
            prop_assert_eq!(since_begin % every, 0);
            // No earlier one was left out.
            let before = next.0 - every;
            let was_due = since_begin >= every;
            prop_assert!(!was_due || before <= after);
        }
    }
}
