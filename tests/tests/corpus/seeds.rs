//! Inputs for requests, made from the contract: each message with every field set to something that
//! is plausible for its name.
//!
//! What it is not: mutation. Invariant: what is made here can be decoded as the message it was made
//! for.

use std::collections::BTreeMap;

use hive_fuzz::requests::TABLE;
use hive_proto::convert::page::{List, Place, Token};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, FieldDescriptorProto};

use crate::contract;

/// Maximum depth to which messages in messages are filled.
const DEPTH_MAX: usize = 3;
/// The nouns that follow the requests in the order in which a first byte names them.
const NOUNS: [&str; 10] = [
    "Message", "Delivery", "Turn", "Question", "Reminder", "Event", "LooseEnd", "Command", "Agent",
    "Park",
];

/// The inputs by their file names.
pub(crate) fn requests() -> BTreeMap<String, Vec<u8>> {
    let mut types = BTreeMap::new();
    for file in contract::compiled().file {
        let package = file.package.clone().unwrap_or_default();
        for message in file.message_type {
            let name = format!(".{package}.{}", message.name());
            // Entries of maps.
            for nested in &message.nested_type {
                types.insert(format!("{name}.{}", nested.name()), nested.clone());
            }
            types.insert(name, message);
        }
    }
    let mut inputs = BTreeMap::new();
    for (place, entry) in TABLE.iter().enumerate() {
        let (service, method) = entry.rpc.rsplit_once('/').expect("a service and a method");
        let (package, service) = service.rsplit_once('.').expect("a package and a service");
        let bytes = filled(&types, &format!(".{package}.{}", entry.request), DEPTH_MAX);
        inputs.insert(format!("{service}.{method}"), with_first(place, bytes));
    }
    for (place, noun) in NOUNS.iter().enumerate() {
        inputs.insert(
            format!("noun.{noun}"),
            with_first(TABLE.len() + place, filled(&types, &format!(".hive.v1.{noun}"), DEPTH_MAX)),
        );
    }
    inputs
}

fn with_first(place: usize, mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.insert(0, u8::try_from(place).expect("fewer than 256 RPCs and nouns"));
    bytes
}

fn filled(types: &BTreeMap<String, DescriptorProto>, name: &str, depth: usize) -> Vec<u8> {
    let message = types.get(name).unwrap_or_else(|| panic!("no message {name}"));
    let mut bytes = Vec::new();
    for field in &message.field {
        if let Some(value) = value(types, field, depth) {
            let times = if field.label() == Label::Repeated { 2 } else { 1 };
            for _ in 0..times {
                bytes.extend(&value);
            }
        }
    }
    bytes
}

/// Returns a field with its tag; `None` for a message that is nested too deep.
fn value(
    types: &BTreeMap<String, DescriptorProto>,
    field: &FieldDescriptorProto,
    depth: usize,
) -> Option<Vec<u8>> {
    let number = u64::try_from(field.number()).expect("fields are numbered from 1");
    let (wire, value) = match field.r#type() {
        Type::String => (2, sized(text(field.name()).as_bytes())),
        Type::Bytes => (2, sized(b"\x1b[2Jbytes")),
        Type::Message if depth > 0 => (2, sized(&filled(types, field.type_name(), depth - 1))),
        Type::Message => return None,
        Type::Enum => (0, varint(1)),
        Type::Bool => (0, varint(1)),
        Type::Int32 | Type::Int64 | Type::Uint32 | Type::Uint64 => (0, varint(7)),
        Type::Double
        | Type::Float
        | Type::Fixed64
        | Type::Fixed32
        | Type::Sfixed32
        | Type::Sfixed64
        | Type::Sint32
        | Type::Sint64
        | Type::Group => panic!("the contract has no field of this type: {field:?}"),
    };
    let mut bytes = varint(number << 3 | wire);
    bytes.extend(value);
    Some(bytes)
}

fn text(name: &str) -> String {
    match name {
        "page_token" => {
            Token::new(List::new("List", &()), Place { first: 12, ..Place::default() }).encode()
        }
        "process_token" | "lease_token" => "0123456789abcdef".to_owned(),
        "agent" | "name" | "parent" | "target" | "recipients" | "allowed_recipients" => {
            "bob".to_owned()
        }
        "paths" => "tool_groups".to_owned(),
        _ => name.chars().take(8).collect(),
    }
}

fn sized(bytes: &[u8]) -> Vec<u8> {
    let mut sized = varint(u64::try_from(bytes.len()).expect("a length"));
    sized.extend(bytes);
    sized
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    bytes.push(number.to_le_bytes()[0]);
    bytes
}
