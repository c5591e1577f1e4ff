//! Following the log of events, over breaks and restarts, from a position that a program keeps.
//!
//! Invariant: no event is yielded twice, and none is missed without a [`Followed::Gap`] or a
//! [`Followed::LogChanged`].

use std::collections::VecDeque;

use tonic::Streaming;

use crate::error::Error;
use crate::hive::Hive;
use crate::retry::Pauses;
use crate::v1::event_service_client::EventServiceClient;
use crate::v1::watch_events_response::Step;
use crate::v1::{Event, WatchEventsRequest, WatchEventsResponse};

/// A place in the log: everything up to it was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The log; a restored backup begins another one.
    pub log_id: String,
    /// The sequence number.
    pub sequence: u64,
}

/// What a follower sees.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Followed {
    /// An event.
    Fact(Event),
    /// Events were pruned before they were seen: read the state again that you need.
    Gap,
    /// A backup was restored, and the log is another one: read the state again that you need.
    LogChanged,
}

/// The log of events from a position on.
#[derive(Debug)]
pub struct Follow {
    hive: Hive,
    agent: String,
    position: Option<Position>,
    stream: Option<Streaming<WatchEventsResponse>>,
    ready: VecDeque<(Followed, Position)>,
    pauses: Pauses,
}

impl Hive {
    /// Follows events after a position; without one, those after the first call of
    /// [`Follow::next`]. `agent`: only those of this agent;
    /// empty: all that this socket may see.
    #[must_use]
    pub fn follow(&self, after: Option<Position>, agent: impl Into<String>) -> Follow {
        Follow {
            hive: self.clone(),
            agent: agent.into(),
            position: after,
            stream: None,
            ready: VecDeque::new(),
            pauses: Pauses::new(),
        }
    }
}

impl Follow {
    /// Waits for what follows, with the position after it. A refusal ends it.
    pub async fn next(&mut self) -> Result<(Followed, Position), Error> {
        loop {
            if let Some((followed, position)) = self.ready.pop_front() {
                return Ok((followed, position));
            }
            match self.read().await {
                Ok(()) => self.pauses = Pauses::new(),
                Err(error) if error.is_transient() => {
                    self.stream = None;
                    tokio::time::sleep(self.pauses.after(&error)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Returns the position after all that was read; `None` before the first step of the broker.
    #[must_use]
    pub fn position(&self) -> Option<&Position> {
        self.ready.front().map_or(self.position.as_ref(), |(_, position)| Some(position))
    }

    /// Reads one step, of a new watch if there is none.
    async fn read(&mut self) -> Result<(), Error> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let request = WatchEventsRequest {
                    after_sequence: self.position.as_ref().map(|position| position.sequence),
                    log_id: self.position.as_ref().map(|p| p.log_id.clone()).unwrap_or_default(),
                    agent: self.agent.clone(),
                };
                let mut client = EventServiceClient::new(self.hive.channel());
                let opened = client.watch_events(self.hive.request(request)).await?;
                self.stream.insert(opened.into_inner())
            }
        };
        let Some(step) = stream.message().await? else {
            return Err(tonic::Status::unavailable("the broker ended the watch").into());
        };
        match step.step {
            Some(Step::Snapshot(snapshot)) => {
                let log_id = snapshot.log_id;
                let known = self.position.as_ref().filter(|position| position.log_id == log_id);
                // Without a position, or in another log, the watch begins after the newest event.
                let sequence = known.map_or(snapshot.last_sequence, |position| position.sequence);
                let position = Position { log_id, sequence };
                if snapshot.log_changed {
                    self.ready.push_back((Followed::LogChanged, position.clone()));
                } else if snapshot.gap {
                    self.ready.push_back((Followed::Gap, position.clone()));
                }
                self.position = Some(position);
            }
            Some(Step::Batch(batch)) => {
                let log_id = self.position.as_ref().map(|p| p.log_id.clone()).unwrap_or_default();
                for event in batch.events {
                    let at = Position { log_id: log_id.clone(), sequence: event.sequence };
                    self.ready.push_back((Followed::Fact(event), at));
                }
                self.position = Some(Position { log_id, sequence: batch.sequence });
            }
            Some(Step::Progress(progress)) => {
                let sequence = progress.sequence;
                self.position = Some(Position { log_id: progress.log_id, sequence });
            }
            // A step of a later broker.
            None => {}
        }
        Ok(())
    }
}
