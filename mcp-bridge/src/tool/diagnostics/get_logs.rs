//! `get_logs`: the last lines that the harness of an agent below the caller printed.

use hive_proto::v1::GetLogsRequest;
use hive_proto::v1::diagnostics_service_client::DiagnosticsServiceClient;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{line_count, render};
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::Peer;
use crate::render::one_line;
use crate::tool::{Tool, reads, schema};

const NAME_CHARS_MAX: usize = 63;

pub(in crate::tool) struct GetLogs;

/// The arguments of `get_logs`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// A child, or any agent below you if your policy lets you.
    agent: String,
    /// Default 100.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1, max = 500))]
    lines: Option<u64>,
}

impl Tool for GetLogs {
    const NAME: &'static str = "get_logs";
    const GROUP: Group = Group::Diagnostics;
    const DESCRIPTION: &'static str = "Read the last lines that the harness of a child printed.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        reads()
    }

    async fn run(broker: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let agent = input.agent.trim().to_owned();
        let whose = format!("of the log of {}", one_line(&agent, NAME_CHARS_MAX));
        let request = GetLogsRequest { agent, lines: line_count(input.lines)? };
        let read = broker
            .call(call, request, |channel, request| async move {
                DiagnosticsServiceClient::new(channel).get_logs(request).await
            })
            .await?;
        Ok(render(&whose, &read.lines, read.truncated))
    }
}
