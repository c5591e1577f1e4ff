//! `cancel_loose_end`: withdraws a question or a reminder of the agent.

use std::sync::Arc;

use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::{CancelLooseEndRequest, LooseEndKind};
use rmcp::model::{JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Offer, Tool, removes, schema};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::one_line;

pub(super) struct CancelLooseEnd;

/// The arguments of `cancel_loose_end`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    #[schemars(extend("enum" = ["question", "reminder"]))]
    kind: String,
    /// Id of the loose end.
    #[serde(deserialize_with = "schema::id")]
    #[schemars(range(min = 1))]
    id: u64,
}

impl Tool for CancelLooseEnd {
    const NAME: &'static str = "cancel_loose_end";
    const GROUP: Group = Group::Inbox;
    const DESCRIPTION: &'static str = "Withdraw a question you asked or a reminder you set, when it is no longer needed; get_loose_ends shows kind and id.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        removes(true)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { kind, id } = input;
        let kind = kind_of(&kind)?;
        let request =
            CancelLooseEndRequest { request_id: call.request_id.clone(), kind: kind.into(), id };
        broker
            .call(call, request, |channel, request| async move {
                LooseEndServiceClient::new(channel).cancel_loose_end(request).await
            })
            .await?;
        Ok(render(kind, id))
    }
}

/// Lets this tool name approvals in its schema, for agents that can ask for them. The others do not
/// pay for the word.
pub(super) fn offer_approvals(offer: &mut Offer) {
    if offer.tool.name != CancelLooseEnd::NAME {
        return;
    }
    let mut schema = JsonObject::clone(&offer.tool.input_schema);
    let kinds = schema.get_mut("properties").and_then(|properties| properties.get_mut("kind"));
    if let Some(Value::Array(kinds)) = kinds.and_then(|kind| kind.get_mut("enum")) {
        kinds.push(Value::from("approval"));
    }
    offer.tool.input_schema = Arc::new(schema);
}

/// Parses a kind from a model; the error says who closes such a loose end.
fn kind_of(word: &str) -> Result<LooseEndKind, Refusal> {
    let plain = word.trim().to_lowercase().replace(['_', '-'], " ");
    let closer = match plain.as_str() {
        "question" | "question asked" => return Ok(LooseEndKind::QuestionAsked),
        "reminder" => return Ok(LooseEndKind::Reminder),
        "approval" => return Ok(LooseEndKind::Approval),
        "question owed" => {
            "a question that you owe is closed with answer; only its asker or the operator may withdraw it"
        }
        "dead letter" => "a message that was given up is redriven or dropped by the operator",
        "external" => "this entry is closed by the program that told it",
        _ => {
            let word = one_line(word, 100);
            return Err(Refusal::arguments(format_args!(
                "there is no kind `{word}` to cancel: kind is question or reminder"
            )));
        }
    };
    Err(Refusal::arguments(closer))
}

fn render(kind: LooseEndKind, id: u64) -> String {
    match kind {
        LooseEndKind::Reminder => format!("Reminder #{id} is cancelled."),
        LooseEndKind::Approval => {
            format!("Question #{id} is withdrawn, and what it asked for is not done.")
        }
        LooseEndKind::Unspecified
        | LooseEndKind::QuestionAsked
        | LooseEndKind::QuestionOwed
        | LooseEndKind::DeadLetter
        | LooseEndKind::External => {
            format!("Question #{id} is withdrawn, and no answer to it will come.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_taken_as_a_list_shows_them() {
        for word in ["question", " Question ", "question_asked", "question asked"] {
            assert_eq!(kind_of(word), Ok(LooseEndKind::QuestionAsked));
        }
        assert_eq!(kind_of("reminder"), Ok(LooseEndKind::Reminder));
        assert_eq!(kind_of("approval"), Ok(LooseEndKind::Approval));
    }

    #[test]
    fn other_kinds_say_who_closes_them() {
        for (word, closer) in [
            ("question_owed", "is closed with answer"),
            ("dead letter", "by the operator"),
            ("external", "by the program"),
            ("task", "there is no kind `task`"),
        ] {
            let refusal = kind_of(word).expect_err("it cannot be cancelled");
            assert!(
                refusal.code == "FIELD_INVALID" && refusal.sentence.contains(closer),
                "{refusal}"
            );
        }
    }
}
