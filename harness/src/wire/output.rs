//! The stream of a turn's output.

use hive_core::time::WallTime;
use hive_proto::convert::time::timestamp;
use hive_proto::handshake::Channel;
use hive_proto::in_session;
use hive_proto::v1;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

/// Source of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineSource {
    /// claude's stdout.
    Stdout,
    /// claude's stderr.
    Stderr,
    /// A remark of the harness.
    Note,
}

/// A line of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// Its number within the turn.
    pub sequence: u64,
    pub source: LineSource,
    pub text: String,
    /// When it was written.
    pub time: WallTime,
}

/// Reports lines, each batch in one request, until their channel is closed.
pub async fn report(
    channel: Channel,
    session_token: String,
    turn_id: u64,
    batches: mpsc::Receiver<Vec<OutputLine>>,
) -> Result<(), Status> {
    let requests = ReceiverStream::new(batches).map(move |lines| request(turn_id, lines));
    let requests = in_session(requests, &session_token);
    TurnServiceClient::new(channel).report_turn_events(requests).await.map(drop)
}

/// Returns the request that carries these lines.
pub(crate) fn request(turn_id: u64, lines: Vec<OutputLine>) -> v1::ReportTurnEventsRequest {
    let event = |OutputLine { sequence, source, text, time }| v1::TurnEvent {
        sequence,
        stream: match source {
            LineSource::Stdout => v1::TurnEventStream::Stdout,
            LineSource::Stderr => v1::TurnEventStream::Stderr,
            LineSource::Note => v1::TurnEventStream::Note,
        }
        .into(),
        line: text,
        time: Some(timestamp(time)),
    };
    let events = lines.into_iter().map(event).collect();
    v1::ReportTurnEventsRequest { turn_id, events }
}
