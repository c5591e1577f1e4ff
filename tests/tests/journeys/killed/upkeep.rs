//! The broker and the harness are killed while the conversation is being kept small: a turn of its
//! own continues and ends once, a compaction within a turn is repeated with it, and nothing is sent
//! twice.

use hive_proto::v1::TurnKind::{Checkpoint, Compact, Mail};
use hive_proto::v1::TurnOutcome::{Ok, Vanished};
use hive_proto::v1::{DeliveryState, HarnessState, RedeliveryCause, TurnKind, TurnOutcome};
use hive_tests::rig::{Client, Mode, Rig};
use hive_tests::scripted::failure::Failure;
use hive_tests::scripted::script::{Rule, Step};

use crate::steps::{
    DONE, acked, answer, ended, handled, large, rule, standing, text, touch, unread, usage,
    wait_for,
};

both!(
    the_broker_in_a_checkpoint,
    the_broker_in_a_compaction,
    the_broker_in_a_compaction_within_a_turn,
    the_harness_in_a_compaction,
    the_harness_in_a_compaction_within_a_turn
);

async fn ran(operator: &Client) -> Vec<(TurnKind, TurnOutcome)> {
    operator.turns("bob").await.iter().map(|turn| (turn.kind(), turn.outcome())).collect()
}

/// A turn that fills the window, and what follows from it.
fn full(rig: &Rig, at: &str) -> Vec<Rule> {
    let stops = vec![touch(rig, "reached"), wait_for(rig, "go"), text("It is written down.")];
    let pass = vec![text("It is written down.")];
    vec![
        rule("Hive asks for your notes", if at == "checkpoint" { stops.clone() } else { pass }),
        rule("/compact", if at == "compaction" { stops[..2].to_vec() } else { Vec::new() }),
        rule("Letter 1", vec![large(), text("Done.")]),
        rule("", vec![usage(10), text("Done.")]),
    ]
}

async fn the_broker_in(mode: Mode, at: &str) {
    let mut rig = Rig::duo().await;
    let rules = full(&rig, at);
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    rig.kill_broker().await;
    rig.touch("go");
    rig.start_broker().await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 2.").await;
    assert_eq!(ran(&operator).await, [(Mail, Ok), (Checkpoint, Ok), (Compact, Ok), (Mail, Ok)]);
    assert_eq!(operator.turns("bob").await.last().map(|turn| turn.session_epoch), Some(1));
    rig.end().await;
}

async fn the_broker_in_a_checkpoint(mode: Mode) {
    the_broker_in(mode, "checkpoint").await;
}

async fn the_broker_in_a_compaction(mode: Mode) {
    the_broker_in(mode, "compaction").await;
}

/// The model refuses the second letter once, for its length.
fn too_long(rig: &Rig) -> Vec<Rule> {
    let refuse = Step::First {
        first: rig.path("refused"),
        steps: vec![Step::Fail { fail: Failure::PromptTooLong }],
    };
    let stop = Step::First {
        first: rig.path("stopped"),
        steps: vec![touch(rig, "reached"), wait_for(rig, "go")],
    };
    let parts = vec![answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    vec![
        rule("/compact", vec![stop]),
        rule("This is attempt", parts.clone()),
        rule("Letter 2", [vec![refuse], parts].concat()),
        rule("", vec![text("Done.")]),
    ]
}

async fn to_a_compaction_within_a_turn(mode: Mode, rig: &mut Rig) -> u64 {
    let rules = too_long(rig);
    mode.start(rig, &rules);
    let operator = rig.operator().await;
    handled(rig, &operator, "bob", "Letter 1.").await;
    let asked = operator.send("bob", "Letter 2.").await;
    rig.appeared("reached").await;
    operator.does("bob", HarnessState::Compacting).await;
    assert_eq!(ran(&operator).await.len(), 2, "it is within the turn");
    asked
}

async fn the_broker_in_a_compaction_within_a_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let asked = to_a_compaction_within_a_turn(mode, &mut rig).await;
    rig.kill_broker().await;
    rig.touch("go");
    rig.start_broker().await;
    acked(&rig, "bob", asked).await;
    let operator = rig.operator().await;
    assert_eq!(ran(&operator).await, [(Mail, Ok); 2]);
    assert!(operator.turns("bob").await[1].compacted);
    assert_eq!(standing(&operator, "bob", asked).await, DONE);
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    rig.end().await;
}

async fn the_harness_in_a_compaction(mode: Mode) {
    let mut rig = Rig::duo().await;
    let rules = full(&rig, "compaction");
    mode.start(&mut rig, &rules);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let first = operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    rig.kill_harness("bob").await;
    mode.start(&mut rig, &rules);
    ended(&rig, &mut watch, "bob", Vanished).await;
    rig.touch("go");
    handled(&rig, &operator, "bob", "Letter 2.").await;
    let ran = ran(&operator).await;
    assert_eq!(ran[..4], [(Mail, Ok), (Checkpoint, Ok), (Compact, Vanished), (Mail, Ok)]);
    assert_eq!(standing(&operator, "bob", first).await, DONE, "the turn before is not touched");
    assert_eq!(operator.all_deliveries("ada").await, [], "no parent is notified");
    rig.end().await;
}

async fn the_harness_in_a_compaction_within_a_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let asked = to_a_compaction_within_a_turn(mode, &mut rig).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    rig.kill_harness("bob").await;
    let rules = too_long(&rig);
    mode.start(&mut rig, &rules);
    ended(&rig, &mut watch, "bob", Vanished).await;
    acked(&rig, "bob", asked).await;
    assert_eq!(ran(&operator).await, [(Mail, Ok), (Mail, Vanished), (Mail, Ok)]);
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Acked, 2, RedeliveryCause::HarnessVanished)
    );
    assert_eq!(
        unread(&operator, "operator").await,
        ["part one", "part two"].map(|part| (part.to_owned(), asked))
    );
    rig.end().await;
}
