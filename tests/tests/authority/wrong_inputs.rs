//! Wrong input: every RPC, on every socket that serves it, with each field wrong in each way that
//! its type allows. What a call ends with is among the reasons that the comment of the RPC lists.
//!
//! The descriptors drive it, so a new RPC and a new field are tried without a line here. Each case
//! is a request that its owner may send, changed in one field.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::{FILE_DESCRIPTOR_SET, status};
use hive_tests::rig::fresh_id;
use prost::Message as _;
use protox::prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, ReflectMessage as _,
    Value,
};
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::authority_table::{Row, TABLE};
use crate::listed::{self, ANY_CALL};
use crate::requests;
use crate::scene::{Scene, send};

/// A call that waits for something longer than this was accepted.
const PATIENCE: Duration = Duration::from_secs(2);
/// Calls at once, so that the pause after each refusal is not waited for one by one.
const AT_ONCE: usize = 12;
/// Messages within messages that are changed, too.
const DEPTH_MAX: usize = 3;

/// One wrong request.
struct Case {
    /// The changed field, and how.
    what: String,
    bytes: Vec<u8>,
}

fn texts() -> Vec<Value> {
    ["", " ", "\u{0}", "no-such-thing", "No Such", "operator", "*", "ada", "1"]
        .map(|text| Value::String(text.to_owned()))
        .into()
}

/// Returns the values of a field, wrong ones and unusual ones, without a list's own.
fn values(field: &FieldDescriptor) -> Vec<Value> {
    match field.kind() {
        Kind::String => texts(),
        Kind::Bytes => vec![Value::Bytes(vec![0xff; 300].into())],
        Kind::Bool => vec![Value::Bool(true), Value::Bool(false)],
        Kind::Uint64 | Kind::Fixed64 => [0, 1, 1 << 52, u64::MAX].map(Value::U64).into(),
        Kind::Uint32 | Kind::Fixed32 => [0, 1, 1_000_000, u32::MAX].map(Value::U32).into(),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => {
            [0, -1, i64::MIN, i64::MAX].map(Value::I64).into()
        }
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => {
            [0, -1, i32::MIN, i32::MAX].map(Value::I32).into()
        }
        Kind::Double => [f64::NAN, -1.0].map(Value::F64).into(),
        Kind::Float => [f32::NAN, -1.0].map(Value::F32).into(),
        Kind::Enum(list) => {
            let known = list.values().map(|value| value.number());
            known.chain([-1, 99]).map(Value::EnumNumber).collect()
        }
        Kind::Message(kind) => messages(&kind),
    }
}

/// Returns empty messages, and spans and instants out of range.
fn messages(kind: &MessageDescriptor) -> Vec<Value> {
    let mut found = vec![DynamicMessage::new(kind.clone())];
    if kind.full_name().starts_with("google.protobuf.") && kind.get_field_by_name("nanos").is_some()
    {
        for (seconds, nanos) in [(-1, 0), (0, -1), (0, 1), (1, 0), (i64::MAX, 0), (1, i32::MAX)] {
            let mut message = DynamicMessage::new(kind.clone());
            message.set_field_by_name("seconds", Value::I64(seconds));
            message.set_field_by_name("nanos", Value::I32(nanos));
            found.push(message);
        }
    }
    found.into_iter().map(Value::Message).collect()
}

/// Returns the message with each of its fields changed in each way.
fn changed(base: &DynamicMessage, depth: usize) -> Vec<(String, DynamicMessage)> {
    let mut found = Vec::new();
    for field in base.descriptor().fields() {
        let mut add = |what: String, value: Option<Value>| {
            let mut message = base.clone();
            match value {
                Some(value) => message.set_field(&field, value),
                None => message.clear_field(&field),
            }
            found.push((what, message));
        };
        let name = field.name().to_owned();
        add(format!("{name} unset"), None);
        for value in values(&field) {
            let shown: String = format!("{value:?}").chars().take(60).collect();
            if field.is_list() {
                let many = Value::List(vec![value.clone(); 300]);
                add(format!("{name} of 300 {shown}"), Some(many));
                add(format!("{name} of one {shown}"), Some(Value::List(vec![value])));
            } else {
                add(format!("{name} = {shown}"), Some(value));
            }
        }
        let inner: Option<DynamicMessage> = if depth == DEPTH_MAX {
            None
        } else {
            let value = base.get_field(&field);
            let first = value.as_list().and_then(|list| list.first());
            first.unwrap_or(value.as_ref()).as_message().cloned()
        };
        for (what, message) in inner.iter().flat_map(|inner| changed(inner, depth + 1)) {
            let value = Value::Message(message);
            let value = if field.is_list() { Value::List(vec![value]) } else { value };
            add(format!("{name}.{what}"), Some(value));
        }
    }
    found
}

/// Gives a request an id of its own; otherwise all but one would end with REQUEST_ID_REUSED.
fn with_fresh_id(mut message: DynamicMessage) -> DynamicMessage {
    if message.descriptor().get_field_by_name("request_id").is_some() {
        message.set_field_by_name("request_id", Value::String(fresh_id()));
    }
    message
}

fn cases(base: &DynamicMessage) -> Vec<Case> {
    let case = |what: &str, message: &DynamicMessage| Case {
        what: what.to_owned(),
        bytes: message.encode_to_vec(),
    };
    let mut cases: Vec<Case> = changed(base, 0)
        .into_iter()
        .map(|(what, message)| {
            let own_id = what.starts_with("request_id");
            case(&what, &if own_id { message } else { with_fresh_id(message) })
        })
        .collect();
    // The right request: again with its id, with its id for other content, and when it is done.
    cases.push(case("nothing", base));
    cases.push(case("again", base));
    if let Some((what, other)) = changed(base, 0).into_iter().next_back() {
        cases.push(case(&format!("another request with its id: {what}"), &other));
    }
    cases.push(case("once more", &with_fresh_id(base.clone())));
    cases
}

