//! Typed calls on any socket, and their requests.

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::*;
pub(crate) use hive_tests::rig::request::{answer, ask, send, texts as names, withdraw};
use hive_tests::rig::{fresh_id, raw, request, soon};
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

/// Calls it and asserts that it succeeds.
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

pub(crate) fn remind(body: &str) -> CreateReminderRequest {
    let due = Due::Delay(prost_types::Duration { seconds: 3600, nanos: 0 });
    request::remind(body, due)
}

pub(crate) fn loose_ends(agent: &str) -> ListLooseEndsRequest {
    ListLooseEndsRequest { agent: agent.to_owned(), ..ListLooseEndsRequest::default() }
}

/// Returns a change of these fields of an agent's policy; of all if none is named.
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

/// Asks a question, and returns its id.
pub(crate) async fn asked(channel: &Channel, target: &str, text: &str) -> u64 {
    let asked: AskQuestionResponse =
        done(channel, "QuestionService/AskQuestion", &ask(target, text)).await;
    asked.question.expect("a question").id
}

/// Sets a reminder, and returns its id.
pub(crate) async fn reminded(channel: &Channel, body: &str) -> u64 {
    let set: CreateReminderResponse =
        done(channel, "ReminderService/CreateReminder", &remind(body)).await;
    set.reminder.expect("a reminder").id
}
