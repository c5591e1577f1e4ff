//! Spans of time as people write them: 90s, 30m, 2h, 7d.

use std::time::Duration;

use jiff::SpanRelativeTo;

/// What a text has to be that [`parse`] reads.
pub const RULE: &str = "a span of time, as 90s, 30m, 2h or 1d";

/// Returns the span that a text names, if it is one and longer than zero; days have 24 hours.
#[must_use]
pub fn parse(text: &str) -> Option<Duration> {
    let span = text.parse::<jiff::Span>().ok()?;
    let span = span.to_duration(SpanRelativeTo::days_are_24_hours()).ok()?;
    Duration::try_from(span).ok().filter(|span| !span.is_zero())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let seconds = |text| parse(text).map(|span| span.as_secs());
        assert_eq!(
            [seconds("90s"), seconds("30m"), seconds("2h"), seconds("1d12h")],
            [Some(90), Some(1800), Some(7200), Some(129_600)]
        );
        for wrong in ["", "0s", "-2h", "90", "soon", "2 years", "99999999999999d"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
