//! Following the output of a turn: a watch that survives a restart of the broker.
//!
//! Invariant: lines come in the order of their numbers, none twice. A watch that goes on ends with
//! its turn, and not before.

use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::{TurnEvent as WireEvent, WatchTurnRequest, WatchTurnResponse};
use tonic::Streaming;

use super::reconnect::{Absence, is_weather};
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::turn::Turn;

/// A watch on a turn's output.
#[derive(Debug)]
pub(crate) struct TurnFeed {
    socket: PathBuf,
    timeout: Duration,
    broker: Broker,
    turn_id: u64,
    follow: bool,
    after: u64,
    stream: Option<Streaming<WatchTurnResponse>>,
}

impl TurnFeed {
    /// Reads the output of a turn that is kept; with `follow` it goes on until the turn ends.
    pub(crate) async fn open(
        context: &Context,
        broker: &Broker,
        turn_id: u64,
        follow: bool,
    ) -> Result<Self, Failure> {
        let mut feed = Self {
            socket: context.socket.clone(),
            timeout: context.timeout,
            broker: broker.clone(),
            turn_id,
            follow,
            after: 0,
            stream: None,
        };
        feed.watch(broker.clone()).await?;
        Ok(feed)
    }

    /// The next lines; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<WireEvent>>, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                self.reconnect().await?;
                continue;
            };
            match stream.message().await {
                Ok(Some(WatchTurnResponse { mut events, .. })) => {
                    events.retain(|event| event.sequence > self.after);
                    if let Some(last) = events.last() {
                        self.after = last.sequence;
                        return Ok(Some(events));
                    }
                }
                Ok(None) if self.has_ended().await? => return Ok(None),
                Ok(None) => self.stream = None,
                Err(status) if self.follow && is_weather(&status) => self.stream = None,
                Err(status) => return Err(status.into()),
            }
        }
    }

    /// The broker that was watched last.
    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Whether the end of a stream is the end of what there is; a broker that goes away ends it
    /// too.
    async fn has_ended(&self) -> Result<bool, Failure> {
        if !self.follow {
            return Ok(true);
        }
        match fetch::turn::<Turn>(&self.broker, self.turn_id).await {
            Ok(turn) => Ok(turn.outcome.is_some()),
            Err(Failure::Refused(status)) if is_weather(&status) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    async fn watch(&mut self, broker: Broker) -> Result<(), Failure> {
        let request = WatchTurnRequest {
            turn_id: self.turn_id,
            after_sequence: self.after,
            follow: self.follow,
        };
        self.stream = Some(broker.read(broker.turns().watch_turn(request)).await?);
        self.broker = broker;
        Ok(())
    }

    async fn reconnect(&mut self) -> Result<(), Failure> {
        let mut absence = Absence::begin();
        loop {
            let broker = absence.broker(&self.socket, self.timeout).await;
            let watched = self.watch(broker).await;
            if let Some(ended) = absence.ends(watched) {
                return ended;
            }
        }
    }
}
