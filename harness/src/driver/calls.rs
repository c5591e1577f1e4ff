//! The calls that a turn consists of, each repeated until it is answered, and what its answer means
//! for the machine.
//!
//! Invariant: a repeated call has the same request id, so the broker does it once.

use std::sync::Arc;

use hive_core::park;
use hive_core::reason::Reason;
use hive_core::time::WallTime;
use hive_core::turn::{Kind, MAIN_CONVERSATION, Outcome};
use hive_proto::v1;
use hive_proto::v1::HarnessState;
use hive_proto::v1::status_service_client::StatusServiceClient;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tonic::Status;

use crate::driver::link::Link;
use crate::driver::timestamp;
use crate::exit::describe;
use crate::token;
use crate::turn::input::{Answer, Input};
use crate::turn::output::Ending;

/// Waits for a turn.
pub async fn begin(mut link: Link, request_id: String, process_token: String) -> Input {
    let request = v1::BeginTurnRequest {
        request_id,
        session_token: String::new(),
        process_token,
        conversation: MAIN_CONVERSATION.to_owned(),
    };
    let answer = link
        .persist(request, |channel, session_token, request| async move {
            TurnServiceClient::new(channel)
                .begin_turn(v1::BeginTurnRequest { session_token, ..request })
                .await
        })
        .await;
    match answer {
        Ok(begun) => {
            hive_fault::point("harness.begin.answered");
            Input::Begun(Arc::new(begun.into_inner()))
        }
        Err(status) => refusal(&status),
    }
}

/// Opens a turn without a delivery.
pub async fn open(mut link: Link, process_token: String, kind: Kind) -> Input {
    let kind = match kind {
        Kind::Mail | Kind::Continue => v1::TurnKind::Continue,
        Kind::Checkpoint => v1::TurnKind::Checkpoint,
        Kind::Compact => v1::TurnKind::Compact,
    };
    let request = v1::OpenTurnRequest {
        request_id: token::random(),
        session_token: String::new(),
        process_token,
        conversation: MAIN_CONVERSATION.to_owned(),
        kind: kind.into(),
    };
    let answer = link
        .persist(request, |channel, session_token, request| async move {
            TurnServiceClient::new(channel)
                .open_turn(v1::OpenTurnRequest { session_token, ..request })
                .await
        })
        .await;
    match answer {
        Ok(opened) => Input::Opened(opened.into_inner().turn.map_or(0, |turn| turn.id)),
        Err(status)
            if matches!(
                hive_proto::status::reason(&status),
                Some(Reason::AgentParked | Reason::AgentStopped | Reason::TurnOpen)
            ) =>
        {
            Input::NotOpened
        }
        Err(status) => refusal(&status),
    }
}

/// Ends a turn.
pub async fn end(mut link: Link, ending: Ending) -> Input {
    hive_fault::point("harness.end.leaving");
    let request = end_request(ending);
    let turn = request.turn_id;
    let answer = link
        .persist(request, |channel, session_token, request| async move {
            TurnServiceClient::new(channel)
                .end_turn(v1::EndTurnRequest { session_token, ..request })
                .await
        })
        .await;
    match answer {
        Ok(answer) => {
            hive_fault::point("harness.end.answered");
            let v1::EndTurnResponse {
                acked_count,
                returned_count,
                dead_count,
                held_count,
                pending_count,
                next_turn_requested,
                park,
            } = answer.into_inner();
            tracing::info!(
                turn,
                acked = acked_count,
                returned = returned_count,
                dead = dead_count,
                held = held_count,
                pending = pending_count,
                "turn settled"
            );
            Input::Ended(Answer {
                pending_count,
                next_turn_requested,
                park: park.and_then(|park| park::View::try_from(park).ok()),
            })
        }
        Err(status) => refusal(&status),
    }
}

fn end_request(ending: Ending) -> v1::EndTurnRequest {
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
        request_id: token::random(),
        session_token: String::new(),
        turn_id,
        outcome: outcome.map_or(v1::TurnOutcome::Unspecified, wire_outcome).into(),
        error,
        output_tail,
        returned_tool_use_ids,
        usage: Some(v1::TurnUsage {
            input_tokens: usage.input_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_creation_tokens: usage.cache_creation_tokens,
            output_tokens: usage.output_tokens,
            cost_micro_usd: usage.cost_micro_usd,
            inference_count: usage.inference_count,
            tool_call_count: usage.tool_call_count,
        }),
        model,
        context_tokens,
        context_window_tokens,
        compacted,
        retry_time: retry_time.map(timestamp),
        tool_uses: tool_uses.into_iter().map(|(name, count)| v1::ToolUse { name, count }).collect(),
    }
}

