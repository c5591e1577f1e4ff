//! `request_set_policy`: asks for other rights.

use hive_proto::v1::SetPolicyEffect;
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

pub(in crate::tool) struct RequestSetPolicy;

/// The arguments of `request_set_policy`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// You or a child.
    name: String,
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

impl Tool for RequestSetPolicy {
    const NAME: &'static str = "request_set_policy";
    const GROUP: Group = Group::Approvals;
    const DESCRIPTION: &'static str = "Ask the operator for other rights of yours or of a child; a list replaces the one before, and what is left out stays.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        adds(false)
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { name, tool_groups, allowed_recipients, capabilities, why, ttl_seconds } = input;
        let (policy, paths) = policy(tool_groups, allowed_recipients, capabilities);
        let update_mask = Some(prost_types::FieldMask { paths });
        let effect = SetPolicyEffect { name, policy: Some(policy), update_mask };
        ask(broker, call, Effect::SetPolicy(effect), why, ttl_seconds).await
    }
}
