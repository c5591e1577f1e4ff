//! `request_schedule_prompt`: asks for a schedule of the agent.

use hive_core::limits::{SCHEDULE_INTERVAL_MIN, SCHEDULE_LATE_MIN};
use hive_proto::v1::CreateScheduleEffect;
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
use crate::tool::{Tool, adds, schema};

pub(in crate::tool) struct RequestSchedulePrompt;

/// The arguments of `request_schedule_prompt`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    body: String,
    /// Agents.
    #[serde(deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    targets: Option<Vec<String>>,
    #[serde(deserialize_with = "schema::number")]
    #[schemars(with = "i64")]
    first_fire_at_unix: Option<u64>,
    /// Once if left out.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = SCHEDULE_INTERVAL_MIN.as_secs()))]
    interval_seconds: Option<u64>,
    /// As Europe/Berlin; keeps the hour of whole days.
    #[serde(default)]
    #[schemars(with = "String")]
    zone: Option<String>,
    /// Skip what is later.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = SCHEDULE_LATE_MIN.as_secs()))]
    late_max_seconds: Option<u64>,
    /// The operator reads it.
    why: String,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    ttl_seconds: Option<u64>,
}

impl Tool for RequestSchedulePrompt {
    const NAME: &'static str = "request_schedule_prompt";
    const GROUP: Group = Group::Scheduling;
    const DESCRIPTION: &'static str =
        "Ask the operator for a schedule: it sends body to targets in your name, again and again.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, mut input: Input) -> Result<String, Refusal> {
        let (why, ttl_seconds) = (std::mem::take(&mut input.why), input.ttl_seconds);
        let effect = Effect::CreateSchedule(effect(input)?);
        ask(broker, call, effect, why, ttl_seconds).await
    }
}

fn effect(input: Input) -> Result<CreateScheduleEffect, Refusal> {
    let Input {
        body,
        targets,
        first_fire_at_unix,
        interval_seconds,
        zone,
        late_max_seconds,
        why: _,
        ttl_seconds: _,
    } = input;
    let first = first_fire_at_unix.ok_or_else(|| {
        Refusal::arguments("first_fire_at_unix: a whole number is needed, Unix time in seconds")
    })?;
    Ok(CreateScheduleEffect {
        body,
        targets: trimmed(targets),
        first_time: Some(schema::unix("first_fire_at_unix", first)?),
        interval: span("interval_seconds", interval_seconds)?,
        zone: zone.unwrap_or_default().trim().to_owned(),
        late_max: span("late_max_seconds", late_max_seconds)?,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(input: Value) -> Result<CreateScheduleEffect, String> {
        let input = serde_json::from_value(input).map_err(|problem| problem.to_string())?;
        effect(input).map_err(|refusal| refusal.to_string())
    }

    #[test]
    fn arguments_are_taken_as_models_write_them() {
        let least = json!({"body": "Report.", "targets": "bob", "first_fire_at_unix": "1700000000", "why": "x"});
        let first_time = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 });
        let once = CreateScheduleEffect {
            body: "Report.".to_owned(),
            targets: vec!["bob".to_owned()],
            first_time,
            ..CreateScheduleEffect::default()
        };
        assert_eq!(read(least), Ok(once.clone()));
        let all = json!({
            "body": "Report.", "targets": "[\" bob\", \"ada\"]", "first_fire_at_unix": 1_700_000_000,
            "interval_seconds": "86400", "zone": " Europe/Berlin ", "late_max_seconds": 600,
            "why": "x", "ttl_seconds": null,
        });
        let span = |seconds| Some(prost_types::Duration { seconds, nanos: 0 });
        let daily = CreateScheduleEffect {
            targets: vec!["bob".to_owned(), "ada".to_owned()],
            interval: span(86_400),
            zone: "Europe/Berlin".to_owned(),
            late_max: span(600),
            ..once
        };
        assert_eq!(read(all), Ok(daily));
    }

    #[test]
    fn what_is_missing_or_no_whole_number_is_refused() {
        let good = json!({"body": "x", "targets": ["bob"], "first_fire_at_unix": 1, "why": "x"});
        for (field, value, problem) in [
            ("first_fire_at_unix", json!(1.5), "1.5 is no whole number"),
            ("first_fire_at_unix", json!(-1), "-1 is no whole number"),
            ("first_fire_at_unix", json!("tomorrow"), "\"tomorrow\" is no whole number"),
            ("first_fire_at_unix", json!(null), "a whole number is needed, Unix time in seconds"),
            ("first_fire_at_unix", json!(1_700_000_000_000_u64), "too far ahead; it is in seconds"),
            ("interval_seconds", json!("daily"), "\"daily\" is no whole number"),
            ("interval_seconds", json!(u64::MAX), "interval_seconds is too long"),
            ("late_max_seconds", json!(0.5), "0.5 is no whole number"),
            ("targets", json!([5]), "a list of texts is needed"),
            ("cron", json!("* * * * *"), "unknown field `cron`"),
        ] {
            let mut input = good.clone();
            input[field] = value;
            let refused = read(input).expect_err(problem);
            assert!(refused.contains(problem), "{refused}");
        }
        for field in ["body", "targets", "first_fire_at_unix", "why"] {
            let mut input = good.clone();
            input.as_object_mut().expect("an object").remove(field);
            let refused = read(input).expect_err(field);
            assert_eq!(refused, format!("missing field `{field}`"));
        }
    }
}
