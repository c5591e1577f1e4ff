//! The calls of a session. Each function makes its call once.

use hive_core::agent::HarnessState;
use hive_core::time::WallTime;
use hive_core::turn::{Kind, MAIN_CONVERSATION};
use hive_proto::convert::IntoWire;
use hive_proto::convert::time::timestamp;
use hive_proto::handshake::Channel;
use hive_proto::in_session;
use hive_proto::v1;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tonic::Status;

use super::{read, unreadable};
use crate::turn::input::{Begun, EndTurnAnswer, Opened};
use crate::turn::output::Ending;

/// Waits for a turn for mail. A repeated call has the same request id.
pub async fn begin(
    channel: Channel,
    session_token: String,
    request_id: &str,
    process_token: &str,
) -> Result<Begun, Status> {
    let request = begin_request(request_id, process_token, Kind::Mail);
    let request = in_session(request, &session_token);
    let begun = TurnServiceClient::new(channel).begin_turn(request).await?.into_inner();
    read::begun(begun).map_err(unreadable)
}

/// Begins a turn without a delivery.
pub async fn open(
    channel: Channel,
    session_token: String,
    request_id: &str,
    process_token: &str,
    kind: Kind,
) -> Result<Opened, Status> {
    let request = begin_request(request_id, process_token, kind);
    let request = in_session(request, &session_token);
    let begun = TurnServiceClient::new(channel).begin_turn(request).await?.into_inner();
    read::opened(begun.turn).map_err(unreadable)
}

fn begin_request(request_id: &str, process_token: &str, kind: Kind) -> v1::BeginTurnRequest {
    v1::BeginTurnRequest {
        request_id: request_id.to_owned(),
        process_token: process_token.to_owned(),
        conversation: MAIN_CONVERSATION.to_owned(),
        kind: kind.into_wire().into(),
    }
}

/// Ends a turn.
pub async fn end(
    channel: Channel,
    session_token: String,
    request_id: &str,
    ending: Ending,
) -> Result<EndTurnAnswer, Status> {
    let request = end_request(request_id, ending);
    let turn = request.turn_id;
    let request = in_session(request, &session_token);
    let v1::EndTurnResponse {
        acked_count,
        returned_count,
        dead_count,
        held_count,
        pending_count,
        next_turn_requested,
        park,
    } = TurnServiceClient::new(channel).end_turn(request).await?.into_inner();
    tracing::info!(
        turn,
        acked = acked_count,
        returned = returned_count,
        dead = dead_count,
        held = held_count,
        pending = pending_count,
        "turn settled"
    );
    Ok(EndTurnAnswer { pending_count, next_turn_requested, park: read::park(park) })
}

fn end_request(request_id: &str, ending: Ending) -> v1::EndTurnRequest {
    let Ending {
        turn_id,
        outcome,
        error,
        output_tail,
        returned_tool_use_ids,
        usage,
        model,
        context_tokens,
        context_window_tokens,
        retry_time,
        compacted,
        tool_uses,
    } = ending;
    v1::EndTurnRequest {
        request_id: request_id.to_owned(),
        turn_id,
        outcome: outcome.map_or_else(i32::default, |outcome| outcome.into_wire().into()),
        error,
        output_tail,
        returned_tool_use_ids,
        usage: Some(usage.into_wire()),
        model,
        context_tokens,
        context_window_tokens,
        compacted,
        retry_time: retry_time.map(timestamp),
        tool_uses: tool_uses.into_iter().map(IntoWire::into_wire).collect(),
    }
}

/// Reports to the agent's parent that something does not work.
pub async fn report_problem(
    channel: Channel,
    session_token: String,
    request_id: &str,
    subject: &str,
    text: &str,
) -> Result<(), Status> {
    let request = v1::ReportProblemRequest {
        request_id: request_id.to_owned(),
        subject: subject.to_owned(),
        text: text.to_owned(),
    };
    let request = in_session(request, &session_token);
    TurnServiceClient::new(channel).report_problem(request).await.map(drop)
}

/// Closes a command.
pub async fn ack_command(
    channel: Channel,
    session_token: String,
    command_id: u64,
    error: &str,
) -> Result<(), Status> {
    let request = v1::AckCommandRequest { command_id, error: error.to_owned() };
    let request = in_session(request, &session_token);
    TurnServiceClient::new(channel).ack_command(request).await.map(drop)
}

/// Reports what the harness does.
pub async fn report_status(
    channel: Channel,
    session_token: String,
    state: HarnessState,
    until: Option<WallTime>,
) -> Result<(), Status> {
    let request = v1::ReportHarnessStatusRequest {
        state: state.into_wire().into(),
        until_time: until.map(timestamp),
    };
    let request = in_session(request, &session_token);
    TurnServiceClient::new(channel).report_harness_status(request).await.map(drop)
}

/// Asks whether the harness may end; returns whether the broker has ended the session.
pub async fn leave(channel: Channel, session_token: String) -> Result<bool, Status> {
    let request = in_session(v1::LeaveRequest {}, &session_token);
    Ok(TurnServiceClient::new(channel).leave(request).await?.into_inner().left)
}

/// Shows that the harness lives, and returns the turns that the session has open.
pub async fn heartbeat(channel: Channel, session_token: String) -> Result<Vec<u64>, Status> {
    let request = in_session(v1::HeartbeatRequest {}, &session_token);
    let answer = TurnServiceClient::new(channel).heartbeat(request).await?.into_inner();
    Ok(answer.open_turn_ids)
}
