//! Rules for the contract: no sender in any request, a row in the authority table
//! for each RPC, a sentence on everything, the reasons of each RPC, and the words of the glossary.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::reason::Reason;
use hive_proto::SESSION_TOKEN_KEY;
use prost_types::{DescriptorProto, FieldDescriptorProto, FileDescriptorProto};

use crate::authority_table::{AGENT_ONLY, OPERATOR_ONLY, Proof, Row, TABLE};
use crate::listed::{ANY_CALL, at, comment, compiled, words};
use crate::tree::none;

/// Fields in which a caller could say who it is. The socket says it.
const SENDERS: [&str; 22] = [
    "acting_as",
    "actor",
    "agent_from",
    "as",
    "as_agent",
    "author",
    "caller",
    "caller_name",
    "from",
    "from_agent",
    "identity",
    "me",
    "on_behalf_of",
    "origin",
    "owner",
    "peer",
    "principal",
    "self",
    "sender",
    "sender_name",
    "source",
    "uid",
];

/// Words for which the glossary has another one.
const SYNONYMS: [(&str, &str); 14] = [
    ("dlq", "dead letter"),
    ("generation", "session epoch"),
    ("idempotency", "request id"),
    ("job", "turn"),
    ("mailbox", "inbox"),
    ("mail_id", "message id"),
    ("msg", "message"),
    ("nak", "nack"),
    ("notification", "event or wake"),
    ("queue", "inbox"),
    ("replay", "redelivery or redrive"),
    ("requeue", "nack"),
    ("retries", "attempts"),
    ("visibility_timeout", "lease"),
];

struct Rpc {
    service: String,
    service_comment: String,
    method: String,
    comment: String,
    request: String,
    response: String,
}

impl Rpc {
    fn name(&self) -> String {
        format!("{}.{}", self.service, self.method)
    }

    fn row(&self) -> Option<&'static Row> {
        TABLE.iter().find(|row| row.service == self.service && row.method == self.method)
    }
}

fn rpcs(files: &[FileDescriptorProto]) -> Vec<Rpc> {
    let mut rpcs = Vec::new();
    for file in files {
        for (s, service) in file.service.iter().enumerate() {
            for (m, method) in service.method.iter().enumerate() {
                rpcs.push(Rpc {
                    service: service.name().to_owned(),
                    service_comment: comment(file, &[6, at(s)]),
                    method: method.name().to_owned(),
                    comment: comment(file, &[6, at(s), 2, at(m)]),
                    request: method.input_type().to_owned(),
                    response: method.output_type().to_owned(),
                });
            }
        }
    }
    assert!(rpcs.len() > 30, "the contract was not read");
    rpcs
}

/// Every message by its full name.
fn messages(files: &[FileDescriptorProto]) -> BTreeMap<String, &DescriptorProto> {
    fn add<'a>(
        prefix: &str,
        message: &'a DescriptorProto,
        all: &mut BTreeMap<String, &'a DescriptorProto>,
    ) {
        let name = format!("{prefix}.{}", message.name());
        for nested in &message.nested_type {
            add(&name, nested, all);
        }
        all.insert(name, message);
    }
    let mut all = BTreeMap::new();
    for file in files {
        for message in &file.message_type {
            add(&format!(".{}", file.package()), message, &mut all);
        }
    }
    all
}

/// Every field that a request can carry, at any depth, each with its path from the request.
fn fields_of<'a>(
    request: &str,
    messages: &BTreeMap<String, &'a DescriptorProto>,
) -> Vec<(String, &'a FieldDescriptorProto)> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let mut open = vec![(request.to_owned(), String::new())];
    while let Some((name, path)) = open.pop() {
        let Some(message) = messages.get(&name) else { continue };
        if !seen.insert(name) {
            continue;
        }
        for field in &message.field {
            let path = format!("{path}.{}", field.name());
            if !field.type_name().is_empty() {
                open.push((field.type_name().to_owned(), path.clone()));
            }
            found.push((path, field));
        }
    }
    found
}

/// Returns the reasons that an RPC lists.
fn reasons(rpc: &Rpc) -> Result<Vec<&str>, String> {
    words(&rpc.comment).map_err(|fault| format!("{}: {fault}", rpc.name()))
}

