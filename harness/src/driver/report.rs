//! Reporting a turn's output live, as far as the broker keeps up.
//!
//! Invariant: claude never waits for this. What does not fit the queue is dropped, and a remark
//! says how much.

use std::time::Duration;

use hive_core::limits::{REQUEST_LIST_BYTES_MAX, TOKEN_CHARS_MAX, TURN_EVENT_LINE_BYTES_MAX};
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
/// Most lines in one request.
const BATCH_MAX: usize = 48;
/// Most bytes of one line beside its text: numbers, a time, and the lengths of all these.
const LINE_FIELDS_BYTES_MAX: usize = 64;
/// What one request has for its lines, beside its token.
const BATCH_BYTES_MAX: usize = REQUEST_LIST_BYTES_MAX - LINE_FIELDS_BYTES_MAX - TOKEN_CHARS_MAX;
const _: () = assert!(
    TURN_EVENT_LINE_BYTES_MAX + LINE_FIELDS_BYTES_MAX <= BATCH_BYTES_MAX,
    "any line has to fit a request"
);
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
    /// A reporter, and the task that sends what it is given; the task ends when the reporter is
    /// dropped.
    pub fn new(link: Link, turn_id: u64) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (to, lines) = mpsc::channel(QUEUE_MAX);
        (Self { to, sequence: 0, dropped: 0 }, send(link, turn_id, lines))
    }

    /// Takes a line, or drops it.
    pub fn line(&mut self, stream: TurnEventStream, text: &str) {
        if self.dropped > 0 {
            let words = match self.dropped {
                1 => "1 line was dropped here".to_owned(),
                count => format!("{count} lines were dropped here"),
            };
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

/// The first of these lines, as many as one request may have; the others stay.
fn batch(lines: &mut Vec<v1::TurnEvent>) -> Vec<v1::TurnEvent> {
    let mut room = BATCH_BYTES_MAX;
    let fits =
        |event: &&v1::TurnEvent| match room.checked_sub(event.line.len() + LINE_FIELDS_BYTES_MAX) {
            Some(left) => {
                room = left;
                true
            }
            None => false,
        };
    let count = lines.iter().take_while(fits).count();
    lines.drain(..count).collect()
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
        let request = v1::ReportTurnEventsRequest {
            session_token: session_token.clone(),
            turn_id,
            events: batch(&mut events),
        };
        tokio::select! {
            // Answered before its end: refused, or broken.
            _ = &mut call => return false,
            sent = requests.send(request) => if sent.is_err() { return false },
        }
        if !events.is_empty() {
            continue;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use prost::Message as _;

    #[test]
    fn a_request_is_no_longer_than_the_broker_reads_and_no_line_is_left_out() {
        let lengths = [0, 1, TURN_EVENT_LINE_BYTES_MAX, 300];
        let line = |sequence: u64| v1::TurnEvent {
            sequence: u64::MAX - sequence,
            stream: TurnEventStream::Note.into(),
            line: "x".repeat(lengths[sequence as usize % lengths.len()]),
            time: Some(prost_types::Timestamp { seconds: i64::MIN, nanos: i32::MAX }),
        };
        let lines: Vec<v1::TurnEvent> = (0..BATCH_MAX as u64).map(line).collect();
        let (mut waiting, mut sent, mut requests) = (lines.clone(), Vec::new(), 0);
        while !waiting.is_empty() {
            let events = batch(&mut waiting);
            let session_token = "t".repeat(TOKEN_CHARS_MAX);
            let request = v1::ReportTurnEventsRequest { session_token, turn_id: u64::MAX, events };
            assert!(
                request.encoded_len() <= REQUEST_LIST_BYTES_MAX,
                "{} bytes",
                request.encoded_len()
            );
            sent.extend(request.events);
            requests += 1;
        }
        assert!(sent == lines && requests == 2, "{requests} requests");
    }
}
