//! Short constructors for the steps of a scripted claude, and checks that journeys share.

use std::collections::BTreeMap;

use hive_proto::v1::event::Facts;
use hive_proto::v1::{DeliveryState, Event, EventKind, RedeliveryCause, Turn, TurnOutcome};
use hive_tests::rig::{Client, Rig, Watch};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::{Value, json};

/// For prompts with this text, these steps.
pub(crate) fn rule(when: &str, steps: Vec<Step>) -> Rule {
    Rule { when: when.to_owned(), steps }
}

pub(crate) fn tool(tool: &str, input: Value) -> Step {
    Step::Tool { tool: tool.to_owned(), input }
}

/// Answers the message that woke the turn, to whomever.
pub(crate) fn answer(to: &str, body: &str) -> Step {
    tool("send", json!({"to": to, "body": body, "in_reply_to": "$id"}))
}

/// Sends something that answers nothing.
pub(crate) fn send(to: &str, body: &str) -> Step {
    tool("send", json!({"to": to, "body": body}))
}

/// Takes mail that waits.
pub(crate) fn recv(max: u32) -> Step {
    tool("recv", json!({"max": max}))
}

/// Says something.
pub(crate) fn text(text: &str) -> Step {
    Step::Text { text: text.to_owned() }
}

/// Makes a file of the hive's directory.
pub(crate) fn touch(rig: &Rig, name: &str) -> Step {
    Step::Touch { touch: rig.path(name) }
}

/// Waits for a file of the hive's directory.
pub(crate) fn wait_for(rig: &Rig, name: &str) -> Step {
    Step::WaitFile { wait_file: rig.path(name) }
}

/// Ends the process without a result.
pub(crate) fn exit(exit: u8) -> Step {
    Step::Exit { exit }
}

/// Does nothing any more.
pub(crate) fn hang() -> Step {
    Step::Hang { hang: true }
}

/// Ends with an API error of this status.
pub(crate) fn api_error(status: u16) -> Step {
    let fields = json!({
        "is_error": true, "api_error_status": status, "terminal_reason": "api_error", "result": format!("API Error: {status}"),
    });
    Step::Result { result: fields.as_object().expect("an object").clone() }
}

pub(crate) fn env(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Returns the outcome and the attempt of each turn.
pub(crate) fn lives(turns: &[Turn]) -> Vec<(TurnOutcome, u32)> {
    turns.iter().map(|turn| (turn.outcome(), turn.attempt)).collect()
}

/// Returns the unsettled bodies in an inbox, oldest first, each with the id of the message it
/// answers.
pub(crate) async fn unread(client: &Client, agent: &str) -> Vec<(String, u64)> {
    let mut messages: Vec<_> = client
        .deliveries(agent, &[])
        .await
        .into_iter()
        .filter_map(|delivery| delivery.message)
        .collect();
    messages.sort_by_key(|message| message.id);
    messages.into_iter().map(|message| (message.body, message.in_reply_to)).collect()
}

/// Waits until a delivery is acked, if it is not already; with it, what acked it is committed too.
pub(crate) async fn acked(rig: &Rig, agent: &str, message: u64) {
    let fits = |event: &Event| {
        event.agent == agent
            && event.kind() == EventKind::DeliveryAcked
            && event.message_id == message
    };
    rig.watch().await.until(&format!("message {message} of {agent} is acked"), fits).await;
}

/// Sends a message to an agent and waits until it is acked; its id.
pub(crate) async fn handled(rig: &Rig, client: &Client, agent: &str, body: &str) -> u64 {
    let message = client.send(agent, body).await;
    acked(rig, agent, message).await;
    message
}

/// Waits until a turn of an agent has ended in this way; its id.
pub(crate) async fn ended(rig: &Rig, watch: &mut Watch, agent: &str, outcome: TurnOutcome) -> u64 {
    let client = rig.operator().await;
    let what = format!("a turn of {agent} ends {}", outcome.as_str_name());
    loop {
        let event = watch
            .until(&what, |event| event.agent == agent && event.kind() == EventKind::TurnEnded)
            .await;
        if client.turn(event.turn_id).await.outcome() == outcome {
            return event.turn_id;
        }
    }
}

/// A delivery that was done at its first attempt.
pub(crate) const DONE: (DeliveryState, u32, RedeliveryCause) =
    (DeliveryState::Acked, 1, RedeliveryCause::Unspecified);

/// Returns the state of a delivery, its attempt, and the cause of its last redelivery.
pub(crate) async fn standing(
    client: &Client,
    agent: &str,
    message: u64,
) -> (DeliveryState, u32, RedeliveryCause) {
    let delivery = client.delivery(agent, message).await;
    (delivery.state(), delivery.attempt, delivery.redelivery_cause())
}

/// From here on the conversation is so large that it has to be kept small.
pub(crate) fn large() -> Step {
    usage(900_000)
}

/// Sets the number of tokens before each further inference.
pub(crate) fn usage(tokens: u64) -> Step {
    Step::Usage { usage: BTreeMap::from([("input_tokens".to_owned(), tokens)]) }
}

/// Returns whether the event says that a command was carried out.
pub(crate) fn carried_out(event: &Event) -> bool {
    matches!(event.facts, Some(Facts::CommandClosed(closed)) if closed.done)
}
