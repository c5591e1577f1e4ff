//! The calls of co-processes: mail to the agent, and loose ends.

use hive_core::name::Label;
use hive_proto::handshake::Channel;
use hive_proto::v1;
use hive_proto::v1::loose_end_service_client::LooseEndServiceClient;
use hive_proto::v1::wake_service_client::WakeServiceClient;
use hive_proto::{in_session, in_trace};
use tonic::Status;

/// The receipt of a message.
#[derive(Clone, Copy, Debug)]
pub struct Receipt {
    pub message_id: u64,
    /// The number of the message that it superseded; 0 for none.
    pub superseded_message_id: u64,
}

/// Sends the agent a message, which supersedes an earlier one with the same label and key. The
/// harness names its session; other programs have none.
pub async fn wake(
    channel: Channel,
    session_token: String,
    request_id: String,
    label: &str,
    key: &str,
    body: String,
    traceparent: Option<String>,
) -> Result<Receipt, Status> {
    let (label, coalescing_key) = (label.to_owned(), key.to_owned());
    let request = v1::WakeRequest { request_id, label, body, coalescing_key };
    let mut request = in_session(request, &session_token);
    if let Some(traceparent) = traceparent {
        request = in_trace(request, &traceparent);
    }
    let v1::WakeResponse { message_id, superseded_message_id } =
        WakeServiceClient::new(channel).wake(request).await?.into_inner();
    Ok(Receipt { message_id, superseded_message_id })
}

/// Publishes loose ends, each a key and a text, in place of what the label published before.
pub async fn replace_loose_ends(
    channel: Channel,
    request_id: String,
    label: &Label,
    loose_ends: Vec<(String, String)>,
) -> Result<(), Status> {
    let entry = |(key, text)| v1::PublishedLooseEnd { key, text };
    let request = v1::ReplaceLooseEndsRequest {
        request_id,
        label: label.as_str().to_owned(),
        loose_ends: loose_ends.into_iter().map(entry).collect(),
    };
    LooseEndServiceClient::new(channel).replace_loose_ends(request).await.map(drop)
}