#[test]
fn no_request_names_its_sender() {
    let files = compiled();
    let messages = messages(&files);
    let mut findings = Vec::new();
    for rpc in rpcs(&files) {
        for (path, field) in fields_of(&rpc.request, &messages) {
            if SENDERS.contains(&field.name()) {
                findings.push(format!(
                    "{}: {}{path}",
                    rpc.name(),
                    rpc.request.trim_start_matches(".hive.v1.")
                ));
            }
        }
    }
    none("identity is the socket", &findings);
}

/// Calls that need no session token, but allow more with one than with the socket alone.
const SESSION_IS_OPTIONAL: [&str; 1] = ["WakeService.Wake"];

#[test]
fn the_table_says_what_the_contract_says() {
    let files = compiled();
    let messages = messages(&files);
    let mut findings = Vec::new();
    for rpc in rpcs(&files) {
        let row = rpc.row().expect("each RPC has a row; a test of the broker checks it");
        let said = sockets(&rpc.service_comment);
        if said != (row.agent, row.operator) {
            findings.push(format!(
                "{}: the service's comment and the table name different sockets",
                rpc.name()
            ));
        }
        if OPERATOR_ONLY.contains(&row.service) == row.agent {
            findings.push(format!("{}: OPERATOR_ONLY and the table disagree", rpc.name()));
        }
        if AGENT_ONLY.contains(&row.service) == row.operator {
            findings.push(format!("{}: AGENT_ONLY and the table disagree", rpc.name()));
        }
        let fields = fields_of(&rpc.request, &messages);
        let has = |name: &str| fields.iter().any(|(_, field)| field.name() == name);
        if has("session_token") {
            findings.push(format!("{}: a session is proven by metadata", rpc.name()));
        }
        let all = rpc.service_comment.contains(SESSION_TOKEN_KEY)
            && !rpc.service_comment.contains(&format!("but {}", rpc.method));
        let takes = all || rpc.comment.contains(SESSION_TOKEN_KEY);
        let is_optional = SESSION_IS_OPTIONAL.contains(&rpc.name().as_str());
        if takes != (row.proof == Proof::Session || is_optional) {
            findings.push(format!(
                "{}: only one of the comments and the table has a session",
                rpc.name()
            ));
        }
        if has("request_id") && !row.mutates {
            findings.push(format!("{}: has a request id, so it changes something", rpc.name()));
        }
    }
    none("the authority table and the contract agree", &findings);
}

/// Returns whether, by its comment, a service is on agent sockets, and whether it is on the
/// operator socket.
fn sockets(comment: &str) -> (bool, bool) {
    let comment = comment.to_lowercase();
    let agent =
        comment.contains("on agent and operator sockets") || comment.contains("on agent sockets");
    let operator = comment.contains("on agent and operator sockets")
        || comment.contains("on the operator socket");
    (agent, operator)
}

#[test]
fn the_zero_of_an_enum_means_nothing() {
    let mut findings = Vec::new();
    for file in &compiled() {
        for (e, list) in file.enum_type.iter().enumerate() {
            let zero = list.value.iter().position(|value| value.number() == 0);
            let said = zero.map(|value| comment(file, &[5, at(e), 2, at(value)]));
            if !said.is_some_and(|said| said.starts_with("Never sent")) {
                findings.push(format!("{}: its zero has a meaning", list.name()));
            }
        }
        for (m, message) in file.message_type.iter().enumerate() {
            for (f, field) in message.field.iter().enumerate() {
                if comment(file, &[4, at(m), 2, at(f)]).contains("UNSPECIFIED") {
                    let (message, field) = (message.name(), field.name());
                    findings.push(format!("{message}.{field}: UNSPECIFIED has a meaning in it"));
                }
            }
        }
    }
    none("a value that may be missing is in an optional field", &findings);
}

#[test]
fn every_rpc_lists_its_reasons() {
    let files = compiled();
    let messages = messages(&files);
    let mut findings = Vec::new();
    let mut named = BTreeSet::new();
    for rpc in rpcs(&files) {
        let listed = match reasons(&rpc) {
            Ok(listed) => listed,
            Err(finding) => {
                findings.push(finding);
                continue;
            }
        };
        for word in &listed {
            match Reason::parse(word) {
                Some(reason) => drop(named.insert(reason)),
                None => findings.push(format!("{}: {word} is no reason", rpc.name())),
            }
        }
        let fields =
            messages.get(&rpc.request).map(|message| message.field.as_slice()).unwrap_or_default();
        if fields.iter().any(|field| field.name() == "request_id") {
            for needed in [Reason::RequestIdReused, Reason::Draining, Reason::StorageUnavailable] {
                if !listed.contains(&needed.as_str()) {
                    findings.push(format!(
                        "{}: has a request id, so it can end with {needed}",
                        rpc.name()
                    ));
                }
            }
        }
    }
    for reason in
        Reason::ALL.iter().filter(|reason| !ANY_CALL.contains(reason) && !named.contains(reason))
    {
        findings.push(format!("{reason}: no RPC lists it"));
    }
    none("RPC comments list the reasons they can return", &findings);
}

