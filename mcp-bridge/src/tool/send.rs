//! `send`: a message to another agent, the parent, everyone or the operator.

use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{SendMessageRequest, SendMessageResponse};
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds, recipient, schema};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::{count, one_line};

pub(super) struct Send;

/// The arguments of `send`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// Agent name, `operator`, `<parent>`, or `*` for every other agent.
    to: String,
    /// The text.
    body: String,
    /// Id of the message this answers.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    in_reply_to: Option<u64>,
}

impl Tool for Send {
    const NAME: &'static str = "send";
    const GROUP: Group = Group::Messaging;
    const DESCRIPTION: &'static str = "Send a message to another agent or to the operator; what you write outside of this tool reaches nobody. \
        Answer a message with in_reply_to set to its id.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { to, body, in_reply_to } = input;
        let request = SendMessageRequest {
            request_id: call.request_id.clone(),
            to: Some(recipient::parse(&to)),
            body,
            in_reply_to: in_reply_to.unwrap_or(0),
        };
        let receipt = broker
            .call(call, request, |channel, request| async move {
                MessageServiceClient::new(channel).send_message(request).await
            })
            .await?;
        Ok(render(&to, &receipt))
    }
}

fn render(to: &str, receipt: &SendMessageResponse) -> String {
    let SendMessageResponse {
        message_id,
        already_sent,
        skipped_agents,
        recipient_count,
        accept_time: _,
        ahead_count,
    } = receipt;
    if *already_sent {
        return format!(
            "Not sent again: an earlier attempt of this turn has already sent this as #{message_id}."
        );
    }
    let to = if to.trim() == recipient::EVERYONE {
        count(*recipient_count, "agent")
    } else {
        one_line(to.trim(), 63)
    };
    let ahead = match ahead_count.unwrap_or(0) {
        0 => String::new(),
        ahead => format!("; {} unsettled before it", count(ahead, "message")),
    };
    let mut text = format!("Sent #{message_id} to {to}{ahead}.");
    if !skipped_agents.is_empty() {
        text.push_str(&format!(
            " Left out, because their inbox is full: {}.",
            skipped_agents.join(", ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_states_the_result() {
        let receipt = SendMessageResponse {
            message_id: 7,
            recipient_count: 1,
            ..SendMessageResponse::default()
        };
        assert_eq!(render("bob", &receipt), "Sent #7 to bob.");
        let behind = |ahead| SendMessageResponse { ahead_count: Some(ahead), ..receipt.clone() };
        assert_eq!(render("bob", &behind(0)), "Sent #7 to bob.");
        assert_eq!(render("bob", &behind(1)), "Sent #7 to bob; 1 message unsettled before it.");
        assert_eq!(render("bob", &behind(3)), "Sent #7 to bob; 3 messages unsettled before it.");
        let partly = SendMessageResponse {
            skipped_agents: vec!["carol".to_owned()],
            recipient_count: 2,
            ..receipt.clone()
        };
        assert_eq!(
            render("*", &partly),
            "Sent #7 to 2 agents. Left out, because their inbox is full: carol."
        );
        let again = SendMessageResponse { already_sent: true, ..receipt };
        assert_eq!(
            render("bob", &again),
            "Not sent again: an earlier attempt of this turn has already sent this as #7."
        );
    }
}
