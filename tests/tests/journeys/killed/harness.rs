//! The harness is killed: a fresh start ends the turn as vanished, which may be the message's
//! fault, after the old claude is dead.

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{DUO, QUICK_LIMITS, Rig, gone};

use super::{Expected, ONE_TURN, Point, Scene};
use crate::steps::{ended, handled, lives, standing, unread};

const VANISHED: Expected = Expected {
    lives: &[(TurnOutcome::Vanished, 1), (TurnOutcome::Ok, 2)],
    cause: RedeliveryCause::HarnessVanished,
    words: "the last turn was cut off. It said:\n| the harness vanished in mid-turn",
};

#[tokio::test]
async fn before_the_lease() {
    let mut scene = Scene::new(Point::BeforeEnd).await;
    scene.rig.touch("go");
    scene.rig.kill_harness("bob").await;
    scene.asked = scene.operator.send("bob", "Count to two.").await;
    scene.start_harness(Point::BeforeEnd);
    scene.comes_out(&ONE_TURN, Point::BeforeEnd).await;
}

async fn killed_at(point: Point) {
    let mut scene = Scene::at(point).await;
    let left = scene.rig.the_one("bob", "scripted-claude");
    scene.rig.kill_harness("bob").await;
    scene.start_harness(point);
    // Its claude runs until the next harness ends it, before that harness starts another.
    gone(left).await;
    scene.comes_out(&VANISHED, point).await;
}

cases! {
    in_mid_turn => killed_at(Point::MidTurn),
    after_a_send => killed_at(Point::AfterSend),
    before_the_end_of_claude => killed_at(Point::BeforeEnd),
}

/// claude has ended, and the broker gets no report, because it is away.
#[tokio::test]
async fn before_the_end_of_the_turn() {
    let mut scene = Scene::at(Point::BeforeEnd).await;
    let claude = scene.rig.the_one("bob", "scripted-claude");
    scene.rig.kill_broker().await;
    scene.rig.touch("go");
    gone(claude).await;
    scene.rig.kill_harness("bob").await;
    scene.start_broker().await;
    scene.start_harness(Point::BeforeEnd);
    scene.comes_out(&VANISHED, Point::BeforeEnd).await;
}

#[tokio::test]
async fn after_the_end_of_the_turn() {
    let mut scene = Scene::at(Point::AfterSend).await;
    scene.rig.touch("go");
    ended(&scene.rig, &mut scene.watch, "bob", TurnOutcome::Ok).await;
    scene.rig.kill_harness("bob").await;
    scene.start_harness(Point::AfterSend);
    // Its mail was acked with its end; nothing is run again.
    let turns = scene.operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1)]);
    handled(&scene.rig, &scene.operator, "bob", "and now?").await;
    assert_eq!(lives(&scene.operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    assert_eq!(unread(&scene.operator, "operator").await.len(), 2);
    scene.rig.end().await;
}

/// No process starts it again: after the grace time the broker requeues the mail by itself, and
/// names the lost harness.
#[tokio::test]
async fn for_good() {
    let mut rig = Rig::new(&format!(
        "{DUO}{}",
        QUICK_LIMITS.replace("harness_grace_ms = 30000", "harness_grace_ms = 5000")
    ));
    rig.start_broker().await;
    let mut scene = Scene::of(rig, Point::AfterSend).await;
    scene.asked = scene.operator.send("bob", "Count to two.").await;
    scene.rig.appeared("reached").await;
    let claude = scene.rig.the_one("bob", "scripted-claude");
    scene.rig.kill_harness("bob").await;
    ended(&scene.rig, &mut scene.watch, "bob", TurnOutcome::Vanished).await;
    scene.watch.kind("bob", EventKind::HarnessLost).await;
    let back = (DeliveryState::Ready, 1, RedeliveryCause::HarnessVanished);
    assert_eq!(standing(&scene.operator, "bob", scene.asked).await, back);

    // The remaining processes send nothing more.
    scene.rig.touch("go");
    gone(claude).await;
    assert_eq!(unread(&scene.operator, "operator").await, [("part one".to_owned(), scene.asked)]);
    scene.start_harness(Point::AfterSend);
    scene.comes_out(&VANISHED, Point::AfterSend).await;
}
