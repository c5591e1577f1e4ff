//! `request_next_turn`: another turn after this one, with or without mail.

use hive_proto::v1::RequestNextTurnRequest;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;

pub(super) struct RequestNextTurn;

/// No arguments.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

impl Tool for RequestNextTurn {
    const NAME: &'static str = "request_next_turn";
    const GROUP: Group = Group::Inbox;
    const DESCRIPTION: &'static str = "Ask for another turn right after this one, to go on with work of your own. No effect if mail comes first: its turn runs then.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(true)
    }

    async fn run(broker: &Peer, call: &Call, _input: Input) -> Result<String, Refusal> {
        broker
            .call(call, RequestNextTurnRequest {}, |channel, request| async move {
                TurnServiceClient::new(channel).request_next_turn(request).await
            })
            .await?;
        Ok("Another turn follows this one, unless mail comes first. End this turn now.".to_owned())
    }
}
