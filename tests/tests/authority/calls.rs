//! Typed calls on any socket, and their requests.

use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::*;
pub(crate) use hive_tests::rig::call::{call, did, done, in_session, refused};
pub(crate) use hive_tests::rig::request::{answer, ask, send, texts as names, withdraw};
use hive_tests::rig::{Rig, fresh_id, request};
use tonic::transport::Channel;

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

/// Returns channels of `ada`, `bob`, `cyd` and the operator.
pub(crate) async fn channels(rig: &Rig) -> [Channel; 4] {
    let agents = [rig.agent("ada").await, rig.agent("bob").await, rig.agent("cyd").await];
    let [ada, bob, cyd] = agents.map(|client| client.channel());
    [ada, bob, cyd, rig.operator().await.channel()]
}

/// Asks a question, and returns its id.
pub(crate) async fn asked(channel: &Channel, target: &str, text: &str) -> u64 {
    let asked: AskQuestionResponse = done(channel, &ask(target, text)).await;
    asked.question.expect("a question").id
}

/// Sets a reminder, and returns its id.
pub(crate) async fn reminded(channel: &Channel, body: &str) -> u64 {
    let set: CreateReminderResponse = done(channel, &remind(body)).await;
    set.reminder.expect("a reminder").id
}
