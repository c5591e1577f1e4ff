//! Reporting a turn's output live, as far as the broker keeps up.
//!
//! Invariant: claude never waits for this. What does not fit the queue is dropped, and a remark says how much.

use std::time::Duration;

use hive_core::limits::TURN_EVENT_LINE_BYTES_MAX;
use hive_proto::v1;
use hive_proto::v1::TurnEventStream;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use crate::claude::line;
use crate::driver::link::Link;
use crate::driver::{timestamp, wall_now};

/// Most lines that wait for the broker.
const QUEUE_MAX: usize = 512;
/// Most lines in one request; with the bound of a line it stays under the 4 MiB of a gRPC message.
const BATCH_MAX: usize = 48;
/// The rest after a stream that broke.
const REST: Duration = Duration::from_secs(1);

/// Where the lines of one turn go.
#[derive(Debug)]
pub struct Reporter {
    to: mpsc::Sender<v1::TurnEvent>,
    sequence: u64,
    dropped: u64,
}

impl Reporter {
    /// A reporter, and the task that sends what it is given; the task ends when the reporter is dropped.
    pub fn new(link: Link, turn_id: u64) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (to, lines) = mpsc::channel(QUEUE_MAX);
        (Self { to, sequence: 0, dropped: 0 }, send(link, turn_id, lines))
    }

    /// Takes a line, or drops it.
    pub fn line(&mut self, stream: TurnEventStream, text: &str) {
        if self.dropped > 0 {
            let words = format!("{} lines were dropped here", self.dropped);
            if self.push(TurnEventStream::Note, &words) {
                self.dropped = 0;
            }
        }
        if !self.push(stream, text) {
            self.dropped += 1;
        }
    }

    fn push(&mut self, stream: TurnEventStream, text: &str) -> bool {
        self.sequence += 1;
        let event = v1::TurnEvent {
            sequence: self.sequence,
            stream: stream.into(),
            line: line::beginning(text, TURN_EVENT_LINE_BYTES_MAX).to_owned(),
            time: Some(timestamp(wall_now())),
        };
        self.to.try_send(event).is_ok()
    }
}

async fn send(mut link: Link, turn_id: u64, mut lines: mpsc::Receiver<v1::TurnEvent>) {
    loop {
        let mut events = Vec::new();
        if lines.recv_many(&mut events, BATCH_MAX).await == 0 {
            return;
        }
        let session_token = link.token().await;
        if stream(&link, turn_id, session_token, events, &mut lines).await {
            return;
        }
        tokio::time::sleep(REST).await;
    }
}

/// One stream; whether it took everything there was.
async fn stream(
    link: &Link,
    turn_id: u64,
    session_token: String,
    mut events: Vec<v1::TurnEvent>,
    lines: &mut mpsc::Receiver<v1::TurnEvent>,
) -> bool {
    let (requests, stream) = mpsc::channel(1);
    let mut client = TurnServiceClient::new(link.channel.clone());
    let call = client.report_turn_events(ReceiverStream::new(stream));
    tokio::pin!(call);
    loop {
        let request = v1::ReportTurnEventsRequest { session_token: session_token.clone(), turn_id, events };
        tokio::select! {
            // Answered before its end: refused, or broken.
            _ = &mut call => return false,
            sent = requests.send(request) => if sent.is_err() { return false },
        }
        events = Vec::new();
        let count = tokio::select! {
            _ = &mut call => return false,
            count = lines.recv_many(&mut events, BATCH_MAX) => count,
        };
        if count == 0 {
            drop(requests);
            if let Err(status) = call.await {
                tracing::debug!(turn = turn_id, %status, "the turn's output was not taken");
            }
            return true;
        }
    }
}
