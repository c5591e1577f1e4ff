//! `TurnService`: the harness's side.

use std::sync::Arc;

use hive_core::agent::HarnessState;
use hive_core::caller::Caller;
use hive_core::id::{CommandId, NUMBER_MAX, TurnId};
use hive_core::limits::TURN_EVENT_LINE_BYTES_MAX;
use hive_core::turn::{Ended, Kind, MAIN_CONVERSATION};
use hive_proto::convert::{self, IntoWire, request as fields, time, turn as turns};
use hive_proto::status::bad_field;
use hive_proto::v1;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::attach;
use super::resting::Resting;
use crate::engine::turn::attach::Attach;
use crate::engine::turn::begin::{Begin, Begun};
use crate::engine::turn::end::EndedAnswer;
use crate::engine::turn::problem::Problem;
use crate::engine::{Refusal, permit};
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::{later, request};
use crate::store::request::RequestKey;
use crate::store::turn_events::Line;

/// Cuts a line to the limit, at a character boundary.
fn cut(mut line: String) -> String {
    line.truncate(line.floor_char_boundary(TURN_EVENT_LINE_BYTES_MAX));
    line
}

/// Returns who wishes which turn.
fn wish(request: Request<v1::BeginTurnRequest>) -> Result<(Caller, RequestKey, Begin), Status> {
    let (caller, session_token, key, message) = request::session_command(request)?;
    let v1::BeginTurnRequest { request_id: _, process_token, conversation, kind } = message;
    if !conversation.is_empty() && conversation != MAIN_CONVERSATION {
        let problem = format!("this version has one conversation, `{MAIN_CONVERSATION}`");
        return Err(bad_field("conversation", problem));
    }
    let begin = Begin {
        session_token,
        process_token: fields::process_token(process_token, "process_token")?,
        conversation: MAIN_CONVERSATION.to_owned(),
        kind: convert::value::<Kind>(kind, "kind")?,
    };
    Ok((caller, key, begin))
}

fn begun(begun: Begun) -> v1::BeginTurnResponse {
    let Begun { turn, delivery, pending, already_sent, already_asked, already_reminded, commands } =
        begun;
    v1::BeginTurnResponse {
        turn: Some(turn.into_wire()),
        delivery: delivery.map(IntoWire::into_wire),
        pending_count: pending,
        already_sent: already_sent.into_iter().map(IntoWire::into_wire).collect(),
        already_asked: already_asked.into_iter().map(IntoWire::into_wire).collect(),
        already_reminded: already_reminded.into_iter().map(IntoWire::into_wire).collect(),
        commands: commands.into_iter().map(IntoWire::into_wire).collect(),
    }
}

#[tonic::async_trait]
impl v1::turn_service_server::TurnService for Rpc {
    type AttachStream = Resting<v1::AttachResponse>;

    async fn attach(
        &self,
        request: Request<v1::AttachRequest>,
    ) -> Result<Response<Self::AttachStream>, Status> {
        let caller = caller::identify(&request)?;
        let isolation = caller::isolation(&request);
        let session_token = caller::session_token(&request)?.unwrap_or_default();
        let v1::AttachRequest { take_over, revision } = request.into_inner();
        if revision.chars().count() > 100 || revision.contains(char::is_control) {
            return Err(bad_field("revision", "it has at most 100 printable characters"));
        }
        let attached = self
            .engine
            .attach(caller, Attach { session_token, take_over, revision, isolation })
            .await?;
        Ok(Response::new(attach::steps(self.clone(), attached)))
    }

    async fn ack_command(
        &self,
        request: Request<v1::AckCommandRequest>,
    ) -> Result<Response<v1::AckCommandResponse>, Status> {
        let (caller, session_token) = caller::session(&request)?;
        let v1::AckCommandRequest { command_id, error } = request.into_inner();
        let id = convert::id(command_id, CommandId::new, "command_id")?;
        self.engine.ack_command(caller, session_token, id, error).await?;
        Ok(Response::new(v1::AckCommandResponse {}))
    }

    async fn begin_turn(
        &self,
        request: Request<v1::BeginTurnRequest>,
    ) -> Result<Response<v1::BeginTurnResponse>, Status> {
        let (caller, key, begin) = wish(request)?;
        let engine = Arc::clone(&self.engine);
        let first = engine.begin_or_wait(caller, key, begin).await?;
        Ok(later::response(async move { Ok(begun(engine.begun(first).await?)) }))
    }

    async fn request_next_turn(
        &self,
        request: Request<v1::RequestNextTurnRequest>,
    ) -> Result<Response<v1::RequestNextTurnResponse>, Status> {
        self.engine.request_next_turn(caller::actor(&request)?).await?;
        Ok(Response::new(v1::RequestNextTurnResponse {}))
    }

    async fn heartbeat(
        &self,
        request: Request<v1::HeartbeatRequest>,
    ) -> Result<Response<v1::HeartbeatResponse>, Status> {
        let (caller, session_token) = caller::session(&request)?;
        let open = self.engine.heartbeat(caller, session_token).await?;
        let open_turn_ids = open.into_iter().map(TurnId::get).collect();
        Ok(Response::new(v1::HeartbeatResponse { open_turn_ids }))
    }

    async fn leave(
        &self,
        request: Request<v1::LeaveRequest>,
    ) -> Result<Response<v1::LeaveResponse>, Status> {
        let (caller, session_token) = caller::session(&request)?;
        let left = self.engine.leave(caller, session_token).await?;
        Ok(Response::new(v1::LeaveResponse { left }))
    }

