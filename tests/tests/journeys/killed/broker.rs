//! The broker is killed: that uses no attempt and ends no turn. The tool calls wait for the next
//! one, and the harness reattaches to its session.

use hive_proto::v1::{EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::rig::{Rig, gone};

use super::{Expected, ONE_TURN, Point, Scene};
use crate::steps::{acked, ended, handled, lives, unread};

#[tokio::test]
async fn before_the_lease() {
    let mut scene = Scene::new(Point::BeforeEnd).await;
    scene.rig.touch("go");
    scene.rig.kill_broker().await;
    scene.start_broker().await;
    scene.asked = scene.operator.send("bob", "Count to two.").await;
    scene.comes_out(&ONE_TURN, Point::BeforeEnd).await;
}

/// The receipt was out, so the message is on disk.
#[tokio::test]
async fn after_a_receipt_and_before_a_consumer() {
    let mut rig = Rig::duo().await;
    let operator = rig.operator().await;
    let asked = operator.send("bob", "Count to two.").await;
    rig.crash_broker().await;
    let (operator, watch) = (rig.operator().await, rig.watch().await);
    let mut scene = Scene { rig, operator, watch, asked };
    scene.rig.touch("go");
    scene.start_harness(Point::MidTurn);
    scene.comes_out(&ONE_TURN, Point::MidTurn).await;
}

async fn killed_at(point: Point) {
    let mut scene = Scene::at(point).await;
    scene.rig.kill_broker().await;
    // claude continues while no broker answers.
    scene.rig.touch("go");
    scene.rig.appeared("gone").await;
    scene.start_broker().await;
    acked(&scene.rig, "bob", scene.asked).await;
    let epochs: Vec<u64> =
        scene.operator.turns("bob").await.iter().map(|turn| turn.session_epoch).collect();
    assert_eq!(epochs, [1], "the harness came back to its session");
    scene.comes_out(&ONE_TURN, point).await;
}

cases! {
    in_mid_turn => killed_at(Point::MidTurn),
    after_a_send => killed_at(Point::AfterSend),
    before_the_end_of_claude => killed_at(Point::BeforeEnd),
}

/// claude has ended; the harness retries its report until a broker accepts it.
#[tokio::test]
async fn before_the_end_of_the_turn() {
    let mut scene = Scene::at(Point::BeforeEnd).await;
    let claude = scene.rig.the_one("bob", "scripted-claude");
    scene.rig.kill_broker().await;
    scene.rig.touch("go");
    gone(claude).await;
    scene.start_broker().await;
    scene.comes_out(&ONE_TURN, Point::BeforeEnd).await;
}

/// The broker dies with the end of the turn, received or not: the request is repeated, and done
/// once.
#[tokio::test]
async fn at_the_end_of_the_turn() {
    let mut scene = Scene::at(Point::BeforeEnd).await;
    let claude = scene.rig.the_one("bob", "scripted-claude");
    scene.rig.broker().suspend().await;
    scene.rig.touch("go");
    gone(claude).await;
    scene.rig.kill_broker().await;
    scene.start_broker().await;
    scene.comes_out(&ONE_TURN, Point::BeforeEnd).await;
}

#[tokio::test]
async fn after_the_end_of_the_turn() {
    let mut scene = Scene::at(Point::AfterSend).await;
    scene.rig.touch("go");
    ended(&scene.rig, &mut scene.watch, "bob", TurnOutcome::Ok).await;
    scene.rig.kill_broker().await;
    scene.start_broker().await;
    handled(&scene.rig, &scene.operator, "bob", "and now?").await;
    assert_eq!(lives(&scene.operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    assert_eq!(unread(&scene.operator, "operator").await.len(), 2);
    scene.rig.end().await;
}

/// Broker and harness die together, as in a crash of the host's service manager: the new harness
/// finds the turn and requeues its mail.
#[tokio::test]
async fn together_with_the_harness() {
    let mut scene = Scene::at(Point::AfterSend).await;
    let claude = scene.rig.the_one("bob", "scripted-claude");
    scene.rig.kill_broker().await;
    scene.rig.kill_harness("bob").await;
    scene.start_broker().await;
    scene.start_harness(Point::AfterSend);
    gone(claude).await;
    scene.watch.kind("bob", EventKind::HarnessAttached).await;
    let expected = Expected {
        lives: &[(TurnOutcome::Vanished, 1), (TurnOutcome::Ok, 2)],
        cause: RedeliveryCause::HarnessVanished,
        words: "the last turn was cut off",
    };
    scene.comes_out(&expected, Point::AfterSend).await;
}
