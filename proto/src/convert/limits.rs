//! The bounds in force, as the broker shows them. One way only: nobody sets them over the wire.

use hive_core::limits::Limits;

use super::time::duration;
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
            // How the broker spaces its own work is not for clients to build on.
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
