//! The client of the reference server: unary calls.
//!
//! Invariant: what it received is acked before it receives again, and both are on their way at
//! once.

use std::path::Path;

use http::uri::PathAndQuery;
use prost::bytes::Bytes;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::reference_wire::{
    ACK, AckRequest, AckResponse, PAGE, RECEIVE, ReceiveRequest, ReceiveResponse, SEND,
    SendRequest, SendResponse,
};

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct Client(Channel);

impl Client {
    pub(crate) async fn connect(socket: &Path) -> anyhow::Result<Self> {
        Ok(Self(hive_proto::connect::connect(socket).await?))
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: prost::Message + 'static,
        A: prost::Message + Default + 'static,
    {
        let mut grpc = Grpc::new(self.0.clone());
        grpc.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let path = PathAndQuery::from_static(path);
        Ok(grpc.unary(Request::new(request), path, ProstCodec::default()).await?.into_inner())
    }

    /// Waits for the answer to a call that changes nothing.
    pub(crate) async fn answers(&self) -> anyhow::Result<()> {
        let nothing = AckRequest { inbox: String::new(), ids: Vec::new() };
        Ok(self.call::<_, AckResponse>(ACK, nothing).await.map(drop)?)
    }

    pub(crate) async fn send(&self, inbox: usize, body: &Bytes) -> Result<(), Status> {
        let request = SendRequest { to: format!("a{inbox}"), body: body.clone() };
        self.call::<_, SendResponse>(SEND, request).await.map(drop)
    }
}

/// The consumer of an inbox.
#[derive(Debug)]
pub(crate) struct Consumer {
    client: Client,
    inbox: String,
    max: usize,
    /// What was received and is not acked.
    held: Vec<u64>,
}

impl Consumer {
    pub(crate) fn new(client: Client, inbox: usize, max: usize) -> Self {
        Self { client, inbox: format!("a{inbox}"), max: max.min(PAGE), held: Vec::new() }
    }

    /// Acks the last page, and waits for the next one; returns its length.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        let request = ReceiveRequest { inbox: self.inbox.clone(), max: u32::try_from(self.max)? };
        let receive = self.client.call::<_, ReceiveResponse>(RECEIVE, request);
        let ack = async { if self.held.is_empty() { Ok(()) } else { self.ack().await } };
        let ((), received) = tokio::try_join!(ack, receive)?;
        self.held = received.messages.into_iter().map(|message| message.id).collect();
        Ok(self.held.len())
    }

    async fn ack(&self) -> Result<(), Status> {
        let request = AckRequest { inbox: self.inbox.clone(), ids: self.held.clone() };
        self.client.call::<_, AckResponse>(ACK, request).await.map(drop)
    }

    /// Acks the last page.
    pub(crate) async fn finish(self) -> anyhow::Result<()> {
        Ok(self.ack().await?)
    }
}
