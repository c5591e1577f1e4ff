//! A resident claude is killed. In a turn that is a failed turn; between turns it has no effect.
//! Another process takes its place.

use hive_proto::v1::TurnKind::{Compact, Mail};
use hive_proto::v1::{SystemKind, TurnKind, TurnOutcome};
use hive_tests::rig::{Mode, Rig};
use rustix::process::{Signal, kill_process};

use crate::steps::{acked, answer, handled, lives, rule, text, touch, unread, wait_for};

#[tokio::test]
async fn in_mid_turn() {
    let mut rig = Rig::duo().await;
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let mut first = parts.to_vec();
    first.splice(1..1, [touch(&rig, "reached"), wait_for(&rig, "go")]);
    let rules = [
        rule("Letter", vec![text("Done.")]),
        rule("This is attempt", parts.to_vec()),
        rule("", first),
    ];
    Mode::Resident.start(&mut rig, &rules);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    rig.kill_claude("bob").await;
    acked(&rig, "bob", asked).await;
    handled(&rig, &operator, "bob", "Letter 2.").await;
    let expected = [
        (TurnOutcome::Ok, 1),
        (TurnOutcome::Failed, 1),
        (TurnOutcome::Ok, 2),
        (TurnOutcome::Ok, 1),
    ];
    assert_eq!(lives(&operator.turns("bob").await), expected);
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    let again = rig
        .prompts("bob")
        .into_iter()
        .find(|prompt| prompt.contains("This is attempt 2"))
        .expect("a second attempt");
    assert!(again.contains("claude ended without a result (signal 9)"), "{again}");
    assert_eq!(rig.conversations("bob"), [4], "the conversation goes on");
    assert_eq!(rig.turn_starts("bob").len(), 2);
    rig.end().await;
}

#[tokio::test]
async fn between_turns() {
    let mut rig = Rig::duo().await;
    Mode::Resident.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    for round in 1..=5 {
        handled(&rig, &operator, "bob", &format!("Letter {round}.")).await;
        rig.kill_claude("bob").await;
    }
    handled(&rig, &operator, "bob", "Letter 6.").await;
    assert_eq!(
        lives(&operator.turns("bob").await),
        [(TurnOutcome::Ok, 1); 6],
        "that is no failure of a turn"
    );
    assert_eq!(rig.turn_starts("bob").len(), 6);
    for inbox in ["ada", "operator"] {
        assert_eq!(operator.all_deliveries(inbox).await, []);
    }
    rig.end().await;
}

/// claude is killed between turns while the next message arrives: its turn is lost, and the message
/// is not.
#[tokio::test]
async fn between_turns_while_mail_comes() {
    let mut rig = Rig::duo().await;
    Mode::Resident.start(&mut rig, &[rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    for round in 0..5 {
        handled(&rig, &operator, "bob", &format!("Letter {round}.")).await;
        let claude = rig.the_one("bob", "scripted-claude");
        let kill = async {
            for _ in 0..round * 8 {
                tokio::task::yield_now().await;
            }
            kill_process(claude, Signal::KILL).expect("claude runs");
        };
        let ((), message) = tokio::join!(kill, operator.send("bob", "And now?"));
        acked(&rig, "bob", message).await;
    }
    let turns = operator.turns("bob").await;
    for turn in &turns {
        assert!(
            matches!(
                turn.outcome(),
                TurnOutcome::Ok | TurnOutcome::Failed | TurnOutcome::Unavailable
            ),
            "{turn:?}"
        );
    }
    assert_eq!(
        turns.iter().filter(|turn| turn.outcome() == TurnOutcome::Ok).count(),
        10,
        "each message is done once"
    );
    drop(rig.starts("bob"));
    rig.end().await;
}

#[tokio::test]
async fn during_a_compaction() {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go")];
    Mode::Resident.start(&mut rig, &[rule("/compact", stops), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let args = ["turn", "compact", "bob", "--wait"];
    let order = rig.hivectl(&args);
    let killing = async {
        rig.appeared("reached").await;
        rig.kill_claude("bob").await;
    };
    let (said, ()) = tokio::join!(order, killing);
    assert!(said.code == 1 && said.stderr.contains("claude ended without a result"), "{said:?}");
    handled(&rig, &operator, "bob", "Letter 2.").await;
    // claude had no output yet, so it counts as missing; only the operator requests the compaction
    // again.
    rig.touch("go");
    assert_eq!(rig.hivectl(&args).await.code, 0);
    let turns = operator.turns("bob").await;
    let ended: Vec<(TurnKind, TurnOutcome)> =
        turns.iter().map(|turn| (turn.kind(), turn.outcome())).collect();
    use TurnOutcome::{Ok, Unavailable};
    assert_eq!(ended, [(Mail, Ok), (Compact, Unavailable), (Mail, Ok), (Compact, Ok)]);
    let told = operator.all_deliveries("ada").await.into_iter().filter_map(|told| told.message);
    let told: Vec<SystemKind> = told.map(|told| told.system_kind()).collect();
    assert_eq!(told, [SystemKind::Recovered], "the parent is notified only that it works again");
    rig.end().await;
}
