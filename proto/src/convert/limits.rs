//! The limits of the hive, as the broker shows them: no request sets them. A harness reads the
//! backoff.

use hive_core::limits::{Backoff, Limits};

use super::time::{duration, span};
use super::{Invalid, required};
use crate::v1;

impl From<&Limits> for v1::Limits {
    fn from(limits: &Limits) -> Self {
        let Limits {
            body_bytes_max,
            inbox_depth_max,
            sender_stored_bytes_max,
            sends_per_minute_max,
            attempts_max,
            harness_grace_ms: _,
            // The broker's own intervals are not part of the contract.
            retry_backoff_base_ms: _,
            retry_backoff_max_ms: _,
            park_backoff_base_ms: _,
            park_backoff_max_ms: _,
            rate_limit_park_ms: _,
            request_id_hours: _,
            turn_events_hours: _,
            turn_events_bytes_max: _,
            questions_open_max,
            reminders_pending_max,
        } = limits;
        Self {
            body_bytes_max: *body_bytes_max,
            inbox_depth_max: *inbox_depth_max,
            sender_stored_bytes_max: *sender_stored_bytes_max,
            sends_per_minute_max: *sends_per_minute_max,
            attempts_max: *attempts_max,
            harness_grace: Some(duration(limits.harness_grace())),
            questions_open_max: *questions_open_max,
            reminders_pending_max: *reminders_pending_max,
        }
    }
}

impl From<Backoff> for v1::Backoff {
    fn from(backoff: Backoff) -> Self {
        let Backoff { base, max } = backoff;
        Self { base: Some(duration(base)), max: Some(duration(max)) }
    }
}

impl TryFrom<v1::Backoff> for Backoff {
    type Error = Invalid;

    fn try_from(wire: v1::Backoff) -> Result<Self, Invalid> {
        let v1::Backoff { base, max } = wire;
        Ok(Self {
            base: span(required(base, "base")?, "base")?,
            max: span(required(max, "max")?, "max")?,
        })
    }
}
