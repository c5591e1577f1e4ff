//! `set_status`: the agent's own line of status.

use hive_core::agent::STATUS_CHARS_MAX;
use hive_proto::v1::SetStatusTextRequest;
use hive_proto::v1::status_service_client::StatusServiceClient;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Tool, adds};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;

pub(super) struct SetStatus;

/// The arguments of `set_status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    /// One line; empty clears it.
    #[schemars(length(max = STATUS_CHARS_MAX))]
    text: String,
}

impl Tool for SetStatus {
    const NAME: &'static str = "set_status";
    const GROUP: Group = Group::Meta;
    const DESCRIPTION: &'static str = "Set the one line that tells the operator and other agents what you are at; it stays until you change it.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(true)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let text = input.text.trim().to_owned();
        let done = if text.is_empty() { "The status is cleared." } else { "The status is set." };
        let request = SetStatusTextRequest { request_id: call.request_id.clone(), text };
        broker
            .call(call, request, |channel, request| async move {
                StatusServiceClient::new(channel).set_status_text(request).await
            })
            .await?;
        Ok(done.to_owned())
    }
}
