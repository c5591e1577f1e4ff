//! An agent asks for another turn: it gets one, unless mail wakes it anyway.

use hive_proto::v1::{Turn, TurnKind, TurnOutcome};
use hive_tests::rig::Rig;
use serde_json::json;

use crate::steps::{acked, ended, handled, rule, text, tool, touch, unread, wait_for};

fn kinds(turns: &[Turn]) -> Vec<TurnKind> {
    assert!(turns.iter().all(|turn| turn.outcome() == TurnOutcome::Ok), "{turns:?}");
    turns.iter().map(Turn::kind).collect()
}

#[tokio::test]
async fn it_gets_exactly_one_more() {
    let mut rig = Rig::duo().await;
    let asks = vec![
        tool("request_next_turn", json!({})),
        tool("request_next_turn", json!({})),
        text("Later."),
    ];
    let goes_on = vec![tool("send", json!({"to": "operator", "body": "went on"})), text("Done.")];
    rig.start_harness(
        "bob",
        &[
            rule("Message from self:\n| continue", goes_on),
            rule("Letter 1", asks),
            rule("", vec![text("Done.")]),
        ],
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Letter 1.").await;
    for _ in 0..2 {
        ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    }
    assert_eq!(unread(&operator, "operator").await, [("went on".to_owned(), 0)]);
    handled(&rig, &operator, "bob", "Letter 2.").await;
    let turns = operator.turns("bob").await;
    assert_eq!(kinds(&turns), [TurnKind::Mail, TurnKind::Continue, TurnKind::Mail]);
    assert_eq!((turns[1].message_id, turns[1].attempt), (0, 0), "it carries no delivery");
    rig.end().await;
}

#[tokio::test]
async fn mail_that_waits_wakes_it_instead() {
    let mut rig = Rig::duo().await;
    let asks = vec![
        tool("request_next_turn", json!({})),
        touch(&rig, "reached"),
        wait_for(&rig, "go"),
        text("Later."),
    ];
    rig.start_harness("bob", &[rule("Letter 1", asks), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    let waiting = operator.send("bob", "Letter 2.").await;
    rig.touch("go");
    acked(&rig, "bob", waiting).await;
    handled(&rig, &operator, "bob", "Letter 3.").await;
    assert_eq!(kinds(&operator.turns("bob").await), [TurnKind::Mail; 3]);
    rig.end().await;
}

/// The turn that a failed turn requested is dropped: its message is redelivered.
#[tokio::test]
async fn a_failed_turn_gets_none() {
    let mut rig = Rig::duo().await;
    let asks = vec![tool("request_next_turn", json!({})), crate::steps::exit(1)];
    rig.start_harness(
        "bob",
        &[
            rule("This is attempt", vec![text("Done.")]),
            rule("Letter 1", asks),
            rule("", vec![text("Done.")]),
        ],
    );
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    handled(&rig, &operator, "bob", "Letter 2.").await;
    let turns = operator.turns("bob").await;
    assert_eq!(turns.iter().map(Turn::kind).collect::<Vec<_>>(), [TurnKind::Mail; 3]);
    assert_eq!(turns[0].outcome(), TurnOutcome::Failed);
    rig.end().await;
}