    async fn report_turn_events(
        &self,
        request: Request<Streaming<v1::ReportTurnEventsRequest>>,
    ) -> Result<Response<v1::ReportTurnEventsResponse>, Status> {
        let (caller, session_token) = caller::session(&request)?;
        let mut stream = request.into_inner();
        let mut turn = None;
        let mut kept_count = 0;
        loop {
            // A turn's output lasts as long as the turn; a broker that ends does not wait for it.
            let message = tokio::select! {
                message = stream.message() => message?,
                () = self.engine.draining().cancelled() => return Err(Refusal::Draining.into()),
            };
            let Some(v1::ReportTurnEventsRequest { turn_id, events }) = message else { break };
            let turn = match turn {
                Some(turn) => turn,
                None => {
                    let id = convert::id(turn_id, TurnId::new, "turn_id")?;
                    let token = session_token.clone();
                    self.engine.check_reporter(caller.clone(), token, id).await?;
                    *turn.insert(id)
                }
            };
            let lines = events.into_iter().map(|event| {
                let v1::TurnEvent { sequence, stream, line, time } = event;
                let time = time::optional_wall_time(time, "events.time")?
                    .unwrap_or(self.engine.clock().now().wall);
                if sequence == 0 || sequence > NUMBER_MAX {
                    let problem = format!("lines are numbered from 1 to {NUMBER_MAX}");
                    return Err(bad_field("events.sequence", problem));
                }
                let is_known = v1::TurnEventStream::try_from(stream)
                    .is_ok_and(|stream| stream != v1::TurnEventStream::Unspecified);
                if !is_known {
                    let problem = format!("{stream} is no source of a line");
                    return Err(bad_field("events.stream", problem));
                }
                Ok(Line { sequence, stream, text: cut(line), time })
            });
            let lines = lines.collect::<Result<Vec<Line>, Status>>()?;
            kept_count += self.engine.keep_lines(turn, lines).await? as u64;
            // The first message was accepted; later ones come for as long as the turn runs.
            permit::release();
        }
        Ok(Response::new(v1::ReportTurnEventsResponse { kept_count }))
    }

    async fn end_turn(
        &self,
        request: Request<v1::EndTurnRequest>,
    ) -> Result<Response<v1::EndTurnResponse>, Status> {
        let (caller, session_token, key, message) = request::session_command(request)?;
        let v1::EndTurnRequest {
            request_id: _,
            turn_id,
            outcome,
            error,
            output_tail,
            returned_tool_use_ids,
            usage,
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            retry_time,
            tool_uses,
        } = message;
        let turn = convert::id(turn_id, TurnId::new, "turn_id")?;
        let ended = Ended {
            outcome: convert::value(outcome, "outcome")?,
            error,
            output_tail,
            returned_tool_uses: returned_tool_use_ids.into_iter().collect(),
            usage: usage.map(turns::usage).unwrap_or_default(),
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            retry_time: time::optional_wall_time(retry_time, "retry_time")?,
            tool_uses: tool_uses.into_iter().map(turns::tool_use).collect(),
        };
        let EndedAnswer { settled, pending, next_turn_requested, park } =
            self.engine.end_turn(caller, key, session_token, turn, ended).await?;
        Ok(Response::new(v1::EndTurnResponse {
            acked_count: settled.acked,
            returned_count: settled.returned,
            dead_count: settled.dead,
            held_count: settled.held,
            pending_count: pending,
            next_turn_requested,
            park: park.map(IntoWire::into_wire),
        }))
    }

    async fn report_problem(
        &self,
        request: Request<v1::ReportProblemRequest>,
    ) -> Result<Response<v1::ReportProblemResponse>, Status> {
        let (caller, session_token, key, message) = request::session_command(request)?;
        let v1::ReportProblemRequest { request_id: _, subject, text } = message;
        let problem = Problem { session_token, subject, text };
        let id = self.engine.report_problem(caller, key, problem).await?;
        Ok(Response::new(v1::ReportProblemResponse { message_id: id.get() }))
    }

    async fn report_harness_status(
        &self,
        request: Request<v1::ReportHarnessStatusRequest>,
    ) -> Result<Response<v1::ReportHarnessStatusResponse>, Status> {
        let (caller, session_token) = caller::session(&request)?;
        let v1::ReportHarnessStatusRequest { state, until_time } = request.into_inner();
        let state = convert::value::<HarnessState>(state, "state")?;
        // The broker decides how long a park lasts; the time of the harness is only checked for
        // form.
        time::optional_wall_time(until_time, "until_time")?;
        self.engine.report_harness(caller, session_token, state).await?;
        Ok(Response::new(v1::ReportHarnessStatusResponse {}))
    }

    type ServeLoginStream = ReceiverStream<Result<v1::ServeLoginResponse, Status>>;

    async fn serve_login(
        &self,
        request: Request<Streaming<v1::ServeLoginRequest>>,
    ) -> Result<Response<Self::ServeLoginStream>, Status> {
        self.take_login(request).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The crate of the export does not know the contract.
    #[test]
    fn the_sources_of_lines_have_the_numbers_of_the_contract() {
        let numbers = [v1::TurnEventStream::Stdout, v1::TurnEventStream::Note].map(i32::from);
        assert_eq!(numbers, [hive_export::STDOUT, hive_export::NOTE]);
    }
}
