//! Hearing the broker: its event log as it grows, over restarts.
//!
//! Invariant: a read after [`Heard::Back`] misses nothing, because the watch began before it.

use std::path::PathBuf;
use std::time::Duration;

use hive_proto::v1::watch_events_response::Step;
use hive_proto::v1::{EventKind, WatchEventsResponse};
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio_util::task::AbortOnDropHandle;
use tonic::Streaming;

use crate::connect::Broker;
use crate::context::Context;
use crate::error::Failure;
use crate::feed::{RECONNECT_FIRST, RECONNECT_LONGEST, watch};
use crate::spawn::spawn;

/// Events that are buffered for the screen; a full buffer blocks the broker.
const EVENTS_WAITING: usize = 1024;

#[derive(Debug)]
pub(super) enum Heard {
    Happened(EventKind, String),
    /// Events were committed that the broker no longer has.
    Missed,
    /// The connection is lost, for this reason.
    Lost(String),
    /// This broker answers, and its events follow.
    Back(Broker),
}

#[derive(Debug)]
pub(super) struct Link {
    heard: Receiver<Heard>,
    _listening: AbortOnDropHandle<()>,
}

impl Link {
    /// Listens to this broker, and to the next one after a restart.
    pub(super) async fn open(context: &Context, broker: &Broker) -> Result<Self, Failure> {
        let stream = watch(broker.clone(), context.timeout, String::new(), None).await?.0;
        let (sender, heard) = mpsc::channel(EVENTS_WAITING);
        let listener =
            Listener { socket: context.socket.clone(), timeout: context.timeout, sender };
        Ok(Self {
            heard,
            _listening: AbortOnDropHandle::new(spawn("event listener", listener.listen(stream))),
        })
    }

    /// Returns the next report, however long it takes.
    pub(super) async fn next(&mut self) -> Heard {
        self.heard.recv().await.expect("the listener outlives this receiver")
    }
}

struct Listener {
    socket: PathBuf,
    timeout: Duration,
    sender: Sender<Heard>,
}

impl Listener {
    async fn listen(self, mut stream: Streaming<WatchEventsResponse>) {
        loop {
            let heard = match stream.message().await {
                Ok(Some(WatchEventsResponse { step: Some(Step::Batch(batch)) })) => {
                    let happened =
                        batch.events.into_iter().map(|event| (event.kind(), event.agent));
                    happened.map(|(kind, agent)| Heard::Happened(kind, agent)).collect()
                }
                Ok(Some(WatchEventsResponse { step: Some(Step::Snapshot(snapshot)) }))
                    if snapshot.gap =>
                {
                    vec![Heard::Missed]
                }
                // A position, or a step that this version does not know.
                Ok(Some(_)) => continue,
                Ok(None) => vec![Heard::Lost("it shut down".to_owned())],
                Err(status) => vec![Heard::Lost(Failure::from(status).to_string())],
            };
            let lost = matches!(heard[..], [Heard::Lost(_)]);
            for heard in heard {
                if self.sender.send(heard).await.is_err() {
                    return;
                }
            }
            if lost {
                let Some(again) = self.reconnect().await else { return };
                stream = again;
            }
        }
    }

    /// Reconnects. Each failed try is reported, because its reason may have changed.
    async fn reconnect(&self) -> Option<Streaming<WatchEventsResponse>> {
        let mut pause = RECONNECT_FIRST;
        loop {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RECONNECT_LONGEST);
            let heard = match self.connect().await {
                Ok((broker, stream)) => {
                    self.sender.send(Heard::Back(broker)).await.ok()?;
                    return Some(stream);
                }
                Err(failure) => Heard::Lost(failure.to_string()),
            };
            self.sender.send(heard).await.ok()?;
        }
    }

    async fn connect(&self) -> Result<(Broker, Streaming<WatchEventsResponse>), Failure> {
        let broker = Broker::connect(&self.socket, self.timeout).await?;
        let (stream, _) = watch(broker.clone(), self.timeout, String::new(), None).await?;
        Ok((broker, stream))
    }
}
