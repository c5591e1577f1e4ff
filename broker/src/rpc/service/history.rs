//! `TurnHistoryService`.

use hive_core::id::TurnId;
use hive_core::turn::Outcome;
use hive_proto::convert::{self, time};
use hive_proto::v1;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::engine::Refusal;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::spawn::spawn;

impl Rpc {
    /// Sends lines of a turn until it has ended and all are sent.
    async fn watch_lines(
        &self,
        caller: hive_core::caller::Caller,
        id: TurnId,
        mut after: u64,
        follow: bool,
        out: &mpsc::Sender<Result<v1::WatchTurnResponse, Status>>,
    ) -> Result<(), Refusal> {
        let mut changed = self.engine.lines_changed();
        let hints = self.engine.hints().agent(self.engine.owner_of_turn(id).await?);
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
                let state_time = Some(time::timestamp(last.time));
                let events = lines.into_iter().map(|line| v1::TurnEvent {
                    sequence: line.sequence,
                    stream: line.stream,
                    line: line.text,
                    time: Some(time::timestamp(line.time)),
                });
                let (events, state) = (events.collect(), v1::RunState::Partial.into());
                if out.send(Ok(v1::WatchTurnResponse { events, state, state_time })).await.is_err()
                {
                    return Ok(());
                }
                continue;
            }
            if let Some(outcome) = turn.outcome {
                let state =
                    if outcome == Outcome::Ok { v1::RunState::Final } else { v1::RunState::Error };
                let state_time = turn.end_time.map(time::timestamp);
                let last =
                    v1::WatchTurnResponse { events: Vec::new(), state: state.into(), state_time };
                // If the client has disconnected, it needs no answer.
                drop(out.send(Ok(last)).await);
                return Ok(());
            }
            if !follow {
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
            turns: turns.into_iter().map(Into::into).collect(),
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
        Ok(Response::new(v1::GetTurnResponse { turn: Some(turn.into()) }))
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
