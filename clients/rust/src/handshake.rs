//! The handshake with a broker, and the channel that makes it.
//!
//! A program states its name, its version and its revision of the contract, and learns those of the
//! broker: with the first call of each connection, so no further call costs more. Invariant: a call
//! is refused here, with both versions, if the broker would not know its RPC, or would silently
//! drop a field that is set in it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http_body::{Body as _, Frame};
use prost::bytes::{Bytes, BytesMut};
use tokio::sync::Mutex;
use tonic::Status;
use tonic::body::Body;
use tower::Service;

use crate::connections::Connections;
use crate::v1::server_info_service_client::ServerInfoServiceClient;
use crate::v1::{GetServerInfoRequest, GetServerInfoResponse};

/// The revision of the contract that this source has. It grows by one with each release that adds
/// an RPC or a field of a request, and each of them is then listed in [`ADDITIONS`].
pub const REVISION: u32 = 1;

/// What was added to requests after revision 1.
pub const ADDITIONS: &[Addition] = &[];

/// A part of the contract that brokers of earlier revisions do not know.
#[derive(Clone, Copy, Debug)]
pub struct Addition {
    /// The revision that it came with.
    pub revision: u32,
    /// Path of the RPC, as in `/hive.v1.WakeService/Wake`. The client sends one request.
    pub rpc: &'static str,
    /// Numbers of the fields from the request inwards; empty if the RPC itself is new.
    pub field: &'static [u32],
    /// Its name, for people.
    pub name: &'static str,
}

/// A program that calls a broker.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Its name, for example `hivectl`.
    pub name: &'static str,
    /// Its version, as `hivectl --version` prints it.
    pub version: &'static str,
}

/// What a broker answered.
#[derive(Clone, Debug)]
struct Broker {
    /// The number of the connection.
    connection: u64,
    info: Arc<GetServerInfoResponse>,
}

/// The handshakes of one channel.
#[derive(Debug)]
pub struct Handshake {
    program: Program,
    additions: &'static [Addition],
    /// The connections of the channel.
    connections: Arc<Connections>,
    broker: Mutex<Option<Broker>>,
}

impl Handshake {
    /// Returns the handshakes of a program that may use these additions.
    #[must_use]
    pub fn new(program: Program, additions: &'static [Addition]) -> Self {
        Self { program, additions, connections: Arc::default(), broker: Mutex::default() }
    }

    /// Returns the connections of the channel.
    pub(crate) fn connections(&self) -> Arc<Connections> {
        Arc::clone(&self.connections)
    }

    /// Returns the broker of the present connection; asks it if the connection is new.
    async fn broker(&self, channel: &tonic::transport::Channel) -> Result<Broker, Status> {
        // Concurrent calls wait for the one handshake.
        let mut known = self.broker.lock().await;
        let connection = self.connections.made();
        if let Some(broker) = known.as_ref().filter(|broker| broker.connection == connection) {
            return Ok(broker.clone());
        }
        let request = GetServerInfoRequest {
            client_name: self.program.name.to_owned(),
            client_version: self.program.version.to_owned(),
            contract_revision: REVISION,
        };
        let info = ServerInfoServiceClient::new(channel.clone()).get_server_info(request).await?;
        let connection = self.connections.made();
        let broker = Broker { connection, info: Arc::new(info.into_inner()) };
        Ok(known.insert(broker).clone())
    }

