//! The friendly agent through the real bridge.

use hive_proto::v1::recipient::To;
use hive_proto::v1::{OperatorRecipient, ReceiveMessagesRequest, SendMessageRequest};

use crate::rig::{Finished, Rig, TOKEN, run};

async fn turn(rig: &Rig, prompt: &str) -> Finished {
    let finished = run(&mut rig.scripted(None), prompt).await;
    assert_eq!(finished.code, Some(0), "{finished:#?}");
    finished
}

fn sent(rig: &Rig) -> Vec<(To, String, u64)> {
    let told = |request: SendMessageRequest| {
        (request.to.and_then(|to| to.to).expect("a recipient"), request.body, request.in_reply_to)
    };
    rig.broker.requests("SendMessage").into_iter().map(told).collect()
}

fn agent(name: &str) -> To {
    To::Agent(name.to_owned())
}

#[tokio::test]
async fn a_message_is_answered_and_the_events_are_claudes() {
    let rig = Rig::new().await;
    let finished = turn(&rig, "Message 17 from the operator (ann):\n| hello there\n").await;
    assert_eq!(
        sent(&rig),
        [(To::Operator(OperatorRecipient {}), "I have read \"hello there\".".to_owned(), 17)]
    );
    assert_eq!(
        rig.broker.with(|state| state.calls[0].process_token.clone()).as_deref(),
        Some(TOKEN)
    );

    let init = finished.init();
    assert_eq!(init["mcp_servers"][0]["status"], "connected");
    let tools: Vec<&str> =
        init["tools"].as_array().expect("a list").iter().filter_map(|tool| tool.as_str()).collect();
    let ours = [
        "mcp__hive__send",
        "mcp__hive__recv",
        "mcp__hive__ask",
        "mcp__hive__answer",
        "mcp__hive__get_loose_ends",
        "mcp__hive__cancel_loose_end",
        "mcp__hive__remind",
        "mcp__hive__request_next_turn",
        "mcp__hive__set_status",
        "mcp__hive__get_agent_meta",
        "mcp__hive__list_agents",
    ];
    assert_eq!(tools, [&["Edit", "Read"][..], &ours].concat());
    let types: Vec<&str> =
        finished.events.iter().filter_map(|event| event["type"].as_str()).collect();
    assert_eq!(types, ["system", "assistant", "user", "assistant", "result"]);
    let use_id = &finished.events[1]["message"]["content"][0]["id"];
    assert_eq!(finished.events[2]["message"]["content"][0]["tool_use_id"], *use_id);
    let result = finished.result();
    assert_eq!((&result["subtype"], &result["is_error"]), (&"success".into(), &false.into()));
    assert_eq!(result["modelUsage"]["claude-haiku-4-5"]["contextWindow"], 200_000);
    assert!(result["usage"]["output_tokens"].as_u64() > Some(0));
}

#[tokio::test]
async fn a_question_is_passed_on_and_the_answer_comes_back() {
    let rig = Rig::new().await;
    turn(&rig, "Message 17 from the operator (ann):\n| ask bob: how are you?\n").await;
    assert_eq!(sent(&rig), [(agent("bob"), "how are you?".to_owned(), 0)]);
    let [asked] = rig.broker.inbox("bob").await[..] else { panic!("one message") };
    turn(&rig, &format!("Message 30 from agent bob, in reply to {asked}:\n| fine\n")).await;
    assert_eq!(
        sent(&rig)[1..],
        [(To::Operator(OperatorRecipient {}), "bob answers: fine".to_owned(), 17)]
    );
    let told = rig.broker.inbox("operator").await.pop().expect("the operator gets mail");
    turn(&rig, &format!("Message 31 from agent bob, in reply to {told}:\n| thanks\n")).await;
    assert_eq!(sent(&rig).len(), 2, "an answer is not answered");
}

#[tokio::test]
async fn undeliverable_orders_are_reported() {
    let rig = Rig::new().await;
    turn(&rig, "Message 17 from agent carol:\n| tell bbo: hi\n").await;
    let (to, body, in_reply_to) = sent(&rig).pop().expect("an answer");
    assert_eq!((to, in_reply_to), (agent("carol"), 17));
    assert!(
        body.starts_with("I cannot tell bbo: AGENT_NOT_FOUND: there is no agent `bbo`"),
        "{body}"
    );
}

#[tokio::test]
async fn other_waiting_mail_is_taken_and_answered() {
    let rig = Rig::new().await;
    for number in 0..9 {
        rig.broker.mail("bob", &format!("number {number}")).await;
    }
    turn(
        &rig,
        "Message 17 from agent bob:\n| first\n(9 more pending: mcp__hive__recv takes them)\n",
    )
    .await;
    assert_eq!(sent(&rig).len(), 10);
    let receives = rig.broker.requests::<ReceiveMessagesRequest>("ReceiveMessages").len();
    assert_eq!(receives, 2);
}

#[tokio::test]
async fn a_message_repeated_without_its_text_is_remembered() {
    let rig = Rig::new().await;
    turn(&rig, "Message 17 from agent bob:\n| remember me\n").await;
    turn(&rig, "Message 17 from agent bob, whose text stands above in this conversation, is with you again.\n").await;
    let sent = sent(&rig);
    assert_eq!(sent[0], sent[1], "so that the broker knows it for the same");
    assert_eq!(sent[1].1, "I have read \"remember me\".");
}
