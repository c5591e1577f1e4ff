//! Messages of the contract in the JSON form of protobuf, for programs that know an RPC only at run
//! time: gateways and tests.

use std::sync::LazyLock;
use std::time::Duration;

use prost::Message;
use prost::bytes::Bytes;
use prost_reflect::{
    DescriptorPool, DeserializeOptions, DynamicMessage, MessageDescriptor, MethodDescriptor,
};
use prost_types::Duration as Span;
use serde_json::{Value, json};
use tonic::Code;

use crate::FILE_DESCRIPTOR_SET;
use crate::error::Error;
use crate::hive::Hive;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("the descriptors of this crate are valid")
});

impl Hive {
    /// Makes a call as [`Hive::call`] does, of an RPC with one request and one answer by its name,
    /// as in `MessageService/SendMessage`.
    pub async fn call_json(&self, name: &str, request: &Value) -> Result<Value, Error> {
        let rpc = method(name).ok_or_else(|| invalid(format!("the contract has no RPC {name}")))?;
        let mut request = parse(rpc.input(), request)?;
        if let Some(field) = rpc.input().get_field_by_name("request_id")
            && !request.has_field(&field)
        {
            request.set_field(&field, prost_reflect::Value::String(self.request_id()));
        }
        let wait = request.get_field_by_name("wait");
        let wait = wait.and_then(|wait| wait.as_message()?.transcode_to::<Span>().ok());
        let wait = wait.and_then(|wait| Duration::try_from(wait).ok()).unwrap_or_default();
        let path = format!("/hive.v1.{name}").parse().expect("the name of an RPC is a path");
        decode(rpc.output(), self.call_bytes(path, request.encode_to_vec().into(), wait).await?)
    }
}

/// Returns an RPC by its name, as in `MessageService/SendMessage`.
#[must_use]
pub fn method(name: &str) -> Option<MethodDescriptor> {
    let (service, rpc) = name.split_once('/')?;
    let service = POOL.get_service_by_name(&format!("hive.v1.{service}"))?;
    service.methods().find(|method| method.name() == rpc)
}

/// Encodes a message. A field that it does not have is an error, which is INVALID_ARGUMENT.
pub fn encode(message: MessageDescriptor, json: &Value) -> Result<Bytes, Error> {
    Ok(parse(message, json)?.encode_to_vec().into())
}

fn parse(message: MessageDescriptor, json: &Value) -> Result<DynamicMessage, Error> {
    let options = DeserializeOptions::new().deny_unknown_fields(true);
    let name = message.name().to_owned();
    DynamicMessage::deserialize_with_options(message, json, &options)
        .map_err(|error| invalid(format!("{json} is not a {name}: {error}")))
}

/// Decodes a message.
pub fn decode(message: MessageDescriptor, bytes: Bytes) -> Result<Value, Error> {
    let name = message.name().to_owned();
    let decoded = DynamicMessage::decode(message, bytes)
        .map_err(|error| invalid(format!("these bytes are not a {name}: {error}")))?;
    serde_json::to_value(decoded).map_err(|error| invalid(format!("{name}: {error}")))
}

/// Returns a generated message in JSON. The name is that of its type.
pub fn to_value(name: &str, value: &impl Message) -> Result<Value, Error> {
    decode(known(name)?, value.encode_to_vec().into())
}

/// Reads a generated message. The name is that of its type.
pub fn from_value<M: Message + Default>(name: &str, json: &Value) -> Result<M, Error> {
    let bytes = encode(known(name)?, json)?;
    M::decode(bytes).map_err(|error| invalid(format!("{name}: {error}")))
}

/// Returns an error in JSON: `code`, `reason`, `message`, `metadata`, `fields`, and `retryAfter` in
/// seconds if the broker gave one.
#[must_use]
pub fn error(error: &Error) -> Value {
    let fields = error.fields().iter();
    let fields = fields.map(|bad| json!({"field": bad.field, "description": bad.description}));
    let mut value = json!({
        "code": code_name(error.code()),
        "reason": error.reason(),
        "message": error.message(),
        "metadata": error.metadata(),
        "fields": fields.collect::<Vec<_>>(),
    });
    if let Some(delay) = error.retry_after() {
        value["retryAfter"] = json!(delay.as_secs_f64());
    }
    value
}

/// Returns the name of a gRPC code, as in `NOT_FOUND`.
#[must_use]
pub fn code_name(code: Code) -> String {
    let mut name = String::new();
    for (index, letter) in format!("{code:?}").char_indices() {
        if letter.is_uppercase() && index > 0 {
            name.push('_');
        }
        name.extend(letter.to_uppercase());
    }
    name
}

fn known(name: &str) -> Result<MessageDescriptor, Error> {
    let found = POOL.get_message_by_name(&format!("hive.v1.{name}"));
    found.ok_or_else(|| invalid(format!("the contract has no message {name}")))
}

fn invalid(sentence: String) -> Error {
    Error::local(Code::InvalidArgument, sentence)
}
