//! Mail that is taken within a turn: done with the turn if the model saw it, back in the inbox
//! without blame if not.

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::{
    DeliveryState, EventKind, ReceiveMessagesRequest, RedeliveryCause, TurnOutcome,
};
use hive_tests::rig::{Rig, request};
use hive_tests::scripted::script::Step;
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::steps::{
    DONE, acked, answer, ended, lives, recv, rule, standing, text, touch, wait_for,
};

#[tokio::test]
async fn several_are_drained_and_done_with_the_turn() {
    let mut rig = Rig::duo().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let mut asked = Vec::new();
    for number in 1..=4 {
        asked.push(operator.send("bob", &format!("Letter {number}.")).await);
    }
    let steps = vec![recv(2), recv(8), touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    rig.start_harness("bob", &[rule("", steps)]);
    rig.appeared("reached").await;
    for message in &asked {
        assert_eq!(
            operator.delivery("bob", *message).await.state(),
            DeliveryState::Leased,
            "nothing is done before the turn is"
        );
    }
    rig.touch("go");
    let turn = ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    for message in &asked {
        assert_eq!(standing(&operator, "bob", *message).await, DONE);
    }
    assert_eq!(operator.turn(turn).await.received_message_ids, asked[1..]);
    assert!(
        rig.prompts("bob")[0].contains("(3 more pending: mcp__hive__recv takes them)"),
        "{:?}",
        rig.prompts("bob")
    );
    let results = rig.tool_results("bob");
    assert!(
        results[0].contains("| Letter 2.")
            && results[0].contains("| Letter 3.")
            && results[0].contains("1 message more"),
        "{results:?}"
    );
    assert!(results[1].contains("| Letter 4.") && !results[1].contains("more"), "{results:?}");
    rig.end().await;
}

/// A call took mail, and the model had no answer to it when it ended its turn: the rest of the turn
/// is done, and that mail is requeued.
#[tokio::test]
async fn only_mail_that_never_reached_the_model_is_requeued() {
    let mut rig = Rig::duo().await;
    let operator = rig.operator().await;
    let mut asked = Vec::new();
    for number in 1..=3 {
        asked.push(operator.send("bob", &format!("Letter {number}.")).await);
    }
    let steps = vec![recv(1), touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    rig.start_harness(
        "bob",
        &[rule("Letter 1", steps), rule("", vec![answer("operator", "got it"), text("Done.")])],
    );
    rig.appeared("reached").await;
    let bridge = rig.agent("bob").await.with_process(&rig.token_of_bridge("bob"));
    let request = ReceiveMessagesRequest {
        max_deliveries: 1,
        tool_use_id: "toolu_without_an_answer".to_owned(),
        ..request::receive()
    };
    let taken =
        InboxServiceClient::new(bridge.channel()).receive_messages(bridge.request(request)).await;
    let taken = taken.expect("mail is taken").into_inner().deliveries;
    assert_eq!(taken.len(), 1);
    rig.touch("go");
    acked(&rig, "bob", asked[2]).await;

    assert_eq!(standing(&operator, "bob", asked[0]).await, DONE);
    assert_eq!(standing(&operator, "bob", asked[1]).await, DONE);
    assert_eq!(
        standing(&operator, "bob", asked[2]).await,
        (DeliveryState::Acked, 1, RedeliveryCause::NotReceived)
    );
    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1); 2]);
    assert_eq!(turns[0].received_message_ids, asked[1..]);
    assert_eq!(turns[1].message_id, asked[2]);
    let prompt = &rig.prompts("bob")[1];
    assert!(
        prompt.contains("This is attempt 1 again: its last delivery did not reach you"),
        "{prompt}"
    );
    rig.end().await;
}

/// claude is killed while a call of its waits: the mail that came into the call is not lost with
/// it.
#[tokio::test]
async fn mail_taken_by_a_killed_claude_is_requeued() {
    let mut rig = Rig::duo().await;
    let call = Step::Call {
        call: "recv".to_owned(),
        input: json!({"wait_seconds": 100}),
        touch: rig.path("called"),
    };
    let again = rule("This is attempt", vec![recv(8), text("Done.")]);
    rig.start_harness("bob", &[again, rule("Wait", vec![call]), rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let waiting = operator.send("bob", "Wait for more.").await;
    rig.appeared("called").await;
    // claude is suspended from here on, so it reads no answer.
    let claude = rig.the_one("bob", "scripted-claude");
    kill_process(claude, Signal::STOP).expect("claude runs");
    let late = operator.send("bob", "More.").await;
    watch
        .until("more is leased", |event| {
            event.kind() == EventKind::DeliveryLeased && event.message_id == late
        })
        .await;
    kill_process(claude, Signal::KILL).expect("claude is there");
    ended(&rig, &mut watch, "bob", TurnOutcome::Failed).await;
    for message in [waiting, late] {
        acked(&rig, "bob", message).await;
        let (state, attempt, cause) = standing(&operator, "bob", message).await;
        assert_eq!((state, attempt, cause), (DeliveryState::Acked, 2, RedeliveryCause::TurnFailed));
    }
    rig.end().await;
}
