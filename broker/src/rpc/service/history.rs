//! `TurnHistoryService`.

use hive_core::id::TurnId;
use hive_core::turn::{Outcome, Turn};
use hive_proto::convert::{self, IntoWire, time};
use hive_proto::v1;
use hive_proto::v1::watch_turn_response::Step;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::watching::Out;
use crate::engine::Refusal;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::spawn::spawn;
use crate::store::turn_events::Line;

/// The state of a run: its lines, or its end.
struct Run {
    events: Vec<v1::TurnEvent>,
    state: v1::RunState,
    state_time: Option<prost_types::Timestamp>,
}

impl Run {
    /// Returns a step of the stored lines.
    fn snapshot(self, complete: bool) -> Step {
        let Self { events, state, state_time } = self;
        Step::Snapshot(v1::TurnSnapshot { events, complete, state: state.into(), state_time })
    }

    /// Returns a step of new lines, or of the end.
    fn batch(self) -> Step {
        let Self { events, state, state_time } = self;
        Step::Batch(v1::TurnBatch { events, state: state.into(), state_time })
    }
}

/// Returns the state of a run that has new lines.
fn with_lines(lines: Vec<Line>) -> Run {
    let state_time = lines.last().map(|last| time::timestamp(last.time));
    let events = lines.into_iter().map(|line| v1::TurnEvent {
        sequence: line.sequence,
        stream: line.stream,
        line: line.text,
        time: Some(time::timestamp(line.time)),
    });
    Run { events: events.collect(), state: v1::RunState::Partial, state_time }
}

/// Returns the state of a run of which all lines were sent.
fn without_lines(turn: &Turn) -> Run {
    let state = match turn.outcome {
        None => v1::RunState::Partial,
        Some(Outcome::Ok) => v1::RunState::Final,
        Some(_) => v1::RunState::Error,
    };
    Run { events: Vec::new(), state, state_time: turn.end_time.map(time::timestamp) }
}

impl Rpc {
    /// Sends lines of a turn until it has ended and all are sent.
    async fn watch_lines(
        &self,
        caller: hive_core::caller::Caller,
        id: TurnId,
        mut after: u64,
        follow: bool,
        out: &Out<v1::WatchTurnResponse>,
    ) -> Result<(), Refusal> {
        let send =
            async |step| out.send(Ok(v1::WatchTurnResponse { step: Some(step) })).await.is_ok();
        let mut changed = self.engine.lines_changed();
        let hints = self.engine.hints().agent(self.engine.owner_of_turn(id).await?);
        let mut complete = false;
        loop {
            // Registered before the lines are read: so the last lines of a turn that ends now are
            // not missed.
            let hint = hints.inbox.notified();
            tokio::pin!(hint);
            hint.as_mut().enable();
            changed.mark_unchanged();
            let turn = self.engine.get_turn(caller.clone(), id).await?;
            let lines = self.engine.lines_after(id, after).await?;
            if let Some(last) = lines.last() {
                after = last.sequence;
                let run = with_lines(lines);
                if !send(if complete { run.batch() } else { run.snapshot(false) }).await {
                    return Ok(());
                }
                continue;
            }
            let has_ended = turn.outcome.is_some();
            if !complete {
                complete = true;
                if !send(without_lines(&turn).snapshot(true)).await || has_ended || !follow {
                    return Ok(());
                }
            } else if has_ended {
                // If the client has disconnected, it needs no answer.
                send(without_lines(&turn).batch()).await;
                return Ok(());
            }
            tokio::select! {
                _ = changed.changed() => {}
                () = hint => {}
                () = out.closed() => return Ok(()),
                () = self.engine.draining().cancelled() => return Err(Refusal::Draining),
            }
        }
    }
}

#[tonic::async_trait]
impl v1::turn_history_service_server::TurnHistoryService for Rpc {
    async fn list_turns(
        &self,
        request: Request<v1::ListTurnsRequest>,
    ) -> Result<Response<v1::ListTurnsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        let page = page::take(&mut list)?;
        let (turns, more) =
            self.engine.list_turns(caller, list.agent, page.after, page.rows).await?;
        let next = turns.last().filter(|_| more).map(|turn| turn.id);
        Ok(Response::new(v1::ListTurnsResponse {
            turns: turns.into_iter().map(IntoWire::into_wire).collect(),
            next_page_token: page.next(next),
        }))
    }

    async fn get_turn(
        &self,
        request: Request<v1::GetTurnRequest>,
    ) -> Result<Response<v1::GetTurnResponse>, Status> {
        let caller = caller::identify(&request)?;
        let id = convert::id(request.into_inner().turn_id, TurnId::new, "turn_id")?;
        let turn = self.engine.get_turn(caller, id).await?;
        Ok(Response::new(v1::GetTurnResponse { turn: Some(turn.into_wire()) }))
    }

    type WatchTurnStream = ReceiverStream<Result<v1::WatchTurnResponse, Status>>;

    async fn watch_turn(
        &self,
        request: Request<v1::WatchTurnRequest>,
    ) -> Result<Response<Self::WatchTurnStream>, Status> {
        let caller = caller::identify(&request)?;
        let v1::WatchTurnRequest { turn_id, after_sequence, follow } = request.into_inner();
        let after_sequence = convert::bounded(after_sequence, "after_sequence")?;
        let id = convert::id(turn_id, TurnId::new, "turn_id")?;
        self.engine.get_turn(caller.clone(), id).await?;
        let (out, stream) = mpsc::channel(8);
        let rpc = self.clone();
        spawn(&self.streams, async move {
            if let Err(refusal) = rpc.watch_lines(caller, id, after_sequence, follow, &out).await {
                drop(out.send(Err(refusal.into())).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }

    async fn get_turn_stats(
        &self,
        request: Request<v1::GetTurnStatsRequest>,
    ) -> Result<Response<v1::GetTurnStatsResponse>, Status> {
        self.turn_stats(request).await
    }
}
