//! Failures reach the model as one sentence with its reason.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_in_process::Reaction;
use hive_proto::status;
use hive_tests::mcp::Client;
use serde_json::json;

use crate::rig::{self, call, connected, good, hive};

#[tokio::test]
async fn a_refusal_names_its_reason_and_what_to_do() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    let cases = [
        (
            status::refusal(Reason::AgentNotFound, "there is no agent `bbo`; nearest: bob", None),
            "check the name and call again",
        ),
        (status::refusal(Reason::TurnEnded, "the turn has ended", None), "this turn is over"),
        (
            status::refusal(Reason::RateLimited, "too fast", Some(Duration::from_secs(7))),
            "(in 7 s)",
        ),
        (status::bad_field("body", "it is empty"), "correct it and call again"),
    ];
    for (index, (refusal, advice)) in cases.into_iter().enumerate() {
        let reason = status::reason(&refusal).expect("it has one");
        let problem = refusal.message().to_owned();
        broker.react(Reaction::Refuse(refusal));
        let (text, is_error) =
            call(&mut client, "send", json!({"to": "bbo", "body": "x"}), &format!("toolu_{index}"))
                .await;
        assert!(
            is_error
                && text.starts_with(&format!("{reason}: {problem}; "))
                && text.contains(advice),
            "{text}"
        );
        assert_eq!(text.lines().count(), 1);
    }
    assert_eq!(broker.with(|state| state.calls.len()), 4, "a refusal is not tried again");
}

#[tokio::test]
async fn wrong_arguments_are_refused_without_a_call_to_the_broker() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    for (tool, input, problem) in [
        ("send", json!({"to": "bob"}), "missing field `body`"),
        ("send", json!({"to": "bob", "body": "x", "reply_to": 1}), "unknown field `reply_to`"),
        (
            "send",
            json!({"to": "bob", "body": "x", "in_reply_to": "the last"}),
            "is no whole number",
        ),
        ("recv", json!({"wait_seconds": 181}), "at most 180"),
        ("recv", json!({"max": 0}), "1 to 32"),
        ("recv", json!({"max": 33}), "1 to 32"),
        ("recv", json!({"max": -1}), "is no whole number"),
    ] {
        let (text, is_error) = call(&mut client, tool, input, "toolu_1").await;
        assert!(
            is_error && text.starts_with("FIELD_INVALID: ") && text.contains(problem),
            "{text}"
        );
    }
    assert!(broker.with(|state| state.calls.is_empty()));
}

#[tokio::test]
async fn without_a_turn_mail_is_not_taken() {
    let broker = hive().await;
    broker.mail("bob", "for a turn only").await;
    let mut client = Client::spawn(rig::command(&broker.socket()).env_remove("HIVE_PROCESS_TOKEN"))
        .expect("hive-mcp starts");
    client.handshake().await.expect("the handshake works");
    let (text, is_error) = call(&mut client, "recv", json!({}), "toolu_1").await;
    assert!(is_error && text.starts_with("TURN_ENDED: "), "{text}");
    assert!(broker.with(|state| state.calls.is_empty()));
}

#[tokio::test]
async fn a_call_is_logged_before_and_after_without_its_body() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    good(&mut client, "send", json!({"to": "bob", "body": "secret words"}), "toolu_1").await;
    broker.react(Reaction::Refuse(status::refusal(Reason::InboxFull, "bob's inbox is full", None)));
    call(&mut client, "send", json!({"to": "bob", "body": "secret words"}), "toolu_2").await;
    let (_, log) = client.close().await.expect("it ends");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("tool call")).collect();
    assert_eq!(lines.len(), 4, "{log}");
    assert!(
        lines[1].contains("tool=send")
            && lines[1].contains("outcome=\"ok\"")
            && lines[1].contains("duration_ms="),
        "{log}"
    );
    assert!(lines[3].contains("outcome=\"INBOX_FULL\""), "{log}");
    assert!(!log.contains("secret") && !log.contains(rig::TOKEN), "{log}");
}
