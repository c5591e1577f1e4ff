//! A clean shutdown: a turn is requeued or finished, no attempt is used, and the next start finds
//! everything again.

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{HarnessOptions, Rig};
use rustix::process::Signal;

use crate::steps::{
    DONE, acked, answer, ended, env, handled, lives, rule, standing, text, touch, unread, wait_for,
};

/// Bob's harness with this grace for a running turn; he stops after the first part of his answer.
fn start_bob(rig: &mut Rig, grace_secs: &str) {
    let parts = [answer("operator", "part one"), answer("operator", "part two"), text("Done.")];
    let mut first = parts.to_vec();
    first.splice(1..1, [touch(rig, "reached"), wait_for(rig, "go")]);
    let rules = vec![
        rule("This is attempt", parts.to_vec()),
        rule("Letter", vec![text("Done.")]),
        rule("", first),
    ];
    let env = env(&[("HIVE_DRAIN_GRACE_SECS", grace_secs)]);
    rig.start_harness_with("bob", &HarnessOptions { rules, env, ..HarnessOptions::default() });
}

const PARTS: [&str; 2] = ["part one", "part two"];

#[tokio::test]
async fn a_drained_harness_requeues_its_turn() {
    let mut rig = Rig::duo().await;
    start_bob(&mut rig, "0");
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    rig.stop_harness("bob").await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Drained).await;
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Ready, 1, RedeliveryCause::Drained)
    );
    assert!(
        rig.running("bob", "scripted-claude").is_empty()
            && rig.running("bob", "hive-mcp").is_empty()
    );

    start_bob(&mut rig, "0");
    acked(&rig, "bob", asked).await;
    assert_eq!(
        lives(&operator.turns("bob").await),
        [(TurnOutcome::Drained, 1), (TurnOutcome::Ok, 1)]
    );
    assert_eq!(unread(&operator, "operator").await, PARTS.map(|part| (part.to_owned(), asked)));
    let prompts = rig.prompts("bob");
    let last = prompts.last().expect("a prompt");
    assert!(
        last.contains("This is attempt 1 again: the last turn was cut off by a restart"),
        "{last}"
    );
    assert!(last.contains(" to operator: part one"), "{last}");
    rig.end().await;
}

#[tokio::test]
async fn a_turn_may_finish_within_the_grace_time_and_no_other_begins() {
    let mut rig = Rig::duo().await;
    start_bob(&mut rig, "50");
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    let next = operator.send("bob", "Letter 2.").await;
    rig.harness("bob").signal(Signal::TERM);
    rig.touch("go");
    assert!(rig.harness_ends("bob").await.success());
    assert_eq!(standing(&operator, "bob", asked).await, DONE);
    assert_eq!(
        standing(&operator, "bob", next).await,
        (DeliveryState::Ready, 0, RedeliveryCause::Unspecified)
    );
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    rig.end().await;
}

/// A second signal cuts the grace time short.
#[tokio::test]
async fn a_second_signal_ends_the_grace_time() {
    let mut rig = Rig::duo().await;
    start_bob(&mut rig, "1000");
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    rig.harness("bob").signal(Signal::INT);
    rig.harness("bob").signal(Signal::TERM);
    assert!(rig.harness_ends("bob").await.success());
    assert_eq!(
        standing(&operator, "bob", asked).await,
        (DeliveryState::Ready, 1, RedeliveryCause::Drained)
    );
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Drained, 1)]);
    rig.end().await;
}

#[tokio::test]
async fn a_parked_harness_ends_at_once() {
    let mut rig = Rig::duo().await;
    start_bob(&mut rig, "1000");
    let mut watch = rig.watch().await;
    watch.kind("bob", EventKind::HarnessAttached).await;
    rig.stop_harness("bob").await;
    assert!(rig.operator().await.turns("bob").await.is_empty());
    rig.end().await;
}

/// The broker ends with one harness parked and one in mid-turn; both go on with the next broker.
async fn a_broker_ends_well_and_its_harnesses_go_on(by_the_operator: bool) {
    let mut rig = Rig::duo().await;
    start_bob(&mut rig, "0");
    rig.start_harness("ada", &[rule("", vec![text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    watch.kind("ada", EventKind::HarnessAttached).await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.appeared("reached").await;
    if by_the_operator {
        let drained = rig.hivectl(&["drain"]).await;
        assert_eq!(
            (drained.code, drained.stdout.as_str()),
            (0, "the broker is shutting down\n"),
            "{drained:?}"
        );
    } else {
        rig.broker().signal(Signal::TERM);
    }
    let status = rig.broker_ends().await;
    assert!(status.success(), "{status}");
    assert_eq!(rig.hivectl(&["status"]).await.code, 7, "no broker answers");

    rig.touch("go");
    rig.start_broker().await;
    let operator = rig.operator().await;
    acked(&rig, "bob", asked).await;
    handled(&rig, &operator, "ada", "Hello ada.").await;
    for agent in ["ada", "bob"] {
        let turns = operator.turns(agent).await;
        assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1)]);
        assert_eq!(turns[0].session_epoch, 1, "{agent} kept its session");
    }
    assert_eq!(unread(&operator, "operator").await, PARTS.map(|part| (part.to_owned(), asked)));
    rig.end().await;
}

cases! {
    a_broker_that_the_operator_drains => a_broker_ends_well_and_its_harnesses_go_on(true),
    a_broker_that_is_stopped => a_broker_ends_well_and_its_harnesses_go_on(false),
}
