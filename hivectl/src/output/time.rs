//! Times for people: local, short, and only as exact as helps. Programs get ISO 8601 in UTC.

use hive_core::time::WallTime;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use prost_types::Timestamp as Wire;

pub(crate) fn from_wire(time: Option<Wire>) -> Option<WallTime> {
    let Wire { seconds, nanos } = time?;
    Some(WallTime(seconds.saturating_mul(1000).saturating_add(i64::from(nanos) / 1_000_000)))
}

/// Formats a time: without its day if that is today, without its year if that is this one.
pub(crate) fn short(time: WallTime, now: Timestamp, zone: &TimeZone) -> String {
    let Ok(time) = Timestamp::from_millisecond(time.0) else { return "-".to_owned() };
    let (time, now) = (time.to_zoned(zone.clone()), now.to_zoned(zone.clone()));
    let format = if time.date() == now.date() {
        "%H:%M:%S"
    } else if time.year() == now.year() {
        "%b %d %H:%M"
    } else {
        "%Y-%m-%d %H:%M"
    };
    time.strftime(format).to_string()
}

/// ISO 8601 in UTC, to the millisecond.
pub(crate) fn iso(time: WallTime) -> String {
    Timestamp::from_millisecond(time.0)
        .map_or_else(|_| "-".to_owned(), |time| time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// Formats a span between two times, in the unit that suits it.
pub(crate) fn span(from: WallTime, to: WallTime) -> String {
    let millis = to.since(from).as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1_000, millis % 1_000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis % 60_000 / 1_000),
        _ => format!("{} h {} min", millis / 3_600_000, millis % 3_600_000 / 60_000),
    }
}

/// Formats whole seconds exactly, in as few units as that takes: `1 d`, `1 h 30 min`.
pub(crate) fn exact(seconds: u64) -> String {
    let units = [
        (seconds / 86_400, "d"),
        (seconds / 3_600 % 24, "h"),
        (seconds / 60 % 60, "min"),
        (seconds % 60, "s"),
    ];
    let parts: Vec<String> = units
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, unit)| format!("{count} {unit}"))
        .collect();
    if parts.is_empty() { "0 s".to_owned() } else { parts.join(" ") }
}

/// Formats the time that is left until then; a distant time is a date.
pub(crate) fn until(time: WallTime, now: Timestamp, zone: &TimeZone) -> String {
    let seconds = time.0.saturating_sub(now.as_millisecond()) / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    if days > 30 {
        return short(time, now, zone);
    }
    match seconds {
        ..1 => "now".to_owned(),
        1..60 => format!("in {seconds} s"),
        60..3_600 => format!("in {minutes} min"),
        3_600..86_400 => format!("in {hours} h {} min", minutes % 60),
        _ => format!("in {days} d {} h", hours % 24),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_583_064_000_000; // 2020-03-01 12:00 UTC

    #[test]
    fn times_are_as_exact_as_helps() {
        let now = Timestamp::from_millisecond(NOON).expect("a time");
        let shown = |millis| short(WallTime(millis), now, &TimeZone::UTC);
        assert_eq!(shown(NOON - 61_000), "11:58:59");
        assert_eq!(shown(NOON - 86_400_000), "Feb 29 12:00");
        assert_eq!(shown(NOON - 366 * 86_400_000), "2019-03-01 12:00");
        assert_eq!(shown(i64::MAX), "-");
    }

    #[test]
    fn a_future_time_counts_down() {
        let now = Timestamp::from_millisecond(NOON).expect("a time");
        let shown = |seconds: i64| until(WallTime(NOON + seconds * 1_000), now, &TimeZone::UTC);
        assert_eq!([shown(-1), shown(0), shown(1), shown(59)], ["now", "now", "in 1 s", "in 59 s"]);
        assert_eq!(
            [shown(60), shown(3_599), shown(3_660)],
            ["in 1 min", "in 59 min", "in 1 h 1 min"]
        );
        assert_eq!(
            [shown(90_000), shown(31 * 86_400), shown(400 * 86_400)],
            ["in 1 d 1 h", "Apr 01 12:00", "2021-04-05 12:00"]
        );
        assert_eq!(until(WallTime(i64::MAX), now, &TimeZone::UTC), "-");
    }

    #[test]
    fn an_exact_span_has_every_unit_that_it_needs() {
        assert_eq!([exact(0), exact(60), exact(604_800)], ["0 s", "1 min", "7 d"]);
        assert_eq!([exact(5_400), exact(90_061)], ["1 h 30 min", "1 d 1 h 1 min 1 s"]);
    }

    #[test]
    fn json_times_are_iso_to_the_millisecond() {
        assert_eq!(iso(WallTime(NOON + 7)), "2020-03-01T12:00:00.007Z");
    }

    #[test]
    fn spans_have_the_unit_that_suits_them() {
        let shown = |millis| span(WallTime(0), WallTime(millis));
        assert_eq!(
            [shown(-5), shown(999), shown(1_050), shown(61_000), shown(3_660_000)],
            ["0 ms", "999 ms", "1.0 s", "1 min 1 s", "1 h 1 min"]
        );
    }
}