#[test]
fn every_rpc_has_messages_of_its_own() {
    let files = compiled();
    let mut findings = Vec::new();
    for rpc in rpcs(&files) {
        let own = |kind: &str| format!(".hive.v1.{}{kind}", rpc.method);
        if rpc.request != own("Request") || rpc.response != own("Response") {
            findings.push(rpc.name());
        }
    }
    none("every RPC has its own XRequest and XResponse", &findings);
}

#[test]
fn every_item_of_the_contract_has_a_comment() {
    let mut findings = Vec::new();
    for file in compiled() {
        let mut items: Vec<(Vec<i32>, String)> = Vec::new();
        for (m, message) in file.message_type.iter().enumerate() {
            message_items(vec![4, at(m)], message.name(), message, &mut items);
        }
        for (e, list) in file.enum_type.iter().enumerate() {
            items.push((vec![5, at(e)], list.name().to_owned()));
            let values = list.value.iter().enumerate();
            items.extend(
                values.map(|(v, value)| (vec![5, at(e), 2, at(v)], value.name().to_owned())),
            );
        }
        for (s, service) in file.service.iter().enumerate() {
            items.push((vec![6, at(s)], service.name().to_owned()));
            let methods = service.method.iter().enumerate();
            items.extend(
                methods.map(|(m, method)| (vec![6, at(s), 2, at(m)], method.name().to_owned())),
            );
        }
        for (path, name) in items {
            if comment(&file, &path).is_empty() {
                findings.push(format!("proto/{}: {name}", file.name()));
            }
        }
    }
    none("every service, RPC, message, field and value has a comment", &findings);
}

fn message_items(
    path: Vec<i32>,
    name: &str,
    message: &DescriptorProto,
    items: &mut Vec<(Vec<i32>, String)>,
) {
    let below = |kind: i32, index: usize| [path.as_slice(), &[kind, at(index)]].concat();
    for (f, field) in message.field.iter().enumerate() {
        items.push((below(2, f), format!("{name}.{}", field.name())));
    }
    for (o, choice) in
        message.oneof_decl.iter().enumerate().filter(|(_, choice)| !choice.name().starts_with('_'))
    {
        items.push((below(8, o), format!("{name}.{}", choice.name())));
    }
    // The entry of a map is written by the compiler.
    let is_written = |nested: &&DescriptorProto| {
        !nested.options.as_ref().is_some_and(prost_types::MessageOptions::map_entry)
    };
    for (n, nested) in message.nested_type.iter().enumerate().filter(|(_, it)| is_written(it)) {
        message_items(below(3, n), &format!("{name}.{}", nested.name()), nested, items);
    }
    items.push((path, name.to_owned()));
}

#[test]
fn names_are_words_of_the_glossary() {
    let files = compiled();
    let mut names: Vec<String> = Vec::new();
    for (message, descriptor) in messages(&files) {
        names.push(snake(message.trim_start_matches(".hive.v1.")));
        names.extend(descriptor.field.iter().map(|field| field.name().to_owned()));
    }
    for file in &files {
        names.extend(
            file.enum_type
                .iter()
                .flat_map(|list| &list.value)
                .map(|value| value.name().to_lowercase()),
        );
        names.extend(
            file.service
                .iter()
                .flat_map(|service| &service.method)
                .map(|method| snake(method.name())),
        );
    }
    let mut findings = Vec::new();
    for name in &names {
        for (synonym, word) in SYNONYMS {
            if format!("_{name}_").contains(&format!("_{synonym}_")) {
                findings.push(format!("{name}: the word is `{word}`"));
            }
        }
    }
    none("one word per thing", &findings);
}

fn snake(name: &str) -> String {
    let mut snake = String::new();
    for c in name.chars() {
        if c.is_ascii_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.push(c.to_ascii_lowercase());
    }
    snake
}
