//! A message makes the whole trip.

use hive_proto::v1::{DeliveryState, EventKind, TurnOutcome};
use hive_tests::rig::{QUICK_LIMITS, Rig};

use crate::steps::{
    DONE, acked, answer, ended, handled, lives, rule, send, standing, text, unread,
};

/// A root and two children.
const TRIO: &str = "[hive]\nname = \"test\"\n[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[agents.cid]\nparent = \"ada\"\n";

#[tokio::test]
async fn an_operator_writes_and_the_agent_answers() {
    let mut rig = Rig::duo().await;
    rig.start_harness("ada", &[]);
    let operator = rig.operator().await;
    let mut watch = rig.watch().await;

    let asked = operator.send("ada", "Hello ada, who are you?").await;
    let answered = watch.kind("operator", EventKind::MessageAccepted).await;
    let ended = watch.kind("ada", EventKind::TurnEnded).await;

    let messages = operator.messages().await;
    let answer =
        messages.iter().find(|message| message.id == answered.message_id).expect("the answer");
    assert_eq!(answer.in_reply_to, asked);
    assert_eq!(operator.delivery("ada", asked).await.state(), DeliveryState::Acked);
    let turn = operator.turn(ended.turn_id).await;
    assert_eq!((turn.outcome(), turn.attempt, turn.message_id), (TurnOutcome::Ok, 1, asked));
    assert_eq!(turn.sent_message_ids, [answer.id]);
    rig.end().await;
}

/// The operator has ada ask bob; bob's answer goes back the whole way.
#[tokio::test]
async fn an_agent_asks_another_and_reports_the_answer() {
    let mut rig = Rig::duo().await;
    rig.start_harness("ada", &[]);
    rig.start_harness("bob", &[]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("ada", "ask bob: how are you?").await;
    watch.kind("operator", EventKind::MessageAccepted).await;
    ended(&rig, &mut watch, "ada", TurnOutcome::Ok).await;
    assert_eq!(
        unread(&operator, "operator").await,
        [("bob answers: I have read \"how are you?\".".to_owned(), asked)]
    );
    let messages = operator.messages().await;
    let trip: Vec<(&str, &[String])> = messages
        .iter()
        .map(|message| {
            (
                message.origin.as_ref().map_or("", |origin| &origin.name),
                message.recipients.as_slice(),
            )
        })
        .collect();
    assert!(
        matches!(&trip[..], [(_, a), ("ada", b), ("bob", c), ("ada", d)] if [a, b, c, d].map(|to| to[0].as_str()) == ["ada", "bob", "ada", "operator"]),
        "{trip:?}"
    );
    assert_eq!(lives(&operator.turns("ada").await), [(TurnOutcome::Ok, 1); 2]);
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    rig.end().await;
}

/// `<parent>` is whose child one is, and for a root the operator.
#[tokio::test]
async fn a_parent_is_addressed_without_its_name() {
    let mut rig = Rig::new(&format!("{TRIO}{QUICK_LIMITS}"));
    rig.start_broker().await;
    let rules = [rule("", vec![send("<parent>", "done"), text("Done.")])];
    rig.start_harness("ada", &rules);
    rig.start_harness("bob", &rules);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Do it.").await;
    // Bob's word wakes ada, who passes it on to her own parent.
    ended(&rig, &mut watch, "ada", TurnOutcome::Ok).await;
    acked(&rig, "bob", asked).await;
    assert_eq!(unread(&operator, "operator").await, [("done".to_owned(), 0)]);
    let to_ada = &operator.turns("ada").await[0];
    assert_eq!(standing(&operator, "ada", to_ada.message_id).await, DONE);
    rig.end().await;
}

/// A broadcast reaches every agent but its sender; full inboxes are left out, and the answer names
/// them.
#[tokio::test]
async fn a_broadcast_reaches_every_other_agent() {
    let limits = format!("{QUICK_LIMITS}inbox_depth_max = 2\n");
    let mut rig = Rig::new(&format!("{TRIO}[agents.dan]\n{limits}"));
    rig.start_broker().await;
    let operator = rig.operator().await;
    for number in 1..=2 {
        operator.send("cid", &format!("Letter {number}.")).await;
    }
    rig.start_harness(
        "bob",
        &[rule("", vec![send("*", "hear me"), answer("operator", "said"), text("Done.")])],
    );
    let asked = handled(&rig, &operator, "bob", "Tell them.").await;
    assert_eq!(unread(&operator, "ada").await, [("hear me".to_owned(), 0)]);
    assert_eq!(unread(&operator, "dan").await, [("hear me".to_owned(), 0)]);
    assert_eq!(unread(&operator, "cid").await.len(), 2);
    assert_eq!(unread(&operator, "operator").await, [("said".to_owned(), asked)]);
    assert!(unread(&operator, "bob").await.is_empty());
    let told = &rig.tool_results("bob")[0];
    assert!(told.ends_with("to 2 agents. Left out, because their inbox is full: cid."), "{told}");
    rig.end().await;
}
