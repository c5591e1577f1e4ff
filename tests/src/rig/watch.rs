//! Following the log of committed facts: how journeys wait for what has to happen.

use std::collections::VecDeque;
use std::path::PathBuf;

use hive_proto::v1::event_service_client::EventServiceClient;
use hive_proto::v1::watch_events_response::Step;
use hive_proto::v1::{Event, EventKind, ListEventsRequest, WatchEventsRequest};

use super::soon;

/// A place in the log. It reconnects, so it outlives the broker.
#[derive(Debug)]
pub struct Watch {
    socket: PathBuf,
    after: u64,
    log_id: String,
    /// Events of the last step that were not returned yet.
    ready: VecDeque<Event>,
    stream: Option<tonic::Streaming<hive_proto::v1::WatchEventsResponse>>,
}

impl Watch {
    /// Returns a watch from the beginning of the log; `socket` is the operator's.
    pub fn new(socket: PathBuf) -> Self {
        Self { socket, after: 0, log_id: String::new(), ready: VecDeque::new(), stream: None }
    }

    pub(super) async fn from_now(socket: PathBuf) -> Self {
        let channel = hive_proto::connect::connect(&socket).await.expect("a broker answers");
        let mut events = EventServiceClient::new(channel);
        let listed = events
            .list_events(ListEventsRequest { page_size: 1, ..ListEventsRequest::default() })
            .await;
        let listed = listed.expect("events are listed").into_inner();
        Self { after: listed.last_sequence, log_id: listed.log_id, ..Self::new(socket) }
    }

    async fn next(&mut self) -> Event {
        loop {
            if let Some(event) = self.ready.pop_front() {
                assert!(event.sequence > self.after, "events come in order");
                self.after = event.sequence;
                return event;
            }
            let Some(stream) = &mut self.stream else {
                let channel = match hive_proto::connect::connect(&self.socket).await {
                    Ok(channel) => channel,
                    // The broker is away: the journey is restarting it.
                    Err(_) => {
                        tokio::task::yield_now().await;
                        continue;
                    }
                };
                let request = WatchEventsRequest {
                    after_sequence: Some(self.after),
                    agent: String::new(),
                    log_id: self.log_id.clone(),
                };
                self.stream = EventServiceClient::new(channel)
                    .watch_events(request)
                    .await
                    .ok()
                    .map(tonic::Response::into_inner);
                continue;
            };
            match stream.message().await {
                Ok(Some(response)) => match response.step {
                    Some(Step::Batch(batch)) => self.ready.extend(batch.events),
                    Some(Step::Snapshot(snapshot)) => {
                        if snapshot.log_changed {
                            self.after = snapshot.last_sequence;
                        }
                        self.log_id = snapshot.log_id;
                    }
                    Some(Step::Progress(_)) | None => {}
                },
                Ok(None) | Err(_) => self.stream = None,
            }
        }
    }

    /// The next event that fits; those before it are passed over.
    pub async fn until(&mut self, what: &str, fits: impl Fn(&Event) -> bool) -> Event {
        soon(what, async {
            loop {
                let event = self.next().await;
                if fits(&event) {
                    return event;
                }
            }
        })
        .await
    }

    /// The next `count` events of a kind, about whatever agents.
    pub async fn kinds(&mut self, kind: EventKind, count: usize) {
        for number in 1..=count {
            self.until(&format!("{kind:?}, {number} of {count}"), |event| event.kind() == kind)
                .await;
        }
    }

    /// The next event of a kind about an agent.
    pub async fn kind(&mut self, agent: &str, kind: EventKind) -> Event {
        self.until(&format!("{kind:?} of {agent}"), |event| {
            event.agent == agent && event.kind() == kind
        })
        .await
    }
}