    /// Returns the same request, if the broker knows all that is in it.
    async fn checked(
        &self,
        request: http::Request<Body>,
        broker: &Broker,
    ) -> Result<http::Request<Body>, Status> {
        let path = request.uri().path();
        let is_newer = |addition: &&Addition| {
            addition.revision > broker.info.contract_revision && addition.rpc == path
        };
        let newer: Vec<&Addition> = self.additions.iter().filter(is_newer).collect();
        if newer.is_empty() {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let bytes = read(body).await?;
        let message = bytes.get(PREFIX_BYTES..).unwrap_or_default();
        match newer.into_iter().find(|addition| has_field(message, addition.field)) {
            Some(addition) => Err(self.refusal(addition, broker)),
            None => Ok(http::Request::from_parts(parts, Body::new(Whole(Some(bytes))))),
        }
    }

    fn refusal(&self, addition: &Addition, broker: &Broker) -> Status {
        let (Program { name, version }, Addition { revision, rpc, .. }) = (self.program, *addition);
        let rpc = rpc.rsplit('/').next().unwrap_or_default();
        let what = if addition.field.is_empty() {
            format!("`{rpc}`")
        } else {
            format!("`{}` of `{rpc}`", addition.name)
        };
        Status::unimplemented(format!(
            "{what} came with revision {revision} of the contract, and the broker (hived {}, \
             revision {}) does not know it; upgrade hived to the version of {name}, which is \
             {version}, or do without it",
            broker.info.version, broker.info.contract_revision
        ))
    }
}

/// Bytes before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// Reads a body to its end.
async fn read(mut body: Body) -> Result<Bytes, Status> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

/// A body that was read before.
struct Whole(Option<Bytes>);

impl http_body::Body for Whole {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
    }
}

/// Returns whether a message has a field, by the numbers from the outermost message inwards.
fn has_field(mut message: &[u8], path: &[u32]) -> bool {
    let Some((wanted, inner)) = path.split_first() else { return true };
    while let Some(key) = varint(&mut message) {
        // The wire types of protobuf. Groups do not occur in the contract.
        let length = match key & 7 {
            0 => varint(&mut message).map(|_| 0),
            1 => Some(8),
            2 => varint(&mut message),
            5 => Some(4),
            _ => None,
        };
        let length = length.and_then(|length| usize::try_from(length).ok());
        let Some((content, rest)) = length.and_then(|length| message.split_at_checked(length))
        else {
            return false;
        };
        if key >> 3 == u64::from(*wanted) && has_field(content, inner) {
            return true;
        }
        message = rest;
    }
    false
}

/// Takes a number from the beginning of a message.
fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// The error of a call that was lost with its connection.
const GONE: &str = "the broker has not answered, and there was no connection to it for 10 s";

/// A channel to a broker, or to another program of Hive.
#[derive(Clone, Debug)]
pub struct Channel {
    inner: tonic::transport::Channel,
    /// `None` if the peer is not a broker.
    handshake: Option<Arc<Handshake>>,
}

impl Channel {
    pub(crate) fn new(inner: tonic::transport::Channel, handshake: Handshake) -> Self {
        Self { inner, handshake: Some(Arc::new(handshake)) }
    }

    /// Returns what the broker of the present connection says about itself.
    pub(crate) async fn info(&self) -> Result<GetServerInfoResponse, Status> {
        // Only a channel to another program of Hive has no handshake.
        let Some(handshake) = &self.handshake else {
            return Err(Status::failed_precondition("the peer is not a broker"));
        };
        tokio::select! {
            biased;
            broker = handshake.broker(&self.inner) => Ok(broker?.info.as_ref().clone()),
            () = handshake.connections.gone() => Err(Status::unavailable(GONE)),
        }
    }
}

/// A channel without handshakes, to a program that is not a broker.
impl From<tonic::transport::Channel> for Channel {
    fn from(inner: tonic::transport::Channel) -> Self {
        Self { inner, handshake: None }
    }
}

impl Service<http::Request<Body>> for Channel {
    type Response = http::Response<Body>;
    type Error = tonic::transport::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        // The clone of a service is not ready, so the ready one is used and the clone is kept.
        let other = self.inner.clone();
        let mut ready = std::mem::replace(&mut self.inner, other);
        let Some(handshake) = self.handshake.clone() else { return Box::pin(ready.call(request)) };
        let for_handshake = self.inner.clone();
        Box::pin(async move {
            let answered = async {
                let broker = handshake.broker(&for_handshake).await?;
                let request = handshake.checked(request, &broker).await?;
                Ok(ready.call(request).await)
            };
            let answered: Result<_, Status> = tokio::select! {
                biased;
                answered = answered => answered,
                () = handshake.connections.gone() => Err(Status::unavailable(GONE)),
            };
            answered.unwrap_or_else(|status| Ok(status.into_http()))
        })
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;
    use prost_types::{DescriptorProto, FileDescriptorSet};

