//! `remind`: a message to the agent itself, later.

use hive_core::limits::REMINDER_DELAY_MAX;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::{CreateReminderRequest, CreateReminderResponse};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds, schema};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::instant;

pub(super) struct Remind;

/// The arguments of `remind`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// What you will need to know then.
    message: String,
    /// So long from now.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1, max = REMINDER_DELAY_MAX.as_secs()))]
    delay_seconds: Option<u64>,
    /// Unix time in seconds, in place of delay_seconds.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64")]
    at_unix_timestamp: Option<u64>,
}

impl Tool for Remind {
    const NAME: &'static str = "remind";
    const GROUP: Group = Group::Inbox;
    const DESCRIPTION: &'static str = "Send yourself a message for later: it begins a turn at its time, so end this one instead of waiting. \
        Give exactly one of delay_seconds and at_unix_timestamp.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { message, delay_seconds, at_unix_timestamp } = input;
        let due = due(delay_seconds, at_unix_timestamp)?;
        let request = CreateReminderRequest {
            request_id: call.request_id.clone(),
            body: message,
            due: Some(due),
        };
        let set = broker
            .call(call, request, |channel, request| async move {
                ReminderServiceClient::new(channel).create_reminder(request).await
            })
            .await?;
        Ok(render(set))
    }
}

fn due(delay_seconds: Option<u64>, at_unix_timestamp: Option<u64>) -> Result<Due, Refusal> {
    match (delay_seconds, at_unix_timestamp) {
        (Some(seconds), None) => schema::span("delay_seconds", seconds).map(Due::Delay),
        (None, Some(seconds)) => schema::unix("at_unix_timestamp", seconds).map(Due::DueTime),
        (None, None) => {
            Err(Refusal::arguments("it has no time: give delay_seconds or at_unix_timestamp"))
        }
        (Some(_), Some(_)) => Err(Refusal::arguments(
            "it has two times: give delay_seconds or at_unix_timestamp, not both",
        )),
    }
}

fn render(set: CreateReminderResponse) -> String {
    let CreateReminderResponse { reminder, already_set } = set;
    let reminder = reminder.unwrap_or_default();
    let id = reminder.id;
    let due = reminder
        .due_time
        .as_ref()
        .map(|time| format!(" for {}", instant(time)))
        .unwrap_or_default();
    if already_set {
        format!(
            "Not set again: an earlier attempt of this turn has already set this as reminder #{id}{due}."
        )
    } else {
        format!("Reminder #{id} is set{due}.")
    }
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::Reminder;

    use super::*;

    #[test]
    fn a_reminder_has_exactly_one_time() {
        assert_eq!(
            due(Some(60), None),
            Ok(Due::Delay(prost_types::Duration { seconds: 60, nanos: 0 }))
        );
        assert_eq!(
            due(None, Some(1_700_000_000)),
            Ok(Due::DueTime(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 }))
        );
        for (delay, at, problem) in [
            (None, None, "it has no time"),
            (Some(1), Some(1), "it has two times"),
            (Some(u64::MAX), None, "delay_seconds is too long"),
            (None, Some(u64::MAX), "too far ahead"),
        ] {
            let refusal = due(delay, at).expect_err("it is refused");
            assert!(
                refusal.code == "FIELD_INVALID" && refusal.sentence.contains(problem),
                "{refusal}"
            );
        }
    }

    #[test]
    fn the_text_names_the_reminder_and_its_time() {
        let due_time = Some(prost_types::Timestamp { seconds: 1_700_000_000, nanos: 0 });
        let reminder = Some(Reminder { id: 9, due_time, ..Reminder::default() });
        let set = CreateReminderResponse { reminder, already_set: false };
        assert_eq!(render(set.clone()), "Reminder #9 is set for 2023-11-14T22:13:20Z.");
        let again = CreateReminderResponse { already_set: true, ..set };
        assert_eq!(
            render(again),
            "Not set again: an earlier attempt of this turn has already set this as reminder #9 for 2023-11-14T22:13:20Z."
        );
    }
}
