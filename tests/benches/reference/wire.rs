//! The messages of the reference server, written by hand; the server and its clients share them.
//!
//! Invariant: a message has what the work needs and nothing else.

use prost::bytes::Bytes;

/// Sends a message.
pub(crate) const SEND: &str = "/reference.Mail/Send";
/// Waits for mail.
pub(crate) const RECEIVE: &str = "/reference.Mail/Receive";
/// Deletes mail.
pub(crate) const ACK: &str = "/reference.Mail/Ack";

/// Maximum messages of one receive, and of one ack.
pub(crate) const PAGE: usize = 64;

/// A message to store.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SendRequest {
    /// The inbox.
    #[prost(string, tag = "1")]
    pub(crate) to: String,
    /// The text.
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) body: Bytes,
}

/// The message is on disk.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct SendResponse {
    /// Id of the message.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
}

/// A wait for mail.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReceiveRequest {
    /// The inbox.
    #[prost(string, tag = "1")]
    pub(crate) inbox: String,
    /// At most this many messages.
    #[prost(uint32, tag = "2")]
    pub(crate) max: u32,
}

/// At least one message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ReceiveResponse {
    /// The messages, oldest first.
    #[prost(message, repeated, tag = "1")]
    pub(crate) messages: Vec<Message>,
}

/// A stored message.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Message {
    /// Id of the message.
    #[prost(uint64, tag = "1")]
    pub(crate) id: u64,
    /// The text.
    #[prost(bytes = "bytes", tag = "2")]
    pub(crate) body: Bytes,
}

/// Messages to delete.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct AckRequest {
    /// The inbox.
    #[prost(string, tag = "1")]
    pub(crate) inbox: String,
    /// Ids of the messages.
    #[prost(uint64, repeated, tag = "2")]
    pub(crate) ids: Vec<u64>,
}

/// The messages are deleted.
#[derive(Clone, Copy, PartialEq, prost::Message)]
pub(crate) struct AckResponse {}