    use super::*;
    use crate::v1::{EveryoneRecipient, Recipient, SendMessageRequest, recipient::To};

    #[test]
    fn a_field_is_found_at_its_place_only() {
        let to = Some(Recipient { to: Some(To::Everyone(EveryoneRecipient {})) });
        let bytes = SendMessageRequest {
            request_id: "an id".to_owned(),
            to,
            body: "b".repeat(300),
            in_reply_to: u64::MAX,
        }
        .encode_to_vec();
        for (path, found) in [
            (&[1][..], true),
            (&[4], true),
            (&[5], false),
            (&[2, 4], true),
            (&[2, 1], false),
            (&[], true),
        ] {
            assert_eq!(has_field(&bytes, path), found, "{path:?}");
        }
        let unset = SendMessageRequest::default().encode_to_vec();
        assert!(!has_field(&unset, &[4]) && has_field(&unset, &[]));
        for cut in 0..bytes.len() {
            let _ = has_field(&bytes[..cut], &[9]);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_was_lost_with_its_connection_ends() {
        let program = Program { name: "test", version: "0" };
        let handshake = Handshake::new(program, ADDITIONS);
        let dir = tempfile::tempdir().expect("a directory");
        let lazy = crate::connect::connect_lazy(&dir.path().join("hive.sock")).expect("a path");
        let channel = Channel::new(lazy, handshake);
        // As a handshake that is never answered: all calls of the channel wait for it.
        let handshake = channel.handshake.clone().expect("one");
        let _lost = handshake.broker.lock().await;
        let mut calls = ServerInfoServiceClient::new(channel);
        let began = tokio::time::Instant::now();
        let ended = calls.get_server_info(GetServerInfoRequest::default()).await;
        let status = ended.expect_err("there is no connection");
        assert!(crate::status::is_transient(&status), "{status:?}");
        assert_eq!((status.message(), began.elapsed().as_secs()), (GONE, 10));
    }

    /// Returns whether the contract has an addition, and its revision is later than the first.
    fn is_right(addition: &Addition, newest: u32) -> bool {
        let set = FileDescriptorSet::decode(crate::FILE_DESCRIPTOR_SET).expect("descriptors");
        let mut rpcs = set.file.iter().flat_map(|file| &file.service).flat_map(|service| {
            service
                .method
                .iter()
                .map(move |rpc| (format!("/hive.v1.{}/{}", service.name(), rpc.name()), rpc))
        });
        let Some((_, rpc)) = rpcs.find(|(path, _)| path == addition.rpc) else { return false };
        let message = |name: &str| -> Option<&DescriptorProto> {
            let name = name.rsplit('.').next()?;
            let mut messages = set.file.iter().flat_map(|file| &file.message_type);
            messages.find(|message| message.name() == name)
        };
        let mut place = message(rpc.input_type());
        for number in addition.field {
            let fields = place.map(|place| &place.field[..]).unwrap_or_default();
            let field = fields.iter().find(|field| u32::try_from(field.number()) == Ok(*number));
            let Some(field) = field else { return false };
            place = message(field.type_name());
        }
        // Fields are looked up in a single request.
        let is_single = addition.field.is_empty() || !rpc.client_streaming();
        is_single && (2..=newest).contains(&addition.revision)
    }

    #[test]
    fn additions_are_parts_of_the_contract() {
        let wrong: Vec<&Addition> =
            ADDITIONS.iter().filter(|addition| !is_right(addition, REVISION)).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        let addition =
            |revision, rpc, field| Addition { revision, rpc, field, name: "as an example" };
        let send = "/hive.v1.MessageService/SendMessage";
        for (addition, right) in [
            (addition(2, send, &[]), true),
            (addition(2, send, &[2, 4]), true),
            (addition(1, send, &[4]), false),
            (addition(3, send, &[4]), false),
            (addition(2, send, &[2, 400]), false),
            (addition(2, "/hive.v1.MessageService/Send", &[]), false),
            (addition(2, "/hive.v1.AdminService/Login", &[1]), false),
        ] {
            assert_eq!(is_right(&addition, 2), right, "{addition:?}");
        }
    }
}
