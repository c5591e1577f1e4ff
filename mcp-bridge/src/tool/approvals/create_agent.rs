//! `request_create_agent`: asks for a child of the agent.

use hive_proto::v1::CreateAgentEffect;
use hive_proto::v1::effect::Effect;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{ask, policy};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::tool::{Tool, adds, schema};

pub(in crate::tool) struct RequestCreateAgent;

/// The arguments of `request_create_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    name: String,
    /// Its purpose, on one line.
    #[serde(default)]
    role: String,
    #[serde(default)]
    model: String,
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    tool_groups: Option<Vec<String>>,
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    allowed_recipients: Option<Vec<String>>,
    #[serde(default, deserialize_with = "schema::texts")]
    #[schemars(with = "Vec<String>")]
    capabilities: Option<Vec<String>>,
    /// Why; the operator reads it.
    why: String,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    ttl_seconds: Option<u64>,
}

impl Tool for RequestCreateAgent {
    const NAME: &'static str = "request_create_agent";
    const GROUP: Group = Group::Approvals;
    const DESCRIPTION: &'static str =
        "Ask the operator for a child; the decision comes as a message.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input {
            name,
            role,
            model,
            tool_groups,
            allowed_recipients,
            capabilities,
            why,
            ttl_seconds,
        } = input;
        let (policy, _) = policy(tool_groups, allowed_recipients, capabilities);
        let effect = CreateAgentEffect { name, role, model, policy: Some(policy) };
        ask(broker, call, Effect::CreateAgent(effect), why, ttl_seconds).await
    }
}
