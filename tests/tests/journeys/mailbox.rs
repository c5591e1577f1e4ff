//! The operator's mail on the command line: threads, and marking all of it.

use hive_proto::v1::SendMessageRequest;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_tests::rig::{Client, Rig, request};
use serde_json::{Value, json};

use crate::steps::unread;
use crate::terminal::Terminal;

/// Sends a reply; its id.
async fn reply(from: &Client, recipient: &str, body: &str, in_reply_to: u64) -> u64 {
    let request = SendMessageRequest { in_reply_to, ..request::send(recipient, body) };
    let sent = MessageServiceClient::new(from.channel()).send_message(request).await;
    sent.expect("the message is accepted").into_inner().message_id
}

fn numbers(value: &Value) -> Vec<u64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|number| number.as_u64().expect("a number"))
        .collect()
}

#[tokio::test]
async fn mail_is_shown_by_threads() {
    let rig = Rig::duo().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    let asked = operator.send("ada", "Where are the plans?").await;
    let first = reply(&ada, "operator", "Which ones?", asked).await;
    let other = ada.send("operator", "The disk is full.").await;
    let named = reply(&operator, "ada", "Those of the bridge.", first).await;
    let last = reply(&ada, "operator", "On the desk.", named).await;

    let listed = rig.hivectl(&["--json", "inbox", "--threads", "--all"]).await;
    let threads: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    let threads: Vec<_> = threads
        .as_array()
        .expect("a list")
        .iter()
        .map(|thread| {
            (
                thread["thread_id"].as_u64(),
                numbers(&thread["message_ids"]),
                thread["unread_count"].as_u64(),
            )
        })
        .collect();
    // The sender of the newest mail is last. Her first question was settled by the reply.
    assert_eq!(
        threads,
        [(Some(other), vec![other], Some(1)), (Some(asked), vec![first, last], Some(1))],
        "{listed:?}"
    );

    // From any of its messages.
    for message in [asked, named, last] {
        let read =
            rig.hivectl(&["--json", "inbox", "read", "--thread", &message.to_string()]).await;
        let messages: Value = serde_json::from_str(&read.stdout).expect("JSON");
        let ids: Vec<_> = messages
            .as_array()
            .expect("a list")
            .iter()
            .map(|message| message["id"].clone())
            .collect();
        assert_eq!(ids, [asked, first, named, last].map(|id| json!(id)), "{read:?}");
    }
    assert_eq!(unread(&operator, "operator").await.len(), 2, "reading changes nothing");
    rig.end().await;
}

#[tokio::test]
async fn all_mail_is_marked_after_a_yes() {
    let rig = Rig::duo().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    for body in ["one", "two"] {
        ada.send("operator", body).await;
    }
    for (answer, left) in [("n", 2), ("", 2), ("y", 0)] {
        let mut terminal = Terminal::open(&rig, (80, 24), &[], &["inbox", "ack", "--all"]);
        terminal.shows(&["mark 2 messages as done? (y/n)"], &[]).await;
        terminal.types(&format!("{answer}\n")).await;
        let status = terminal.ends().await;
        assert_eq!(status.code(), Some(i32::from(left > 0)), "{answer:?}");
        assert_eq!(unread(&operator, "operator").await.len(), left, "{answer:?}");
    }
    // A script is not asked.
    for args in [&["inbox", "ack", "--all"][..], &["inbox", "ack", "--all", "--yes"]] {
        ada.send("operator", "three").await;
        let acked = rig.hivectl(args).await;
        assert_eq!((acked.code, acked.stdout.lines().count()), (0, 1), "{acked:?}");
        assert_eq!(unread(&operator, "operator").await, []);
    }
    let nothing = rig.hivectl(&["inbox", "ack", "--all"]).await;
    assert_eq!((nothing.code, nothing.stderr.as_str()), (0, "no unread mail\n"), "{nothing:?}");
    rig.end().await;
}
