//! `status`: the state of a shell task.

use std::time::Duration;

use hive_proto::harness_v1::GetTaskRequest;
use hive_proto::harness_v1::task_service_client::TaskServiceClient;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::render::render;
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::{Failure, Peer};
use crate::tool::{Tool, reads, schema};

const WAIT_SECS_MAX: u64 = 180;

pub(in crate::tool) struct Status;

/// The arguments of `status`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// Id that run gave.
    #[serde(deserialize_with = "schema::id")]
    #[schemars(with = "u64", range(min = 1))]
    id: u64,
    /// Wait so long for its end; default 0.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 0, max = 180))]
    wait_seconds: Option<u64>,
}

impl Tool for Status {
    const NAME: &'static str = "status";
    const GROUP: Group = Group::Execution;
    const DESCRIPTION: &'static str = "Look at a command that run has started: where it stands, and the end of its output. Wait only if you have nothing else to do.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        reads()
    }

    async fn run(harness: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { id, wait_seconds } = input;
        let wait = wait_seconds.unwrap_or(0);
        if wait > WAIT_SECS_MAX {
            return Err(Refusal::arguments(format_args!(
                "wait_seconds is at most {WAIT_SECS_MAX}"
            )));
        }
        let request = GetTaskRequest { id, wait: Some(schema::span("wait_seconds", wait)?) };
        call.wait_for("waiting for the command");
        let rpc = |channel, request| async move {
            TaskServiceClient::new(channel).get_task(request).await
        };
        let answer = match harness.call_waiting(call, Duration::from_secs(wait), request, rpc).await
        {
            Err(Failure::WaitOver) => {
                harness.call(call, GetTaskRequest { id, wait: None }, rpc).await?
            }
            answer => answer?,
        };
        Ok(render(&answer.task.unwrap_or_default()))
    }
}
