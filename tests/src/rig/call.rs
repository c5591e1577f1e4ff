//! Calls of any RPC on any channel, for which the type of the request is enough.
//!
//! What it is not: typed on the way back; the test names the answer. Invariant: each RPC has a
//! request type of its own, as the tidy test of the contract checks.

use std::any::type_name;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use hive_core::reason::Reason;
use hive_proto::{FILE_DESCRIPTOR_SET, SESSION_TOKEN_KEY, status};
use prost::Message;
use prost_types::FileDescriptorSet;
use tonic::Status;
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::transport::Channel;

use super::raw::{self, Answer};
use super::soon;

/// The path of each RPC, by the name of its request.
static PATHS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let set = FileDescriptorSet::decode(FILE_DESCRIPTOR_SET).expect("the committed descriptor");
    let mut paths = BTreeMap::new();
    for service in set.file.iter().flat_map(|file| &file.service) {
        for method in &service.method {
            let request = method.input_type().rsplit('.').next().unwrap_or_default();
            let path = format!("/hive.v1.{}/{}", service.name(), method.name());
            paths.insert(request.to_owned(), path);
        }
    }
    paths
});

/// Returns the path of the RPC that takes this type of request.
pub fn path<R>() -> &'static str {
    let name = type_name::<R>().rsplit("::").next().unwrap_or_default();
    PATHS.get(name).unwrap_or_else(|| panic!("no RPC takes {name}"))
}

/// A request, with the metadata that it carries.
pub trait Carried {
    /// The type of the request itself.
    type Message: Message;

    fn metadata(&self) -> MetadataMap {
        MetadataMap::new()
    }

    fn message(&self) -> &Self::Message;
}

impl<R: Message> Carried for R {
    type Message = R;

    fn message(&self) -> &R {
        self
    }
}

/// A request in a session.
#[derive(Debug)]
pub struct InSession<R> {
    message: R,
    token: String,
}

/// A request in the session of this token.
pub fn in_session<R>(message: R, token: &str) -> InSession<R> {
    InSession { message, token: token.to_owned() }
}

impl<R: Message> Carried for InSession<R> {
    type Message = R;

    fn metadata(&self) -> MetadataMap {
        session(&self.token)
    }

    fn message(&self) -> &R {
        &self.message
    }
}

/// The metadata of a call in the session of this token; none for a text that metadata cannot have.
pub fn session(token: &str) -> MetadataMap {
    let mut metadata = MetadataMap::new();
    if let Ok(value) = MetadataValue::try_from(token.as_bytes()) {
        metadata.insert(SESSION_TOKEN_KEY, value);
    }
    metadata
}

/// Calls the RPC that takes this request.
pub async fn call<R: Carried>(channel: &Channel, request: &R) -> Result<Answer, Status> {
    call_with(channel, request.metadata(), request.message()).await
}

/// Calls with this metadata.
pub async fn call_with<R: Message>(
    channel: &Channel,
    metadata: MetadataMap,
    request: &R,
) -> Result<Answer, Status> {
    let answer = raw::call(channel, path::<R>(), metadata, request.encode_to_vec());
    soon(&format!("{} answers", path::<R>()), answer).await
}

/// Calls the RPC of this type of request with bytes.
pub async fn call_bytes<R>(channel: &Channel, bytes: Vec<u8>) -> Result<Answer, Status> {
    let answer = raw::call(channel, path::<R>(), MetadataMap::new(), bytes);
    soon(&format!("{} answers", path::<R>()), answer).await
}

/// Calls, asserts that it succeeds, and returns the answer.
pub async fn done<A: Message + Default>(channel: &Channel, request: &impl Carried) -> A {
    succeeded(channel, request).await.decode()
}

/// Calls and asserts that it succeeds with any answer.
pub async fn did(channel: &Channel, request: &impl Carried) {
    drop(succeeded(channel, request).await);
}

async fn succeeded<R: Carried>(channel: &Channel, request: &R) -> Answer {
    let answer = call(channel, request).await;
    answer.unwrap_or_else(|refusal| panic!("{}: {refusal:?}", path::<R::Message>()))
}

/// Calls and asserts that it is refused for this reason, with its code.
pub async fn refused<R: Carried>(channel: &Channel, request: &R, reason: Reason) -> Status {
    let rpc = path::<R::Message>();
    let refusal = call(channel, request).await.map(drop).expect_err(rpc);
    assert_eq!(status::reason(&refusal), Some(reason), "{rpc}: {refusal:?}");
    assert_eq!(refusal.code(), status::code(reason), "{rpc}");
    refusal
}
