//! Calls on the wire, without a kit: each is made once, as it is.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context as _, Result};
use hive_client::codec::Raw;
use hive_client::connect::connect_lazy;
use prost::bytes::Bytes;
use prost_reflect::MethodDescriptor;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataKey, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

use crate::task::Task;
use crate::{json, refusal};

/// What came of a call: an answer, or an error as a case expects it.
pub(crate) type Outcome = Result<Value, Value>;

/// Metadata of a call.
pub(crate) type Metadata = BTreeMap<String, String>;

/// Returns a channel to a socket.
pub(crate) fn channel(socket: &Path) -> Result<Channel> {
    Ok(connect_lazy(socket)?)
}

/// Makes a call with one request and one answer.
pub(crate) async fn call(
    channel: Channel,
    name: &str,
    request: &Value,
    metadata: &Metadata,
) -> Result<Outcome> {
    let method = json::method(name)?;
    let bytes = json::encode(method.input(), request)?;
    let mut grpc = Grpc::new(channel);
    if let Err(error) = grpc.ready().await {
        return Ok(Err(refusal::of_status(Status::from_error(error.into()))));
    }
    let request = with(Request::new(bytes), metadata)?;
    match grpc.unary(request, json::path(&method), Raw).await {
        Ok(answer) => Ok(Ok(json::decode(method.output(), answer.into_inner())?)),
        Err(status) => Ok(Err(refusal::of_status(status))),
    }
}

fn with<T>(mut request: Request<T>, metadata: &Metadata) -> Result<Request<T>> {
    for (key, value) in metadata {
        let key: MetadataKey<Ascii> = key.parse().context("a key of metadata")?;
        request.metadata_mut().insert(key, MetadataValue::try_from(value)?);
    }
    Ok(request)
}

/// A stream of an RPC.
#[derive(Debug)]
pub(crate) struct Stream {
    method: MethodDescriptor,
    requests: Option<mpsc::UnboundedSender<Bytes>>,
    answers: Opening,
}

#[derive(Debug)]
enum Opening {
    Pending(Task<Result<Streaming<Bytes>, Status>>),
    Open(Streaming<Bytes>),
    Ended(Value),
}

impl Stream {
    /// Opens a stream with its first message, which is the only one if the client sends one.
    pub(crate) fn open(
        channel: Channel,
        name: &str,
        request: &Value,
        metadata: &Metadata,
    ) -> Result<Self> {
        let method = json::method(name)?;
        let (requests, receiver) = mpsc::unbounded_channel();
        // The receiver is below.
        let _ = requests.send(json::encode(method.input(), request)?);
        let request = with(Request::new(UnboundedReceiverStream::new(receiver)), metadata)?;
        let path = json::path(&method);
        let opening = Task::start(async move {
            let mut grpc = Grpc::new(channel);
            grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
            Ok(grpc.streaming(request, path, Raw).await?.into_inner())
        });
        let requests = method.is_client_streaming().then_some(requests);
        Ok(Self { method, requests, answers: Opening::Pending(opening) })
    }

    /// Writes a message.
    pub(crate) fn write(&self, message: &Value) -> Result<()> {
        let bytes = json::encode(self.method.input(), message)?;
        let requests = self.requests.as_ref().context("our side of the stream is closed")?;
        // If the stream has ended, the next read says so.
        let _ = requests.send(bytes);
        Ok(())
    }

    /// Closes our side.
    pub(crate) fn end(&mut self) {
        self.requests = None;
    }

    /// Reads a message; the end of the stream is `{"end": true}`.
    pub(crate) async fn read(&mut self) -> Result<Outcome> {
        if let Opening::Pending(opening) = &mut self.answers {
            self.answers = match opening.result().await? {
                Ok(stream) => Opening::Open(stream),
                Err(status) => Opening::Ended(refusal::of_status(status)),
            };
        }
        let stream = match &mut self.answers {
            Opening::Open(stream) => stream,
            Opening::Ended(error) => return Ok(Err(error.clone())),
            Opening::Pending(_) => anyhow::bail!("the stream is not open"),
        };
        match stream.message().await {
            Ok(Some(bytes)) => Ok(Ok(json::decode(self.method.output(), bytes)?)),
            Ok(None) => Ok(Ok(serde_json::json!({"end": true}))),
            Err(status) => Ok(Err(refusal::of_status(status))),
        }
    }
}
