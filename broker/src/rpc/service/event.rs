//! `EventService`.

use hive_proto::status::bad_field;
use hive_proto::v1;
use hive_proto::v1::watch_events_response::Step;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};

use crate::engine::Refusal;
use crate::rpc::Rpc;
use crate::rpc::edge::caller;
use crate::rpc::edge::page;
use crate::spawn::spawn;
use crate::store::AgentKey;

/// Rows that a watcher is sent before the next are read: no more than its channel holds.
const WATCH_ROWS: u32 = 64;

impl Rpc {
    /// Sends events until the watcher disconnects or the broker ends.
    async fn watch(
        &self,
        scope: Option<AgentKey>,
        after: Option<u64>,
        log_changed: bool,
        out: &mpsc::Sender<Result<v1::WatchEventsResponse, Status>>,
    ) -> Result<(), Refusal> {
        let mut newest = self.engine.hints().last_event();
        let (_, span) = self.engine.events_after(u64::MAX >> 1, scope, 1).await?;
        let mut after = after.filter(|_| !log_changed).unwrap_or(span.last);
        let snapshot = v1::EventSnapshot {
            first_sequence: span.first,
            last_sequence: span.last,
            gap: after + 1 < span.first,
            log_id: self.engine.log_id().to_owned(),
            log_changed,
        };
        if out
            .send(Ok(v1::WatchEventsResponse { step: Some(Step::Snapshot(snapshot)) }))
            .await
            .is_err()
        {
            return Ok(());
        }
        loop {
            newest.borrow_and_update();
            let (events, span) = self.engine.events_after(after, scope, WATCH_ROWS).await?;
            let full = events.len() == WATCH_ROWS as usize;
            if let Some(last) = events.last() {
                after = last.sequence;
            }
            for event in events {
                if out
                    .send(Ok(v1::WatchEventsResponse { step: Some(Step::Event(event.into())) }))
                    .await
                    .is_err()
                {
                    return Ok(());
                }
            }
            if full {
                continue;
            }
            // The rows that were read have no further match, so the next read may begin after them.
            after = after.max(span.last);
            tokio::select! {
                changed = newest.changed() => if changed.is_err() { return Ok(()) },
                () = out.closed() => return Ok(()),
                () = self.engine.draining().cancelled() => return Err(Refusal::Draining),
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
            events: events.into_iter().map(Into::into).collect(),
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
        let (out, stream) = mpsc::channel(WATCH_ROWS as usize);
        let rpc = self.clone();
        spawn(&self.streams, async move {
            if let Err(refusal) = rpc.watch(scope, after, log_changed, &out).await {
                drop(out.send(Err(refusal.into())).await);
            }
        });
        Ok(Response::new(ReceiverStream::new(stream)))
    }
}
