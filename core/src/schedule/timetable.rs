//! Timetables: the times at which something is due again and again.
//!
//! A due time has a number, counted from 0 at the first one, and is computed from the first one and
//! that number, so that no error adds up and no time is lost or doubled, whatever the broker missed
//! and however the clock jumped. Invariant: a later number is never due earlier.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};

use crate::time::WallTime;

/// A day without a change of its length.
const DAY_SECS: u64 = 24 * 3600;
/// How far a day can be from that length, in days, over all changes of a zone.
const SHIFT_DAYS: u64 = 2;

/// A time zone by its name in the IANA database.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    zone: TimeZone,
}

impl Zone {
    /// Returns the zone of this name, as `Europe/Berlin`.
    ///
    /// # Errors
    ///
    /// There is none of that name.
    pub fn parse(name: &str) -> Result<Self, UnknownZone> {
        // Of the program's own database, so that every host knows the same zones.
        let zone = jiff::tz::TimeZoneDatabase::bundled().get(name).map_err(|_| UnknownZone)?;
        let name = zone.iana_name().ok_or(UnknownZone)?.to_owned();
        Ok(Self { name, zone })
    }

    /// Returns its name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.name
    }

    /// Returns its rules.
    pub(crate) fn time_zone(&self) -> &TimeZone {
        &self.zone
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

/// There is no zone of that name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no zone of the IANA database, as Europe/Berlin")]
pub struct UnknownZone;

/// When something is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// The first time.
    pub first: WallTime,
    /// The time from one due time to the next; `None` for once.
    pub every: Option<Duration>,
    /// The zone in which whole days are counted: with it, what is due every day keeps its hour over
    /// a change of summer time. Other intervals have the same length everywhere.
    pub zone: Option<Zone>,
}

/// A due time and its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its number, from 0.
    pub number: u64,
    /// The time.
    pub time: WallTime,
}

impl Timetable {
    /// Returns the due time of a number; `None` after the last one.
    #[must_use]
    pub fn at(&self, number: u64) -> Option<Due> {
        let time = match (number, self.every) {
            (0, _) => Some(self.first),
            (_, None) => None,
            (_, Some(every)) => match self.days(every) {
                Some((days, zone)) => self.in_days(days.checked_mul(number)?, zone),
                None => {
                    let span = u64::try_from(every.as_millis()).ok()?.checked_mul(number)?;
                    let time = self.first.0.checked_add(i64::try_from(span).ok()?)?;
                    // What no calendar has is never due.
                    Timestamp::from_millisecond(time).ok().map(|_| WallTime(time))
                }
            },
        };
        time.map(|time| Due { number, time })
    }

    /// Returns the last due time that is not after `now`; `None` before the first one.
    #[must_use]
    pub fn last(&self, now: WallTime) -> Option<Due> {
        let first = self.at(0).filter(|first| first.time <= now)?;
        let Some(every) = self.every.filter(|every| !every.is_zero()) else { return Some(first) };
        let passed = now.since(self.first);
        let days = self.days(every);
        // With days of a zone this is near; their changes move a due time by days at most.
        let near = u64::try_from(passed.as_millis() / every.as_millis()).unwrap_or(u64::MAX);
        let slack = if days.is_some() { SHIFT_DAYS } else { 0 };
        let candidates = (near.saturating_sub(slack)..=near.saturating_add(slack)).rev();
        candidates.filter_map(|number| self.at(number)).find(|due| due.time <= now).or(Some(first))
    }

    /// Returns the days of an interval and their zone, if the zone matters to it.
    fn days(&self, every: Duration) -> Option<(u64, &TimeZone)> {
        let zone = self.zone.as_ref()?;
        let is_days = every.as_secs().is_multiple_of(DAY_SECS) && every.subsec_nanos() == 0;
        is_days.then_some((every.as_secs() / DAY_SECS, &zone.zone))
    }