fn wire_outcome(outcome: Outcome) -> v1::TurnOutcome {
    match outcome {
        Outcome::Ok => v1::TurnOutcome::Ok,
        Outcome::Failed => v1::TurnOutcome::Failed,
        Outcome::RateLimited => v1::TurnOutcome::RateLimited,
        Outcome::AuthFailed => v1::TurnOutcome::AuthFailed,
        Outcome::Unavailable => v1::TurnOutcome::Unavailable,
        Outcome::Cancelled => v1::TurnOutcome::Cancelled,
        Outcome::Drained => v1::TurnOutcome::Drained,
        Outcome::Vanished => v1::TurnOutcome::Vanished,
        Outcome::Fenced => v1::TurnOutcome::Fenced,
    }
}

/// Tells the agent's parent that something does not work.
pub async fn problem(mut link: Link, subject: String, text: String) {
    let request = v1::ReportProblemRequest {
        request_id: token::random(),
        session_token: String::new(),
        subject,
        text,
    };
    let answer = link
        .persist(request, |channel, session_token, request| async move {
            TurnServiceClient::new(channel)
                .report_problem(v1::ReportProblemRequest { session_token, ..request })
                .await
        })
        .await;
    if let Err(status) = answer {
        tracing::warn!(reason = %describe(&status), "a problem could not be told to the parent");
    }
}

/// Closes a command.
pub async fn ack(mut link: Link, command_id: u64, error: String) {
    let request = v1::AckCommandRequest { session_token: String::new(), command_id, error };
    let answer = link
        .persist(request, |channel, session_token, request| async move {
            TurnServiceClient::new(channel)
                .ack_command(v1::AckCommandRequest { session_token, ..request })
                .await
        })
        .await;
    if let Err(status) = answer {
        tracing::warn!(command = command_id, reason = %describe(&status), "a command could not be closed");
    }
}

/// Tells what the harness is doing.
pub async fn report(
    link: &mut Link,
    state: HarnessState,
    until: Option<WallTime>,
) -> Result<(), Input> {
    let request = v1::ReportHarnessStatusRequest {
        session_token: String::new(),
        state: state.into(),
        until_time: until.map(timestamp),
    };
    let answer = link
        .persist(request, |channel, session_token, request| async move {
            let request = v1::ReportHarnessStatusRequest { session_token, ..request };
            StatusServiceClient::new(channel).report_harness_status(request).await
        })
        .await;
    answer.map(|_| ()).map_err(|status| refusal(&status))
}

/// Asks which turn the session has open. Not repeated: the next sign of life follows soon.
pub async fn heartbeat(link: &mut Link) -> Result<Option<u64>, Status> {
    let session_token = link.token().await;
    let answer = TurnServiceClient::new(link.channel.clone())
        .heartbeat(v1::HeartbeatRequest { session_token })
        .await?;
    Ok(Some(answer.into_inner().open_turn_id).filter(|id| *id != 0))
}

/// Makes sure that no turn is open. The status goes the way of a write, so a turn that was on its
/// way is seen after it.
pub async fn leave(mut link: Link, state: HarnessState, until: Option<WallTime>) -> Input {
    if let Err(input) = report(&mut link, state, until).await {
        return input;
    }
    let open_turn = link
        .persist((), |channel, session_token, ()| async move {
            TurnServiceClient::new(channel).heartbeat(v1::HeartbeatRequest { session_token }).await
        })
        .await;
    match open_turn {
        Ok(answer) => Input::Left(Some(answer.into_inner().open_turn_id).filter(|id| *id != 0)),
        Err(status) => refusal(&status),
    }
}

/// What a refusal means that waiting does not change.
pub fn refusal(status: &Status) -> Input {
    match hive_proto::status::reason(status) {
        Some(Reason::LeaseLost | Reason::AgentRetired) => Input::Fenced(describe(status)),
        _ => Input::Refused(describe(status)),
    }
}
