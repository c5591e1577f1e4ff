//! Spans of time on the command line.

use std::time::Duration;

/// Returns the span that a text names.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    hive_core::span::parse(text).ok_or_else(|| format!("give {}", hive_core::span::RULE))
}

pub(crate) fn wire(span: Duration) -> prost_types::Duration {
    prost_types::Duration::try_from(span).expect("a span that was parsed has few seconds")
}
