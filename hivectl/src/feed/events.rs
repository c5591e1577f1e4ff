//! Following the event log: a watch that survives a restart of the broker.
//!
//! Invariant: events come in the order of their sequence numbers, none twice; [`Step::Gap`] reports
//! events that the broker no longer has, also because a backup was restored.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::watch_events_response::Step as WireStep;
use hive_proto::v1::{Event, EventSnapshot, WatchEventsRequest, WatchEventsResponse};
use tonic::Streaming;

use super::reconnect::reconnect;
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
    /// The log of `after`.
    log_id: String,
    stream: Option<Streaming<WatchEventsResponse>>,
    /// Events of the last batch that were not returned yet.
    ready: VecDeque<Event>,
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
        let (stream, snapshot) = match after {
            // The caller's number is of the present log.
            Some(after) => {
                let log_id = broker.log_id().await?;
                watch(broker.clone(), timeout, agent.to_owned(), Some((after, log_id))).await?
            }
            None => watch(broker.clone(), timeout, agent.to_owned(), None).await?,
        };
        Ok(Self {
            socket: context.socket.clone(),
            timeout,
            agent: agent.to_owned(),
            after: after.unwrap_or(snapshot.last_sequence),
            log_id: snapshot.log_id,
            stream: Some(stream),
            ready: VecDeque::new(),
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
            if let Some(event) = self.ready.pop_front() {
                self.after = event.sequence;
                return Ok(Step::Event(event));
            }
            let Some(stream) = &mut self.stream else {
                let timeout = self.timeout;
                let place = || Some((self.after, self.log_id.clone()));
                let watch = |broker| watch(broker, timeout, self.agent.clone(), place());
                let (stream, snapshot) = reconnect(&self.socket, timeout, watch).await?;
                self.stream = Some(stream);
                self.gap = snapshot.gap || snapshot.log_changed;
                if snapshot.log_changed {
                    self.after = snapshot.last_sequence;
                }
                self.log_id = snapshot.log_id;
                continue;
            };
            match stream.message().await {
                Ok(Some(WatchEventsResponse { step: Some(WireStep::Batch(batch)) })) => {
                    self.ready = batch.events.into();
                    self.ready.retain(|event| event.sequence > self.after);
                }
                Ok(Some(WatchEventsResponse { step: Some(WireStep::Progress(progress)) })) => {
                    self.after = self.after.max(progress.sequence);
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
                Err(status) if hive_proto::status::is_transient(&status) => self.stream = None,
                Err(status) => return Err(status.into()),
            }
        }
    }
}

/// Begins to watch the events of `agent` (empty: all) after a number of a log, or from now on.
///
/// The first step of the stream is the snapshot. From then on no event is missed.
pub(crate) async fn watch(
    broker: Broker,
    timeout: Duration,
    agent: String,
    after: Option<(u64, String)>,
) -> Result<(Streaming<WatchEventsResponse>, EventSnapshot), Failure> {
    let (after_sequence, log_id) = after.unzip();
    let log_id = log_id.unwrap_or_default();
    let request = WatchEventsRequest { after_sequence, agent, log_id };
    let mut stream = broker.read(broker.events().watch_events(request)).await?;
    match within(timeout, stream.message()).await?? {
        Some(WatchEventsResponse { step: Some(WireStep::Snapshot(snapshot)) }) => {
            Ok((stream, snapshot))
        }
        Some(_) | None => Err(Failure::Incomplete { field: "snapshot" }),
    }
}
