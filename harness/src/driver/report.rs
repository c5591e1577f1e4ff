//! Live reports of a turn's output, as far as the broker keeps up.
//!
//! Invariant: claude never waits for this. Lines that do not fit the queue are dropped, and a
//! remark states their number.

use std::time::Duration;

use hive_core::limits::{REQUEST_LIST_BYTES_MAX, TURN_EVENT_LINE_BYTES_MAX};
use tokio::sync::mpsc;

use crate::claude::line;
use crate::driver::link::Link;
use crate::driver::wall_now;
use crate::wire::output::{self, LineSource, OutputLine};

/// Maximum lines that wait for the broker.
const QUEUE_MAX: usize = 512;
/// Maximum lines in one request.
const BATCH_MAX: usize = 48;
/// Maximum bytes of a line's other fields: numbers, a time, and the lengths of all fields.
const LINE_FIELDS_BYTES_MAX: usize = 64;
/// Maximum bytes of the lines in one request, which also has a token.
const BATCH_BYTES_MAX: usize = REQUEST_LIST_BYTES_MAX - LINE_FIELDS_BYTES_MAX;
const _: () = assert!(
    TURN_EVENT_LINE_BYTES_MAX + LINE_FIELDS_BYTES_MAX <= BATCH_BYTES_MAX,
    "any line has to fit a request"
);
/// Pause after a broken stream.
const REST: Duration = Duration::from_secs(1);

/// The sender of one turn's lines.
#[derive(Debug)]
pub struct Reporter {
    to: mpsc::Sender<OutputLine>,
    sequence: u64,
    dropped: u64,
}

impl Reporter {
    /// Creates a reporter, and the task that sends its lines; the task ends when the reporter is
    /// dropped.
    pub fn new(link: Link, turn_id: u64) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (to, lines) = mpsc::channel(QUEUE_MAX);
        (Self { to, sequence: 0, dropped: 0 }, send(link, turn_id, lines))
    }

    /// Queues a line, or drops it.
    pub fn line(&mut self, source: LineSource, text: &str) {
        if self.dropped > 0 {
            let remark = match self.dropped {
                1 => "1 line was dropped here".to_owned(),
                count => format!("{count} lines were dropped here"),
            };
            if self.push(LineSource::Note, &remark) {
                self.dropped = 0;
            }
        }
        if !self.push(source, text) {
            self.dropped += 1;
        }
    }

    fn push(&mut self, source: LineSource, text: &str) -> bool {
        self.sequence += 1;
        let line = OutputLine {
            sequence: self.sequence,
            source,
            text: line::beginning(text, TURN_EVENT_LINE_BYTES_MAX).to_owned(),
            time: wall_now(),
        };
        self.to.try_send(line).is_ok()
    }
}

async fn send(mut link: Link, turn_id: u64, mut lines: mpsc::Receiver<OutputLine>) {
    loop {
        let mut taken = Vec::new();
        if lines.recv_many(&mut taken, BATCH_MAX).await == 0 {
            return;
        }
        let session_token = link.token().await;
        if stream(&link, turn_id, session_token, taken, &mut lines).await {
            return;
        }
        tokio::time::sleep(REST).await;
    }
}

/// Takes the first lines, as many as one request may have; the others stay.
fn batch(lines: &mut Vec<OutputLine>) -> Vec<OutputLine> {
    let mut room = BATCH_BYTES_MAX;
    let fits = |line: &&OutputLine| {
        let left = room.checked_sub(line.text.len() + LINE_FIELDS_BYTES_MAX);
        left.map(|left| room = left).is_some()
    };
    let count = lines.iter().take_while(fits).count();
    lines.drain(..count).collect()
}

/// Sends lines over one stream; returns whether the stream took all lines.
async fn stream(
    link: &Link,
    turn_id: u64,
    session_token: String,
    mut taken: Vec<OutputLine>,
    lines: &mut mpsc::Receiver<OutputLine>,
) -> bool {
    let (batches, received) = mpsc::channel(1);
    let call = output::report(link.channel.clone(), session_token, turn_id, received);
    tokio::pin!(call);
    loop {
        tokio::select! {
            // An answer before the end of the stream: refused, or broken.
            _ = &mut call => return false,
            sent = batches.send(batch(&mut taken)) => if sent.is_err() { return false },
        }
        if !taken.is_empty() {
            continue;
        }
        let count = tokio::select! {
            _ = &mut call => return false,
            count = lines.recv_many(&mut taken, BATCH_MAX) => count,
        };
        if count == 0 {
            drop(batches);
            if let Err(status) = call.await {
                tracing::debug!(turn_id, %status, "the turn's output was not taken");
            }
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use hive_core::time::WallTime;
    use prost::Message as _;

    use super::*;

    #[test]
    fn a_request_is_no_longer_than_the_broker_reads_and_no_line_is_left_out() {
        let lengths = [0, 1, TURN_EVENT_LINE_BYTES_MAX, 300];
        let line = |sequence: u64| OutputLine {
            sequence: u64::MAX - sequence,
            source: LineSource::Note,
            text: "x".repeat(lengths[sequence as usize % lengths.len()]),
            time: WallTime(i64::MIN),
        };
        let lines: Vec<OutputLine> = (0..BATCH_MAX as u64).map(line).collect();
        let (mut waiting, mut sent, mut requests) = (lines.clone(), Vec::new(), 0);
        while !waiting.is_empty() {
            let batch = batch(&mut waiting);
            sent.extend(batch.clone());
            let request = output::request(u64::MAX, batch);
            assert!(
                request.encoded_len() <= REQUEST_LIST_BYTES_MAX,
                "{} bytes",
                request.encoded_len()
            );
            requests += 1;
        }
        assert!(sent == lines && requests == 2, "{requests} requests");
    }
}
