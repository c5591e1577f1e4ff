//! Following the output of a turn: a watch that survives a restart of the broker.
//!
//! Invariant: lines come in the order of their numbers, none twice. A watch with `follow` ends with
//! its turn, and not before.

use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::watch_turn_response::Step;
use hive_proto::v1::{TurnEvent as WireEvent, WatchTurnRequest, WatchTurnResponse};
use tonic::Streaming;

use super::reconnect::reconnect;
use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::turn::Turn;

#[derive(Debug)]
pub(crate) struct TurnFeed {
    socket: PathBuf,
    timeout: Duration,
    broker: Broker,
    request: WatchTurnRequest,
    stream: Option<Streaming<WatchTurnResponse>>,
}

impl TurnFeed {
    /// Reads the stored output of a turn; with `follow` also new output until the turn ends.
    pub(crate) async fn open(
        context: &Context,
        broker: &Broker,
        turn_id: u64,
        follow: bool,
    ) -> Result<Self, Failure> {
        let request = WatchTurnRequest { turn_id, after_sequence: 0, follow };
        let (broker, stream) = watch(broker.clone(), request).await?;
        Ok(Self {
            socket: context.socket.clone(),
            timeout: context.timeout,
            broker,
            request,
            stream: Some(stream),
        })
    }

    /// Returns the next lines; `None` at the end.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<WireEvent>>, Failure> {
        loop {
            let Some(stream) = &mut self.stream else {
                let request = self.request;
                let (broker, stream) =
                    reconnect(&self.socket, self.timeout, |broker| watch(broker, request)).await?;
                (self.broker, self.stream) = (broker, Some(stream));
                continue;
            };
            match stream.message().await {
                Ok(Some(WatchTurnResponse { step })) => {
                    let mut events = match step {
                        Some(Step::Snapshot(part)) => part.events,
                        Some(Step::Batch(batch)) => batch.events,
                        // A step that this version does not know.
                        None => Vec::new(),
                    };
                    events.retain(|event| event.sequence > self.request.after_sequence);
                    if let Some(last) = events.last() {
                        self.request.after_sequence = last.sequence;
                        return Ok(Some(events));
                    }
                }
                Ok(None) if self.has_ended().await? => return Ok(None),
                Ok(None) => self.stream = None,
                Err(status) if self.request.follow && hive_proto::status::is_transient(&status) => {
                    self.stream = None;
                }
                Err(status) => return Err(status.into()),
            }
        }
    }

    pub(crate) fn broker(&self) -> &Broker {
        &self.broker
    }

    /// Returns whether the end of a stream is the end of the output; a broker that shuts down ends
    /// it too.
    async fn has_ended(&self) -> Result<bool, Failure> {
        if !self.request.follow {
            return Ok(true);
        }
        match fetch::turn::<Turn>(&self.broker, self.request.turn_id).await {
            Ok(turn) => Ok(turn.outcome.is_some()),
            Err(Failure::Refused(status)) if hive_proto::status::is_transient(&status) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

async fn watch(
    broker: Broker,
    request: WatchTurnRequest,
) -> Result<(Broker, Streaming<WatchTurnResponse>), Failure> {
    let stream = broker.read(broker.turns().watch_turn(request)).await?;
    Ok((broker, stream))
}
