//! Following the log of events, over breaks and restarts, from a position that a program keeps.
//!
//! Invariant: no event is yielded twice, and none is missed without a [`Followed::Gap`] or a
//! [`Followed::LogChanged`].

use std::collections::VecDeque;

use tonic::{Status, Streaming};

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
    /// Asks for what comes after everything in `ready`.
    request: WatchEventsRequest,
    stream: Option<Streaming<WatchEventsResponse>>,
    ready: VecDeque<(Followed, Position)>,
    pauses: Pauses,
}

impl Hive {
    /// Follows events after a position; without one, those after the first call of
    /// [`Follow::next`]. `agent`: only those of this agent; empty: all that this socket may see.
    #[must_use]
    pub fn follow(&self, after: Option<Position>, agent: impl Into<String>) -> Follow {
        let after_sequence = after.as_ref().map(|position| position.sequence);
        let log_id = after.map(|position| position.log_id).unwrap_or_default();
        Follow {
            hive: self.clone(),
            request: WatchEventsRequest { after_sequence, log_id, agent: agent.into() },
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
            if let Some(next) = self.ready.pop_front() {
                return Ok(next);
            }
            match self.read().await {
                Ok(step) => {
                    self.pauses = Pauses::new();
                    self.take(step);
                }
                Err(error) if error.is_transient() => {
                    self.stream = None;
                    tokio::time::sleep(self.pauses.after(&error)).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Reads one step, of a new watch if there is none.
    async fn read(&mut self) -> Result<WatchEventsResponse, Error> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => {
                let mut client = EventServiceClient::new(self.hive.channel());
                let request = self.hive.request(self.request.clone());
                self.stream.insert(client.watch_events(request).await?.into_inner())
            }
        };
        let step = stream.message().await?;
        step.ok_or_else(|| Status::unavailable("the broker ended the watch").into())
    }

    /// Takes a step, and moves the position behind it.
    fn take(&mut self, step: WatchEventsResponse) {
        match step.step {
            Some(Step::Snapshot(log)) => {
                self.request.log_id = log.log_id;
                if log.log_changed {
                    self.push(Followed::LogChanged, log.last_sequence);
                } else if log.gap {
                    // What was pruned is behind this position, so going on from it has no gap.
                    let oldest = log.first_sequence.checked_sub(1);
                    self.push(Followed::Gap, oldest.unwrap_or(log.last_sequence));
                } else {
                    self.request.after_sequence.get_or_insert(log.last_sequence);
                }
            }
            Some(Step::Batch(batch)) => {
                for event in batch.events {
                    let sequence = event.sequence;
                    self.push(Followed::Fact(event), sequence);
                }
                self.request.after_sequence = Some(batch.sequence);
            }
            Some(Step::Progress(progress)) => {
                self.request.log_id = progress.log_id;
                self.request.after_sequence = Some(progress.sequence);
            }
            // A step of a later broker.
            None => {}
        }
    }

    fn push(&mut self, followed: Followed, sequence: u64) {
        self.request.after_sequence = Some(sequence);
        let log_id = self.request.log_id.clone();
        self.ready.push_back((followed, Position { log_id, sequence }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::v1::EventSnapshot;

    #[tokio::test]
    async fn a_position_after_a_gap_has_no_gap() {
        let options = Options { socket: "hive.sock".into(), ..Options::default() };
        let hive = Hive::connect_with(options).expect("a path");
        let gap = EventSnapshot { gap: true, log_id: "log".to_owned(), ..Default::default() };
        let some = EventSnapshot { first_sequence: 10, last_sequence: 12, ..gap.clone() };
        let empty = EventSnapshot { last_sequence: 12, ..gap };
        for (snapshot, sequence) in [(some, 9), (empty, 12)] {
            let after = Position { log_id: "log".to_owned(), sequence: 3 };
            let mut follow = hive.follow(Some(after), "");
            follow.take(WatchEventsResponse { step: Some(Step::Snapshot(snapshot)) });
            let position = Position { log_id: "log".to_owned(), sequence };
            assert_eq!(follow.ready.pop_front(), Some((Followed::Gap, position)));
            assert_eq!(follow.request.after_sequence, Some(sequence));
        }
    }
}