    /// Returns the time that many days of a zone after the first one, at the same time of day. A
    /// time that a day does not have is as much later as the clock was set forward; of one that it
    /// has twice, the first counts.
    fn in_days(&self, days: u64, zone: &TimeZone) -> Option<WallTime> {
        let first = Timestamp::from_millisecond(self.first.0).ok()?;
        let local: DateTime = zone.to_datetime(first);
        let span = Span::new().try_days(i64::try_from(days).ok()?).ok()?;
        let local = local.checked_add(span).ok()?;
        let time = zone.to_ambiguous_timestamp(local).compatible().ok()?;
        // The first one itself may be the second of two equal times of a day.
        Some(WallTime(time.as_millisecond().max(self.first.0)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> WallTime {
        WallTime(text.parse::<Timestamp>().expect("a time").as_millisecond())
    }

    fn timetable(first: &str, every_secs: u64, zone: &str) -> Timetable {
        let zone = (!zone.is_empty()).then(|| Zone::parse(zone).expect("a zone"));
        Timetable { first: time(first), every: Some(Duration::from_secs(every_secs)), zone }
    }

    fn times(timetable: &Timetable, numbers: std::ops::Range<u64>) -> Vec<String> {
        let shown = |due: Due| Timestamp::from_millisecond(due.time.0).expect("a time").to_string();
        numbers.map(|number| timetable.at(number).map_or("never".to_owned(), shown)).collect()
    }

    #[test]
    fn once_is_due_once() {
        let once = Timetable { every: None, ..timetable("2026-01-01T00:00:00Z", 60, "") };
        assert_eq!(times(&once, 0..2), ["2026-01-01T00:00:00Z", "never"]);
        assert_eq!(once.last(time("2025-12-31T23:59:59Z")), None);
        let only = Due { number: 0, time: once.first };
        assert_eq!(once.last(time("2030-01-01T00:00:00Z")), Some(only));
    }

    #[test]
    fn days_of_a_zone_keep_their_hour_over_summer_time() {
        let nine = timetable("2026-03-28T08:00:00Z", DAY_SECS, "Europe/Berlin");
        let wanted = ["2026-03-28T08:00:00Z", "2026-03-29T07:00:00Z", "2026-03-30T07:00:00Z"];
        assert_eq!(times(&nine, 0..3), wanted);
        assert_eq!(times(&nine, 211..213), ["2026-10-25T08:00:00Z", "2026-10-26T08:00:00Z"]);
        let fixed = timetable("2026-03-28T08:00:00Z", DAY_SECS, "");
        assert_eq!(times(&fixed, 1..2), ["2026-03-29T08:00:00Z"]);
        let hourly = timetable("2026-03-29T00:00:00Z", 3600, "Europe/Berlin");
        assert_eq!(times(&hourly, 1..3), ["2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"]);
    }

    #[test]
    fn a_time_that_a_day_lacks_or_has_twice_is_due_once() {
        // At half past two; that night the clock goes from 2 to 3, and in autumn from 3 to 2.
        let spring = timetable("2026-03-28T01:30:00Z", DAY_SECS, "Europe/Berlin");
        assert_eq!(times(&spring, 1..3), ["2026-03-29T01:30:00Z", "2026-03-30T00:30:00Z"]);
        let autumn = timetable("2026-10-24T00:30:00Z", DAY_SECS, "Europe/Berlin");
        assert_eq!(times(&autumn, 1..3), ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"]);
        // That Friday was left out in Samoa, so two numbers are due at once.
        let samoa = timetable("2011-12-29T19:00:00Z", DAY_SECS, "Pacific/Apia");
        assert_eq!(times(&samoa, 1..3), ["2011-12-30T19:00:00Z", "2011-12-30T19:00:00Z"]);
        assert_eq!(samoa.last(time("2011-12-30T19:00:00Z")).map(|due| due.number), Some(2));
    }

    #[test]
    fn what_no_calendar_has_is_never_due() {
        for zone in ["", "UTC"] {
            let far = timetable("9990-01-01T00:00:00Z", 3_660 * DAY_SECS, zone);
            assert_eq!(times(&far, 1..2), ["never"]);
            assert_eq!(far.at(u64::MAX), None);
            assert_eq!(far.last(WallTime(i64::MAX)).map(|due| due.number), Some(0));
        }
        assert_eq!(
            Timetable { first: WallTime(i64::MAX), ..timetable("2026-01-01T00:00:00Z", 60, "") }
                .at(1),
            None
        );
    }

    #[test]
    fn a_zone_has_a_name_of_the_database() {
        assert_eq!(
            Zone::parse("Europe/Berlin").map(|zone| zone.as_str().to_owned()),
            Ok("Europe/Berlin".to_owned())
        );
        for wrong in ["", "Berlin", "Europe/Nowhere", "+02:00", "../etc/passwd", "Europe/Berlin\n"]
        {
            assert_eq!(Zone::parse(wrong).err(), Some(UnknownZone), "{wrong:?}");
        }
    }

    const ZONES: [&str; 6] =
        ["", "UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Australia/Lord_Howe"];

    fn any_timetable() -> impl Strategy<Value = Timetable> {
        let first = 0i64..4_102_444_800_000;
        let every = prop_oneof![60u64..7 * DAY_SECS, (1u64..40).prop_map(|days| days * DAY_SECS)];
        (first, every, proptest::sample::select(&ZONES[..])).prop_map(|(first, every, zone)| {
            let zone = (!zone.is_empty()).then(|| Zone::parse(zone).expect("a zone"));
            let every = Some(Duration::from_secs(every));
            Timetable { first: WallTime(first), every, zone }
        })
    }

    proptest! {
        /// The last due time is the last one: found by counting, too.
        #[test]
        fn the_last_due_time_is_the_greatest_number_that_is_not_later(
            timetable in any_timetable(), number in 0u64..20_000, late_ms in 0i64..200_000_000,
        ) {
            let Some(due) = timetable.at(number) else { return Ok(()) };
            let now = WallTime(due.time.0 + late_ms);
            let last = timetable.last(now).expect("one is due");
            prop_assert!(last.number >= number && last.time <= now, "{last:?}");
            let next = timetable.at(last.number + 1);
            prop_assert!(next.is_none_or(|next| next.time > now), "{next:?}");
        }

        /// A later number is never due earlier, and days are about as far apart as they should be.
        #[test]
        fn due_times_do_not_go_back(timetable in any_timetable(), number in 0u64..20_000) {
            let (Some(one), Some(next)) = (timetable.at(number), timetable.at(number + 1)) else {
                return Ok(());
            };
            prop_assert!(next.time >= one.time);
            let every = timetable.every.expect("an interval");
            let apart = next.time.since(one.time);
            prop_assert!(apart <= every + Duration::from_secs(2 * DAY_SECS), "{apart:?}");
            if timetable.zone.is_none() {
                prop_assert_eq!(apart, every);
            }
        }
    }
}
