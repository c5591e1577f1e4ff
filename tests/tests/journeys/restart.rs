//! A broker that is restarted in mid-turn: the turn continues, and its next calls reach the next
//! broker. So does a consumer's work.

use hive_proto::v1::ack_delivery_request::Target;
use hive_proto::v1::create_reminder_request::Due;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::reminder_service_client::ReminderServiceClient;
use hive_proto::v1::{
    AckDeliveryRequest, CreateReminderRequest, EventKind, ReceiveMessagesRequest, TurnOutcome,
};
use hive_tests::rig::{Rig, fresh_id, request};
use hive_tests::scripted::script::Step;
use serde_json::json;

use crate::steps::{
    DONE, acked, answer, lives, recv, rule, standing, text, touch, unread, wait_for,
};

/// The kind of end of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    Killed,
    ShutDown,
}

async fn gone(rig: &mut Rig, going: Going) {
    match going {
        Going::Killed => rig.kill_broker().await,
        Going::ShutDown => {
            rig.stop_broker().await;
            // Nothing of a running turn holds it up.
            let log = rig.read("hived.log");
            assert!(!log.contains("did not end in time"), "{log}");
        }
    }
}

/// A send before it, and a recv and a send after it, called while no broker answers, are all of one
/// turn.
async fn a_turn_goes_on(going: Going) {
    let mut rig = Rig::duo().await;
    let call =
        Step::Call { call: "recv".to_owned(), input: json!({"max": 8}), touch: rig.path("called") };
    let steps = vec![
        recv(1),
        answer("operator", "part one"),
        touch(&rig, "reached"),
        wait_for(&rig, "go"),
        call,
        answer("operator", "part two"),
        text("Done."),
    ];
    let operator = rig.operator().await;
    let mut asked = Vec::new();
    for number in 1..=2 {
        asked.push(operator.send("bob", &format!("Letter {number}.")).await);
    }
    rig.start_harness("bob", &[rule("", steps)]);
    rig.appeared("reached").await;
    asked.push(operator.send("bob", "Letter 3.").await);
    gone(&mut rig, going).await;
    rig.touch("go");
    rig.appeared("called").await;
    rig.start_broker().await;
    let operator = rig.operator().await;
    for message in &asked {
        acked(&rig, "bob", *message).await;
        assert_eq!(standing(&operator, "bob", *message).await, DONE);
    }
    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1)]);
    assert_eq!(
        (turns[0].session_epoch, turns[0].received_message_ids.as_slice()),
        (1, &asked[1..])
    );
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked[0]))
    );
    let results = rig.tool_results("bob");
    assert!(results[2].contains("| Letter 3."), "{results:?}");
    rig.end().await;
}

cases! {
    over_a_kill => a_turn_goes_on(Going::Killed),
    over_a_shutdown => a_turn_goes_on(Going::ShutDown),
}

/// A call that waits for mail continues to wait at the next broker.
async fn a_waiting_call_goes_on(going: Going) {
    let mut rig = Rig::duo().await;
    let call = Step::Call {
        call: "recv".to_owned(),
        input: json!({"wait_seconds": 150}),
        touch: rig.path("called"),
    };
    rig.start_harness("bob", &[rule("", vec![call, answer("operator", "got it"), text("Done.")])]);
    let waiting = rig.operator().await.send("bob", "Wait for more.").await;
    rig.appeared("called").await;
    gone(&mut rig, going).await;
    rig.start_broker().await;
    let operator = rig.operator().await;
    let late = operator.send("bob", "More.").await;
    for message in [waiting, late] {
        acked(&rig, "bob", message).await;
        assert_eq!(standing(&operator, "bob", message).await, DONE);
    }
    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1)]);
    assert_eq!(turns[0].received_message_ids, [late]);
    assert!(rig.tool_results("bob")[0].contains("| More."), "{:?}", rig.tool_results("bob"));
    rig.end().await;
}

cases! {
    a_call_waits_over_a_kill => a_waiting_call_goes_on(Going::Killed),
    a_call_waits_over_a_shutdown => a_waiting_call_goes_on(Going::ShutDown),
}

/// Again and again within one turn, both ways.
#[tokio::test]
async fn five_restarts_are_one_turn() {
    let mut rig = Rig::duo().await;
    let mut steps = Vec::new();
    for number in 1..=5 {
        let (reached, go) = (format!("reached {number}"), format!("go {number}"));
        steps.extend([
            touch(&rig, &reached),
            wait_for(&rig, &go),
            answer("operator", &format!("part {number}")),
        ]);
    }
    steps.push(text("Done."));
    rig.start_harness("bob", &[rule("", steps)]);
    let asked = rig.operator().await.send("bob", "Count to five.").await;
    for number in 1..=5 {
        rig.appeared(&format!("reached {number}")).await;
        gone(&mut rig, if number % 2 == 0 { Going::Killed } else { Going::ShutDown }).await;
        rig.touch(&format!("go {number}"));
        rig.start_broker().await;
    }
    acked(&rig, "bob", asked).await;
    let operator = rig.operator().await;
    assert_eq!(standing(&operator, "bob", asked).await, DONE);
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    let parts: Vec<(String, u64)> =
        (1..=5).map(|number| (format!("part {number}"), asked)).collect();
    assert_eq!(unread(&operator, "operator").await, parts);
    rig.end().await;
}

/// The part of a lease's time in which no broker served does not count. A reminder of another hive
/// signals that the time is over.
#[tokio::test]
async fn a_consumers_lease_starts_again_when_a_broker_serves_again() {
    let time = || Some(prost_types::Duration { seconds: 4, nanos: 0 });
    let mut rig = Rig::duo().await;
    let message = rig.operator().await.send("bob", "Take your time.").await;
    let take =
        ReceiveMessagesRequest { max_deliveries: 1, lease_duration: time(), ..request::receive() };
    let taken = InboxServiceClient::new(rig.agent("bob").await.channel())
        .receive_messages(take)
        .await
        .expect("taken");
    let lease_token = taken.into_inner().deliveries[0].lease_token.clone();
    rig.kill_broker().await;

    let elsewhere = Rig::duo().await;
    let remind = CreateReminderRequest {
        request_id: fresh_id(),
        body: "over".to_owned(),
        due: time().map(Due::Delay),
    };
    let mut reminders = ReminderServiceClient::new(elsewhere.agent("bob").await.channel());
    reminders.create_reminder(remind).await.expect("the other hive is there");
    elsewhere.watch().await.kind("bob", EventKind::ReminderFired).await;

    rig.start_broker().await;
    let ack = AckDeliveryRequest { target: Some(Target::LeaseToken(lease_token)) };
    InboxServiceClient::new(rig.agent("bob").await.channel())
        .ack_delivery(ack)
        .await
        .expect("the lease lives");
    assert_eq!(standing(&rig.operator().await, "bob", message).await, DONE);
}
