//! `hivectl turn cancel --wait`.

use hive_proto::v1::TurnKind::Mail;
use hive_proto::v1::TurnOutcome::{Cancelled, Ok};
use hive_proto::v1::{DeliveryState, EventKind};
use hive_tests::rig::{Mode, Rig, gone};
use rustix::process::{Signal, kill_process};

use super::{done, kinds, waited};
use crate::steps::{acked, handled, hang, rule, text, touch, wait_for};

both!(a_running_turn, a_claude_that_obeys_nothing, another_turn_than_the_one_that_runs, too_late);

async fn cancelled(mode: Mode, obeys: bool) {
    let mut rig = Rig::duo().await;
    let rules = [rule("Hang", vec![touch(&rig, "reached"), hang()]), rule("", vec![text("Done.")])];
    let grace: &[_] = if obeys { &[] } else { &[("HIVE_KILL_GRACE_MS", "100")] };
    mode.start_with(&mut rig, &rules, grace);
    let operator = rig.operator().await;
    let held = operator.send("bob", "Hang.").await;
    rig.appeared("reached").await;
    let claude = rig.the_one("bob", "scripted-claude");
    if !obeys {
        // A stopped process takes no signal but the last one.
        kill_process(claude, Signal::STOP).expect("claude runs");
    }
    done(&rig, &["cancel", "bob"]).await;
    assert_eq!(operator.delivery("bob", held).await.state(), DeliveryState::Held);
    // Its claude is never used in another turn.
    gone(claude).await;
    handled(&rig, &operator, "bob", "Letter 2.").await;
    assert_eq!(kinds(&operator).await, [(Mail, Cancelled), (Mail, Ok)]);
    assert_eq!(rig.turn_starts("bob").len(), 2);
    rig.end().await;
}

async fn a_running_turn(mode: Mode) {
    cancelled(mode, true).await;
}

async fn a_claude_that_obeys_nothing(mode: Mode) {
    cancelled(mode, false).await;
}

async fn another_turn_than_the_one_that_runs(mode: Mode) {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    mode.start(&mut rig, &[rule("Letter 2", stops), rule("", vec![text("Done.")])]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let second = operator.send("bob", "Letter 2.").await;
    rig.appeared("reached").await;
    let old = operator.turns("bob").await[0].id.to_string();
    let said = waited(&rig, &["cancel", "bob", "--turn", &old]).await;
    assert!(said.code == 3 && said.stderr.contains("TURN_NOT_FOUND"), "{said:?}");
    rig.touch("go");
    acked(&rig, "bob", second).await;
    assert_eq!(kinds(&operator).await, [(Mail, Ok); 2]);
    rig.end().await;
}

/// The order reaches a harness whose turn has already ended; nothing else is cancelled for it.
async fn too_late(mode: Mode) {
    let mut rig = Rig::duo().await;
    let stops = vec![touch(&rig, "reached"), wait_for(&rig, "go"), text("Done.")];
    mode.start(&mut rig, &[rule("Letter 1", stops), rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let first = operator.send("bob", "Letter 1.").await;
    rig.appeared("reached").await;
    // The harness is suspended, so that it gets the command after the end of claude.
    rig.harness("bob").suspend().await;
    let harness = rig.harness("bob").pid();
    let order = waited(&rig, &["cancel", "bob"]);
    let release = async {
        watch.kind("bob", EventKind::CommandGiven).await;
        let claude = rig.the_one("bob", "scripted-claude");
        rig.touch("go");
        if mode == Mode::PerTurn {
            // Dead, if not yet buried.
            gone(claude).await;
        }
        kill_process(harness, Signal::CONT).expect("it is there");
    };
    let (said, ()) = tokio::join!(order, release);
    // Either may come first; the operator gets the outcome that happened.
    let turn = operator.turns("bob").await.remove(0);
    let state = operator.delivery("bob", first).await.state();
    match (turn.outcome(), said.code) {
        (Ok, 1) => assert!(
            said.stderr.contains("had ended already") && state == DeliveryState::Acked,
            "{said:?}, {state:?}"
        ),
        (Cancelled, 0) => assert_eq!(state, DeliveryState::Held),
        other => panic!("{other:?}: {said:?}"),
    }
    handled(&rig, &operator, "bob", "Letter 2.").await;
    rig.end().await;
}
