//! `EventService`.

use hive_proto::convert::IntoWire;
use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::watch_events_response::Step;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use super::watching::{self, Out, Told, Woken};
use crate::engine::Refusal;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::spawn::spawn;
use crate::store::AgentKey;

/// Most events of one step.
const WATCH_ROWS: u32 = 64;

impl Rpc {
    /// Sends events until the watcher disconnects or the broker ends.
    async fn watch(
        &self,
        scope: Option<AgentKey>,
        after: Option<u64>,
        log_changed: bool,
        out: &Out<v1::WatchEventsResponse>,
    ) -> Result<(), Refusal> {
        let send =
            async |step| out.send(Ok(v1::WatchEventsResponse { step: Some(step) })).await.is_ok();
        let mut newest = self.engine.hints().last_event();
        let (_, span) = self.engine.events_after(u64::MAX >> 1, scope, 1).await?;
        let mut after = after.filter(|_| !log_changed).unwrap_or(span.last);
        let snapshot = v1::EventSnapshot {
            first_sequence: span.first,
            last_sequence: span.last,
            gap: after + 1 < span.first,
            log_id: self.engine.log_id().to_owned(),
            log_changed,
            complete: true,
        };
        let mut told = Told::new(after);
        if !send(Step::Snapshot(snapshot)).await {
            return Ok(());
        }
        loop {
            newest.borrow_and_update();
            let (events, span) = self.engine.events_after(after, scope, WATCH_ROWS).await?;
            let full = events.len() == WATCH_ROWS as usize;
            after = match events.last() {
                Some(last) if full => last.sequence,
                // The rows that were read have no further match, so the next read begins after
                // them.
                Some(_) | None => after.max(span.last),
            };
            if !events.is_empty() {
                let events = events.into_iter().map(IntoWire::into_wire).collect();
                if !send(Step::Batch(v1::EventBatch { events, sequence: after })).await {
                    return Ok(());
                }
                told = Told::new(after);
            }
            if full {
                continue;
            }
            match watching::wait(&self.engine, &mut newest, out, told, after).await? {
                Woken::Changed => {}
                Woken::Progress => {
                    if !send(Step::Progress(watching::progress(&self.engine, after))).await {
                        return Ok(());
                    }
                    told = Told::new(after);
                }
                Woken::Gone => return Ok(()),
            }
        }
    }
}

#[tonic::async_trait]
impl v1::event_service_server::EventService for Rpc {
    async fn list_events(
        &self,
        request: Request<v1::ListEventsRequest>,
    ) -> Result<Response<v1::ListEventsResponse>, Status> {
        let caller = caller::identify(&request)?;
        let mut list = request.into_inner();
        if !self.engine.is_of_log(list.after_sequence, &list.log_id)? {
            let problem = "is another log: a backup was restored since; read the state again, and begin without `after_sequence`";
            return Err(bad_field("log_id", problem));
        }
        // The token of a page belongs to its filter, and so to its log.
        self.engine.log_id().clone_into(&mut list.log_id);
        let page = page::take(&mut list)?;
        let scope = self.engine.event_scope(caller, list.agent).await?;
        let after = page.after.unwrap_or(list.after_sequence).min(u64::MAX >> 1);
        let (mut events, span) = self.engine.events_after(after, scope, page.rows + 1).await?;
        let more = events.len() > page.rows as usize;
        events.truncate(page.rows as usize);
        let next = events.last().filter(|_| more).map(|event| event.sequence);
        Ok(Response::new(v1::ListEventsResponse {
            events: events.into_iter().map(IntoWire::into_wire).collect(),
            last_sequence: span.last,
            next_page_token: page.next(next),
            log_id: self.engine.log_id().to_owned(),
        }))
    }

    type WatchEventsStream = ReceiverStream<Result<v1::WatchEventsResponse, Status>>;

    async fn watch_events(
        &self,
        request: Request<v1::WatchEventsRequest>,
    ) -> Result<Response<Self::WatchEventsStream>, Status> {
        let caller = caller::identify(&request)?;
        let v1::WatchEventsRequest { after_sequence, agent, log_id } = request.into_inner();
        let log_changed = !self.engine.is_of_log(after_sequence.unwrap_or_default(), &log_id)?;
        let scope = self.engine.event_scope(caller, agent).await?;
        let after = after_sequence.map(|after| after.min(u64::MAX >> 1));
        let (out, stream) = mpsc::channel(watching::STEPS);
        let rpc = self.clone();
        spawn(&self.streams, async move {
            if let Err(refusal) = rpc.watch(scope, after, log_changed, &out).await {
                drop(out.send(Err(refusal.into())).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
