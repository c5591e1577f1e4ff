//! `request_set_agent`: asks for another role or model.

use hive_proto::v1::SetAgentEffect;
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

pub(in crate::tool) struct RequestSetAgent;

/// The arguments of `request_set_agent`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// You or a child.
    name: String,
    #[serde(default)]
    #[schemars(with = "String")]
    role: Option<String>,
    #[serde(default)]
    #[schemars(with = "String")]
    model: Option<String>,
    /// Why; the operator reads it.
    why: String,
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    ttl_seconds: Option<u64>,
}

impl Tool for RequestSetAgent {
    const NAME: &'static str = "request_set_agent";
    const GROUP: Group = Group::Approvals;
    const DESCRIPTION: &'static str =
        "Ask the operator for another role or model of yours or of a child.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { name, role, model, why, ttl_seconds } = input;
        let effect = SetAgentEffect { name, role, model };
        ask(broker, call, Effect::SetAgent(effect), why, ttl_seconds).await
    }
}
