//! `request_retire_agent`: asks to retire a child of the agent.

use hive_proto::v1::RetireAgentEffect;
use hive_proto::v1::effect::Effect;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::ask;
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::{Tool, adds, schema};

pub(in crate::tool) struct RequestRetireAgent;

/// The arguments of `request_retire_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    name: String,
    /// Why; the operator reads it.
    why: String,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    ttl_seconds: Option<u64>,
}

impl Tool for RequestRetireAgent {
    const NAME: &'static str = "request_retire_agent";
    const GROUP: Group = Group::Approvals;
    const DESCRIPTION: &'static str =
        "Ask the operator to retire a child of yours; its mail is kept.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { name, why, ttl_seconds } = input;
        let effect = RetireAgentEffect { name };
        ask(broker, call, Effect::RetireAgent(effect), why, ttl_seconds).await
    }
}
