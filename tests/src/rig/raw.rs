//! Calling any RPC by its name with bytes, as a client in another language or a broken one would.
//!
//! What it is not: typed. Invariant: nothing between the test and the wire checks, completes or
//! repairs what is sent.

use prost::bytes::{Buf as _, BufMut as _};
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};

/// An answer. While it lives, a stream behind it stays open.
#[derive(Debug)]
pub struct Answer {
    /// The first message; none where a stream ended without one.
    pub first: Option<Vec<u8>>,
    rest: Streaming<Vec<u8>>,
}

impl Answer {
    /// The first message, decoded.
    pub fn decode<M: prost::Message + Default>(&self) -> M {
        M::decode(self.first.as_deref().expect("an answer")).expect("the answer is of this type")
    }

    /// Reads the next message; none where the stream ended.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Status> {
        self.rest.message().await
    }

    /// Reads to the end of the stream.
    pub async fn end(mut self) -> Result<(), Status> {
        while self.rest.message().await?.is_some() {}
        Ok(())
    }
}

/// Calls `path` (`/hive.v1.MessageService/SendMessage`) with one message, whatever kind of RPC it
/// is, and waits for the first answer.
pub async fn call(
    channel: &Channel,
    path: &str,
    metadata: MetadataMap,
    message: Vec<u8>,
) -> Result<Answer, Status> {
    call_with_all(channel, path, metadata, vec![message]).await
}

/// The same, with several messages.
pub async fn call_with_all(
    channel: &Channel,
    path: &str,
    metadata: MetadataMap,
    messages: Vec<Vec<u8>>,
) -> Result<Answer, Status> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let path = PathAndQuery::try_from(path).expect("a path");
    let messages = tokio_stream::iter(messages);
    let request = Request::from_parts(metadata, tonic::Extensions::default(), messages);
    let mut rest = grpc.streaming(request, path, Bytes).await?.into_inner();
    let first = rest.message().await?;
    Ok(Answer { first, rest })
}

/// Messages as they are on the wire.
#[derive(Clone, Copy, Debug)]
struct Bytes;

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut item = vec![0; from.remaining()];
        from.copy_to_slice(&mut item);
        Ok(Some(item))
    }
}
