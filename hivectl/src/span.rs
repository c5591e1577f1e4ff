//! Spans of time as people write them on a command line: 90s, 30m, 2h, 7d.

use std::time::Duration;

use jiff::SpanRelativeTo;

/// Returns the span that a text names; days have 24 hours.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let span = text
        .parse::<jiff::Span>()
        .and_then(|span| span.to_duration(SpanRelativeTo::days_are_24_hours()));
    let span = span.ok().and_then(|span| Duration::try_from(span).ok());
    span.filter(|span| !span.is_zero())
        .ok_or_else(|| "give a span of time, as 90s, 30m, 2h or 1d".to_owned())
}

pub(crate) fn wire(span: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(span).expect("a span that was parsed has few seconds")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_people_write_them() {
        let seconds = |text| span(text).map(|span| span.as_secs());
        assert_eq!(
            [seconds("90s"), seconds("30m"), seconds("2h"), seconds("1d12h")],
            [Ok(90), Ok(1800), Ok(7200), Ok(129_600)]
        );
        for wrong in ["", "0s", "-2h", "90", "soon", "2 years", "99999999999999d"] {
            assert!(span(wrong).is_err(), "{wrong}");
        }
    }
}
