//! The tools of the group `scheduling`, for the caller's own schedules.
//!
//! Invariant: what adds to the mail of a schedule is asked of the operator, as a change is that the
//! group `approvals` asks for; its text says whether it is made. The rest is done at once.

pub(super) mod cancel;
pub(super) mod edit;
pub(super) mod fire;
pub(super) mod list;
pub(super) mod request;

use hive_proto::v1::ScheduleState;
use schemars::JsonSchema;
use serde::Deserialize;

use super::schema;
use crate::error::Refusal;

const NAME_CHARS_MAX: usize = 63;

/// The arguments of a tool that is about one schedule.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OneSchedule {
    // Its schema has no minimum, which would cost bytes in each conversation; a bad id is refused.
    #[serde(deserialize_with = "schema::id")]
    #[schemars(with = "i64")]
    id: u64,
}

/// Returns names as a model means them.
fn trimmed(names: Option<Vec<String>>) -> Vec<String> {
    names.unwrap_or_default().iter().map(|name| name.trim().to_owned()).collect()
}

/// Returns a duration for the contract, which has its own limits.
fn span(field: &str, seconds: Option<u64>) -> Result<Option<prost_types::Duration>, Refusal> {
    seconds.map(|seconds| schema::span(field, seconds)).transpose()
}

fn state(state: ScheduleState) -> &'static str {
    match state {
        ScheduleState::Unspecified => "unknown",
        ScheduleState::Active => "active",
        ScheduleState::Paused => "paused by the operator",
        ScheduleState::Ended => "ended",
    }
}
