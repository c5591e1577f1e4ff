//! Following the event log: a watch that survives a restart of the broker.
//!
//! Invariant: events come in the order of their sequence numbers, none twice; where the broker no
//! longer has some, [`Step::Gap`] says so.

use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::watch_events_response::Step as WireStep;
use hive_proto::v1::{Event, WatchEventsRequest, WatchEventsResponse};
use tonic::Streaming;

use super::reconnect::{Absence, is_weather};
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;

/// What a feed gives.
#[derive(Debug)]
pub(crate) enum Step {
    /// A fact.
    Event(Event),
    /// Some were missed: read again what matters.
    Gap,
}

/// A watch on the event log.
#[derive(Debug)]
pub(crate) struct Feed {
    socket: PathBuf,
    timeout: Duration,
    agent: String,
    after: u64,
    stream: Option<Streaming<WatchEventsResponse>>,
}

impl Feed {
    /// Follows the events of `agent` (empty: all) from `after` on; `None`: from now on.
    pub(crate) async fn open(
        context: &Context,
        broker: &Broker,
        agent: &str,
        after: Option<u64>,
    ) -> Result<(Self, bool), Failure> {
        let mut feed = Self {
            socket: context.socket.clone(),
            timeout: context.timeout,
            agent: agent.to_owned(),
            after: after.unwrap_or(0),
            stream: None,
        };
        let gap = feed.watch(broker, after).await?;
        Ok((feed, gap))
    }

    /// The next event, however long it takes.
    pub(crate) async fn next(&mut self) -> Result<Step, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                if self.reconnect().await? {
                    return Ok(Step::Gap);
                }
                continue;
            };
            match stream.message().await {
                Ok(Some(WatchEventsResponse { step: Some(WireStep::Event(event)) })) => {
                    if event.sequence > self.after {
                        self.after = event.sequence;
                        return Ok(Step::Event(event));
                    }
                }
                Ok(Some(WatchEventsResponse { step: Some(WireStep::Snapshot(snapshot)) })) => {
                    if snapshot.gap {
                        self.after = self.after.max(snapshot.first_sequence.saturating_sub(1));
                        return Ok(Step::Gap);
                    }
                }
                // A step that this version does not know.
                Ok(Some(WatchEventsResponse { step: None })) => {}
                Ok(None) => self.stream = None,
                Err(status) if is_weather(&status) => self.stream = None,
                Err(status) => return Err(status.into()),
            }
        }
    }

    /// Begins a watch; tells whether events were missed.
    async fn watch(
        &mut self,
        broker: &Broker,
        after_sequence: Option<u64>,
    ) -> Result<bool, Failure> {
        let request = WatchEventsRequest { after_sequence, agent: self.agent.clone() };
        let mut stream = broker.read(broker.events().watch_events(request)).await?;
        // The snapshot comes first, always: with it the watch stands, and nothing after it can be
        // missed.
        let first =
            tokio::time::timeout(self.timeout, stream.message()).await.map_err(|_| {
                Failure::TimedOut { seconds: self.timeout.as_secs_f64(), mutation: false }
            })??;
        let Some(WatchEventsResponse { step: Some(WireStep::Snapshot(snapshot)) }) = first else {
            return Err(Failure::Incomplete { field: "snapshot" });
        };
        if after_sequence.is_none() {
            self.after = snapshot.last_sequence;
        }
        self.stream = Some(stream);
        Ok(snapshot.gap)
    }

    async fn reconnect(&mut self) -> Result<bool, Failure> {
        let mut absence = Absence::begin();
        loop {
            let broker = absence.broker(&self.socket, self.timeout).await;
            let watched = self.watch(&broker, Some(self.after)).await;
            if let Some(ended) = absence.ends(watched) {
                return ended;
            }
        }
    }
}
