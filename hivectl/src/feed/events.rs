//! Following the event log: a watch that survives a restart of the broker.
//!
//! Invariant: events come in the order of their sequence numbers, none twice; [`Step::Gap`] reports
//! events that the broker no longer has.

use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::watch_events_response::Step as WireStep;
use hive_proto::v1::{Event, EventSnapshot, WatchEventsRequest, WatchEventsResponse};
use tonic::Streaming;

use super::reconnect::{is_outage, reconnect};
use crate::connect::{Broker, within};
use crate::context::Context;
use crate::error::Failure;

#[derive(Debug)]
pub(crate) enum Step {
    Event(Event),
    /// Some events were missed: the caller must read its state again.
    Gap,
}

#[derive(Debug)]
pub(crate) struct Feed {
    socket: PathBuf,
    timeout: Duration,
    agent: String,
    after: u64,
    stream: Option<Streaming<WatchEventsResponse>>,
    /// Whether events were missed before the watch began.
    gap: bool,
}

impl Feed {
    /// Follows the events of `agent` (empty: all) from `after` on; `None`: from now on.
    pub(crate) async fn open(
        context: &Context,
        broker: &Broker,
        agent: &str,
        after: Option<u64>,
    ) -> Result<Self, Failure> {
        let timeout = context.timeout;
        let (stream, snapshot) = watch(broker.clone(), timeout, agent.to_owned(), after).await?;
        Ok(Self {
            socket: context.socket.clone(),
            timeout,
            agent: agent.to_owned(),
            after: after.unwrap_or(snapshot.last_sequence),
            stream: Some(stream),
            // Without a sequence to resume from there is no gap.
            gap: after.is_some() && snapshot.gap,
        })
    }

    /// Returns the next event, however long it takes.
    pub(crate) async fn next(&mut self) -> Result<Step, Failure> {
        loop {
            if std::mem::take(&mut self.gap) {
                return Ok(Step::Gap);
            }
            let Some(stream) = &mut self.stream else {
                let (timeout, after) = (self.timeout, Some(self.after));
                let watch = |broker| watch(broker, timeout, self.agent.clone(), after);
                let watched = reconnect(&self.socket, timeout, watch).await?;
                (self.stream, self.gap) = (Some(watched.0), watched.1.gap);
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
                Err(status) if is_outage(&status) => self.stream = None,
                Err(status) => return Err(status.into()),
            }
        }
    }
}

/// Begins to watch the events of `agent` (empty: all) from a number on, or from now on.
///
/// The first step of the stream is the snapshot. From then on no event is missed.
pub(crate) async fn watch(
    broker: Broker,
    timeout: Duration,
    agent: String,
    after_sequence: Option<u64>,
) -> Result<(Streaming<WatchEventsResponse>, EventSnapshot), Failure> {
    let request = WatchEventsRequest { after_sequence, agent };
    let mut stream = broker.read(broker.events().watch_events(request)).await?;
    match within(timeout, stream.message()).await?? {
        Some(WatchEventsResponse { step: Some(WireStep::Snapshot(snapshot)) }) => {
            Ok((stream, snapshot))
        }
        Some(_) | None => Err(Failure::Incomplete { field: "snapshot" }),
    }
}
