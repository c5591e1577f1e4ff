//! `edit_schedule`: asks for other values of a schedule of the agent.

use hive_core::limits::SCHEDULE_INTERVAL_MIN;
use hive_proto::v1::ChangeScheduleEffect;
use hive_proto::v1::effect::Effect;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{span, trimmed};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::approvals::ask;
use crate::tool::{Tool, removes, schema};

pub(in crate::tool) struct EditSchedule;

/// The arguments of `edit_schedule`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    #[serde(deserialize_with = "schema::id")]
    #[schemars(with = "i64")]
    id: u64,
    #[serde(default)]
    #[schemars(with = "String")]
    body: Option<String>,
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    targets_add: Option<Vec<String>>,
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    targets_remove: Option<Vec<String>>,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "i64")]
    first_fire_at_unix: Option<u64>,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = SCHEDULE_INTERVAL_MIN.as_secs()))]
    interval_seconds: Option<u64>,
    #[serde(default)]
    #[schemars(with = "String")]
    zone: Option<String>,
    /// 0: any.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "i64")]
    late_max_seconds: Option<u64>,
    why: String,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    ttl_seconds: Option<u64>,
}

impl Tool for EditSchedule {
    const NAME: &'static str = "edit_schedule";
    const GROUP: Group = Group::Scheduling;
    const DESCRIPTION: &'static str = "Change your schedule. The operator approves it; changes that only remove targets, or fire less often or later, need no approval.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        removes(false)
    }

    async fn run(broker: &Peer, call: &Call, mut input: Input) -> Result<String, Refusal> {
        let (why, ttl_seconds) = (std::mem::take(&mut input.why), input.ttl_seconds);
        let effect = Effect::ChangeSchedule(effect(input)?);
        ask(broker, call, effect, why, ttl_seconds).await
    }
}

fn effect(input: Input) -> Result<ChangeScheduleEffect, Refusal> {
    let Input {
        id,
        body,
        targets_add,
        targets_remove,
        first_fire_at_unix,
        interval_seconds,
        zone,
        late_max_seconds,
        why: _,
        ttl_seconds: _,
    } = input;
    let first = first_fire_at_unix
        .map(|seconds| schema::unix("first_fire_at_unix", seconds))
        .transpose()?;
    Ok(ChangeScheduleEffect {
        schedule_id: id,
        body,
        targets_add: trimmed(targets_add),
        targets_remove: trimmed(targets_remove),
        first_time: first,
        interval: span("interval_seconds", interval_seconds)?,
        zone: zone.map(|zone| zone.trim().to_owned()),
        late_max: span("late_max_seconds", late_max_seconds)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(input: Value) -> Result<ChangeScheduleEffect, String> {
        let input = serde_json::from_value(input).map_err(|problem| problem.to_string())?;
        effect(input).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn only_what_is_given_is_changed() {
        let nothing = ChangeScheduleEffect { schedule_id: 7, ..ChangeScheduleEffect::default() };
        assert_eq!(read(json!({"id": "#7", "why": "x", "zone": null})), Ok(nothing.clone()));
        let span = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let all = json!({
            "id": 7, "body": "Report.", "targets_add": "bob", "targets_remove": [" ada "],
            "first_fire_at_unix": "1700000000", "interval_seconds": 60, "zone": "",
            "late_max_seconds": 0, "why": "x",
        });
        let changed = ChangeScheduleEffect {
            body: Some("Report.".to_owned()),
            targets_add: vec!["bob".to_owned()],
            targets_remove: vec!["ada".to_owned()],
            first_time: Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }),
            interval: span(60),
            zone: Some(String::new()),
            late_max: span(0),
            ..nothing
        };
        assert_eq!(read(all), Ok(changed));
    }

    #[test]
    fn what_is_no_number_or_has_no_reason_is_refused() {
        for (input, problem) in [
            (json!({"id": 0, "why": "x"}), "an id is a whole number above 0"),
            (json!({"id": 7, "zone": "UTC"}), "missing field `why`"),
            (json!({"id": 7, "first_fire_at_unix": 0.5, "why": "x"}), "0.5 is no whole number"),
            (
                json!({"id": 7, "first_fire_at_unix": 1_700_000_000_000_u64, "why": "x"}),
                "first_fire_at_unix is too far ahead; it is in seconds",
            ),
            (json!({"id": 7, "late_max_seconds": u64::MAX, "why": "x"}), "is too long"),
        ] {
            let refused = read(input).expect_err(problem);
            assert!(refused.contains(problem), "{refused}");
        }
    }
}
