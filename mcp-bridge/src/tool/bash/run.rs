//! `run`: a command under bash.
//!
//! The task of a cancelled call continues; its end is mail to the agent, as for every background
//! task.

use std::time::Duration;

use hive_proto::harness_v1::RunTaskRequest;
use hive_proto::harness_v1::task_service_client::TaskServiceClient;
use rmcp::model::ToolAnnotations;
use schemars::JsonSchema;
use serde::Deserialize;

use super::render::render;
use crate::call::Call;
use crate::error::Refusal;
use crate::group::Group;
use crate::peer::{Failure, Peer};
use crate::tool::{Tool, does_anything, schema};

/// Default wait for a command, in seconds: most commands end in that time, and the model loses
/// little with the others.
const WAIT_SECS: u64 = 10;
const WAIT_SECS_MAX: u64 = 30;

pub(in crate::tool) struct Run;

/// The arguments of `run`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::tool) struct Input {
    /// For bash, in your state directory, without stdin.
    cmd: String,
    /// End it after so long.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 1))]
    timeout_secs: Option<u64>,
    /// Wait so long for its end; default 10.
    #[serde(default, deserialize_with = "schema::number")]
    #[schemars(with = "u64", range(min = 0, max = 30))]
    wait_seconds: Option<u64>,
}

impl Tool for Run {
    const NAME: &'static str = "run";
    const GROUP: Group = Group::Execution;
    const DESCRIPTION: &'static str = "Run a shell command. One that takes longer than wait_seconds goes on in the background, also after your \
        turn, and you get mail when it ends. When it ends, all that it started is ended too.";
    type Input = Input;

    fn annotations() -> ToolAnnotations {
        does_anything()
    }

    async fn run(harness: &Peer, call: &Call, input: Input) -> Result<String, Refusal> {
        let Input { cmd, timeout_secs, wait_seconds } = input;
        let wait = wait_seconds.unwrap_or(WAIT_SECS);
        if wait > WAIT_SECS_MAX {
            return Err(Refusal::arguments(format_args!(
                "wait_seconds is at most {WAIT_SECS_MAX}"
            )));
        }
        let request = RunTaskRequest {
            request_id: call.request_id.clone(),
            command: cmd,
            timeout: timeout_secs.map(|secs| schema::span("timeout_secs", secs)).transpose()?,
            wait: Some(schema::span("wait_seconds", wait)?),
        };
        call.wait_for("waiting for the command");
        let rpc = |channel, request| async move {
            TaskServiceClient::new(channel).run_task(request).await
        };
        let answer =
            match harness.call_waiting(call, Duration::from_secs(wait), request.clone(), rpc).await
            {
                // The harness is back; the same request without a wait returns the state of the
                // task.
                Err(Failure::WaitOver) => {
                    harness.call(call, RunTaskRequest { wait: None, ..request }, rpc).await?
                }
                answer => answer?,
            };
        Ok(render(&answer.task.unwrap_or_default()))
    }
}