/// Returns the fault of an answer, if there is one.
fn fault(row: &Row, socket: &str, refusal: &Status, listed: &BTreeSet<Reason>) -> Option<String> {
    let Some(reason) = status::reason(refusal) else {
        // A stream that ended, or a call that waited until its deadline.
        let ended = matches!(refusal.code(), Code::DeadlineExceeded);
        return (!ended).then(|| format!("no reason: {refusal:?}"));
    };
    if refusal.code() != status::code(reason) {
        return Some(format!("{reason} with the code {:?}", refusal.code()));
    }
    if reason == Reason::Internal {
        return Some(format!("a fault of the broker: {refusal:?}"));
    }
    let metadata = status::metadata(refusal);
    let possible_in_any = if reason == Reason::AgentRetired {
        metadata.get("agent").is_some_and(|agent| agent == socket)
    } else if reason == Reason::BodyTooLarge {
        !metadata.contains_key("field")
    } else {
        ANY_CALL.contains(&reason)
    };
    let possible = possible_in_any || listed.contains(&reason);
    (!possible)
        .then(|| format!("{reason} ({}), which {} does not list", refusal.message(), row.method))
}

/// Tries every wrong request of one RPC on every socket that serves it.
async fn tried(row: &'static Row, pool: &DescriptorPool, listed: &BTreeSet<Reason>) -> Vec<String> {
    let scene = Scene::set().await;
    let things = scene.owner(row);
    let service = pool.get_service_by_name(&format!("hive.v1.{}", row.service)).expect("a service");
    let method = service.methods().find(|method| method.name() == row.method).expect("a method");
    let mut faults = BTreeSet::new();
    let agents = [things.agent.as_str(), "ada"].into_iter().filter(|_| row.agent);
    for socket in agents.chain(["operator"].into_iter().filter(|_| row.operator)) {
        let base = requests::of(row, things);
        let base = DynamicMessage::decode(method.input(), base.as_slice()).expect("a request");
        // Another agent has no tokens; the operator needs none.
        let own = (things.session.as_str(), things.process.as_str());
        let shown = if socket == things.agent { own } else { ("", "") };
        let mut open: VecDeque<_> = cases(&base).into_iter().map(|case| (case, shown)).collect();
        let forged = "no-such-token-anywhere";
        for tokens in [own, (forged, own.1), (own.0, forged), (forged, forged), ("", "")] {
            let bytes = with_fresh_id(base.clone()).encode_to_vec();
            open.push_back((Case { what: format!("tokens {tokens:?}"), bytes }, tokens));
        }
        let mut calls = JoinSet::new();
        loop {
            while calls.len() < AT_ONCE
                && let Some((Case { what, bytes }, (session, process))) = open.pop_front()
            {
                let (channel, session, process) =
                    (scene.channel(socket), session.to_owned(), process.to_owned());
                calls.spawn(async move {
                    let call = send(channel, row, bytes, &session, &process);
                    let answer = tokio::time::timeout(PATIENCE, call).await;
                    (what, answer.map_or(Ok(()), |answer| answer.map(drop)))
                });
            }
            let Some(called) = calls.join_next().await else { break };
            let (what, answer) = called.expect("a call does not panic");
            if let Err(refusal) = answer
                && let Some(fault) = fault(row, socket, &refusal, listed)
            {
                faults
                    .insert(format!("{}.{} of {socket}: {what}: {fault}", row.service, row.method));
            }
        }
    }
    faults.into_iter().collect()
}

/// Returns the reasons that each RPC lists, by `Service.Method`.
fn listed_by_rpc() -> BTreeMap<String, BTreeSet<Reason>> {
    let mut found = BTreeMap::new();
    for file in listed::compiled() {
        for (s, service) in file.service.iter().enumerate() {
            for (m, method) in service.method.iter().enumerate() {
                let path = [6, listed::at(s), 2, listed::at(m)];
                let comment = listed::comment(&file, &path);
                let words = listed::words(&comment).expect("the tidy test checks it");
                let reasons = words.into_iter().filter_map(Reason::parse).collect();
                found.insert(format!("{}.{}", service.name(), method.name()), reasons);
            }
        }
    }
    found
}

/// Tries the RPCs of which the place in the table leaves this rest; the tests run beside each
/// other.
async fn try_part(part: usize) {
    let pool = DescriptorPool::decode(FILE_DESCRIPTOR_SET).expect("descriptors");
    let comments: BTreeMap<String, BTreeSet<Reason>> = listed_by_rpc();
    let mut faults = Vec::new();
    // A drain has no field that could be wrong, and ends the broker.
    let rows = TABLE.iter().filter(|row| row.method != "Drain");
    for (_, row) in rows.enumerate().filter(|(place, _)| place % PARTS == part) {
        let listed = &comments[&format!("{}.{}", row.service, row.method)];
        faults.extend(tried(row, &pool, listed).await);
    }
    assert!(faults.is_empty(), "{} answers:\n{}", faults.len(), faults.join("\n"));
}

const PARTS: usize = 4;

#[tokio::test]
async fn a_wrong_request_ends_with_a_listed_reason_in_the_first_quarter() {
    try_part(0).await;
}

#[tokio::test]
async fn a_wrong_request_ends_with_a_listed_reason_in_the_second_quarter() {
    try_part(1).await;
}

#[tokio::test]
async fn a_wrong_request_ends_with_a_listed_reason_in_the_third_quarter() {
    try_part(2).await;
}

#[tokio::test]
async fn a_wrong_request_ends_with_a_listed_reason_in_the_last_quarter() {
    try_part(3).await;
}
