//! Times and durations. Functions and not traits, because a fault has the path of the field.
//!
//! Invariant: a time keeps its millisecond, a duration its nanosecond; values that protobuf calls
//! invalid are refused, never changed.

use std::time::Duration;

use hive_core::time::WallTime;

use super::{Invalid, required};

const NANOS_PER_MILLI: i32 = 1_000_000;
const NANOS_PER_SECOND: i32 = 1_000_000_000;

/// Longest duration of protobuf, in seconds (about 10,000 years).
const SPAN_SECONDS_MAX: i64 = 315_576_000_000;

/// Converts a time to the wire.
#[must_use]
pub fn timestamp(time: WallTime) -> prost_types::Timestamp {
    let millis = i32::try_from(time.0.rem_euclid(1000)).expect("a remainder of 1000 is small");
    prost_types::Timestamp { seconds: time.0.div_euclid(1000), nanos: millis * NANOS_PER_MILLI }
}

/// Converts a time from the wire; fractions of a millisecond are cut off.
pub fn wall_time(wire: prost_types::Timestamp, path: &str) -> Result<WallTime, Invalid> {
    let prost_types::Timestamp { seconds, nanos } = wire;
    if !(0..NANOS_PER_SECOND).contains(&nanos) {
        return Err(Invalid::new(path, "its nanos must lie between 0 and 999,999,999"));
    }
    // In i128, because the smallest second in milliseconds does not fit an i64.
    let millis = i128::from(seconds) * 1000 + i128::from(nanos / NANOS_PER_MILLI);
    let millis = i64::try_from(millis).map_err(|_| Invalid::new(path, "is too far away"))?;
    Ok(WallTime(millis))
}

/// Converts a time from a field that must be set.
pub fn required_wall_time(
    wire: Option<prost_types::Timestamp>,
    path: &str,
) -> Result<WallTime, Invalid> {
    wall_time(required(wire, path)?, path)
}

/// Converts a time from a field that may be unset.
pub fn optional_wall_time(
    wire: Option<prost_types::Timestamp>,
    path: &str,
) -> Result<Option<WallTime>, Invalid> {
    wire.map(|wire| wall_time(wire, path)).transpose()
}

/// Converts a duration to the wire; one longer than protobuf allows becomes the longest.
#[must_use]
pub fn duration(span: Duration) -> prost_types::Duration {
    match i64::try_from(span.as_secs()) {
        Ok(seconds) if seconds < SPAN_SECONDS_MAX => {
            let nanos =
                i32::try_from(span.subsec_nanos()).expect("less than a second of nanos is small");
            prost_types::Duration { seconds, nanos }
        }
        _ => prost_types::Duration { seconds: SPAN_SECONDS_MAX, nanos: 0 },
    }
}

/// Converts a duration from the wire; a negative one is refused.
pub fn span(wire: prost_types::Duration, path: &str) -> Result<Duration, Invalid> {
    let prost_types::Duration { seconds, nanos } = wire;
    if seconds < 0 || nanos < 0 {
        return Err(Invalid::new(path, "must not be negative"));
    }
    if nanos >= NANOS_PER_SECOND || seconds > SPAN_SECONDS_MAX {
        return Err(Invalid::new(path, "is no valid duration"));
    }
    Ok(Duration::new(seconds.unsigned_abs(), nanos.unsigned_abs()))
}

/// Converts a duration from a field that may be unset.
pub fn optional_span(
    wire: Option<prost_types::Duration>,
    path: &str,
) -> Result<Option<Duration>, Invalid> {
    wire.map(|wire| span(wire, path)).transpose()
}
