//! Calls wait for a restarting broker; no accepted call has a second effect.

use hive_core::reason::Reason;
use hive_in_process::Reaction;
use hive_proto::status;
use serde_json::json;

use crate::rig::{connected, good, hive};

#[tokio::test]
async fn a_send_that_was_accepted_by_a_dying_broker_is_not_doubled() {
    let mut broker = hive().await;
    let mut client = connected(&broker).await;
    broker.react(Reaction::ActAndHang);
    let pending = client
        .start_tool("send", json!({"to": "bob", "body": "once"}), "toolu_1")
        .await
        .expect("the bridge reads");
    broker.withheld().await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    let [message] = broker.inbox("bob").await[..] else { panic!("it is sent once") };
    assert!(!is_error && text.starts_with(&format!("Sent #{message} to bob.")), "{text}");
    broker.with(|state| {
        assert_eq!(state.calls.len(), 2);
        assert_eq!(
            state.calls[0], state.calls[1],
            "every attempt is the same request, process token included"
        );
    });
}

#[tokio::test]
async fn a_broker_that_starts_late_is_waited_for() {
    let mut broker = hive().await;
    broker.kill();
    let mut client = connected(&broker).await;
    let pending =
        client.start_tool("get_agent_meta", json!({}), "toolu_1").await.expect("the bridge reads");
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    assert!(!is_error && text.starts_with("name: alice"), "{text}");
}

#[tokio::test]
async fn a_draining_broker_is_asked_again() {
    let broker = hive().await;
    let mut client = connected(&broker).await;
    for reason in [Reason::Draining, Reason::StorageUnavailable] {
        broker.react(Reaction::Refuse(status::refusal(reason, "not now", None)));
    }
    let text = good(&mut client, "send", json!({"to": "bob", "body": "x"}), "toolu_1").await;
    let [message] = broker.inbox("bob").await[..] else { panic!("it is sent once") };
    assert_eq!(text, format!("Sent #{message} to bob."));
    assert_eq!(broker.with(|state| state.calls.len()), 3);
}

#[tokio::test]
async fn a_waiting_recv_continues_after_a_restart_with_its_leases() {
    let mut broker = hive().await;
    let mut client = connected(&broker).await;
    let message = broker.mail("bob", "already leased").await;
    broker.react(Reaction::ActAndHang);
    let pending = client
        .start_tool("recv", json!({"wait_seconds": 60}), "toolu_1")
        .await
        .expect("the bridge reads");
    broker.withheld().await;
    broker.kill();
    broker.run();
    let (text, is_error) = pending.tool_result().await.expect("an answer");
    assert!(
        !is_error && text.starts_with(&format!("#{message} from bob\n| already leased\n")),
        "{text}"
    );
    broker.with(|state| {
        assert!(matches!(&state.calls[..], [first, second] if first == second && first.method == "ReceiveMessages"));
    });
}
