//! Typed calls on any socket, and what they are asked with.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::*;
use hive_tests::rig::{fresh_id, raw, soon, to};
use prost::Message;
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

/// Calls an RPC, named as `MessageService/SendMessage`.
pub(crate) async fn call<A: Message + Default>(
    channel: &Channel,
    rpc: &str,
    request: &impl Message,
) -> Result<A, Status> {
    let path = format!("/hive.v1.{rpc}");
    let answer = raw::call(channel, &path, MetadataMap::new(), request.encode_to_vec());
    Ok(soon(&format!("{rpc} answers"), answer).await?.decode())
}

/// Calls it and insists.
pub(crate) async fn done<A: Message + Default>(
    channel: &Channel,
    rpc: &str,
    request: &impl Message,
) -> A {
    call(channel, rpc, request).await.unwrap_or_else(|refusal| panic!("{rpc}: {refusal:?}"))
}

/// Calls it and asserts that it is refused for this reason.
pub(crate) async fn refused(
    channel: &Channel,
    rpc: &str,
    request: &impl Message,
    reason: Reason,
) -> Status {
    let path = format!("/hive.v1.{rpc}");
    let answer = raw::call(channel, &path, MetadataMap::new(), request.encode_to_vec());
    let refusal = soon(&format!("{rpc} answers"), answer).await.map(drop).expect_err(rpc);
    assert_eq!(status::reason(&refusal), Some(reason), "{rpc}: {refusal:?}");
    assert_eq!(refusal.code(), status::code(reason), "{rpc}");
    refusal
}

pub(crate) fn send(recipient: &str, body: &str) -> SendMessageRequest {
    SendMessageRequest {
        request_id: fresh_id(),
        to: to(recipient),
        body: body.to_owned(),
        in_reply_to: 0,
    }
}

pub(crate) fn ask(target: &str, text: &str) -> AskQuestionRequest {
    AskQuestionRequest {
        request_id: fresh_id(),
        to: to(target),
        text: text.to_owned(),
        ..AskQuestionRequest::default()
    }
}

pub(crate) fn answer(question_id: u64, text: &str) -> AnswerQuestionRequest {
    AnswerQuestionRequest {
        request_id: fresh_id(),
        question_id,
        choices: Vec::new(),
        text: text.to_owned(),
    }
}

pub(crate) fn withdraw(question_id: u64) -> CancelQuestionRequest {
    CancelQuestionRequest { request_id: fresh_id(), question_id }
}

pub(crate) fn remind(body: &str) -> CreateReminderRequest {
    let due = Some(Due::Delay(prost_types::Duration { seconds: 3600, nanos: 0 }));
    CreateReminderRequest { request_id: fresh_id(), body: body.to_owned(), due }
}

pub(crate) fn loose_ends(agent: &str) -> ListLooseEndsRequest {
    ListLooseEndsRequest { agent: agent.to_owned(), ..ListLooseEndsRequest::default() }
}

/// A change of these fields of an agent's policy; of all where none is named.
pub(crate) fn set_policy(name: &str, fields: &[&str], policy: Policy) -> SetPolicyRequest {
    let paths = fields.iter().map(|field| (*field).to_owned()).collect();
    let update_mask = Some(prost_types::FieldMask { paths });
    SetPolicyRequest {
        request_id: fresh_id(),
        name: name.to_owned(),
        policy: Some(policy),
        update_mask,
    }
}

/// Names in a field of a policy.
pub(crate) fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Asks, and gives the question's id.
pub(crate) async fn asked(channel: &Channel, target: &str, text: &str) -> u64 {
    let asked: AskQuestionResponse =
        done(channel, "QuestionService/AskQuestion", &ask(target, text)).await;
    asked.question.expect("a question").id
}

/// Sets a reminder, and gives its id.
pub(crate) async fn reminded(channel: &Channel, body: &str) -> u64 {
    let set: CreateReminderResponse =
        done(channel, "ReminderService/CreateReminder", &remind(body)).await;
    set.reminder.expect("a reminder").id
}
