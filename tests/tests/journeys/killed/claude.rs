//! claude is killed: the turn has failed, which may be the message's fault.

use hive_proto::v1::{RedeliveryCause, SystemKind, TurnOutcome};
use hive_tests::scripted::script::Step;

use super::{Expected, ONE_TURN, Point, Scene, parts};
use crate::steps::{ended, lives, rule, text, touch, unread, wait_for};

async fn killed_at(point: Point) {
    let scene = Scene::at(point).await;
    scene.rig.kill_claude("bob").await;
    let expected = Expected {
        lives: &[(TurnOutcome::Failed, 1), (TurnOutcome::Ok, 2)],
        cause: RedeliveryCause::TurnFailed,
        words: "the last turn failed. It said:\n| claude ended without a result (signal 9)",
    };
    scene.comes_out(&expected, point).await;
}

cases! {
    in_mid_turn => killed_at(Point::MidTurn),
    after_a_send => killed_at(Point::AfterSend),
    before_the_end_of_the_turn => killed_at(Point::BeforeEnd),
}

/// The model has ended its turn when the result is out, whatever becomes of the process.
#[tokio::test]
async fn after_its_result_the_turn_has_ended_well() {
    let mut scene = Scene::new(Point::MidTurn).await;
    let result = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#;
    let mut steps = parts();
    steps.extend([
        Step::Raw { raw: result.to_owned() },
        touch(&scene.rig, "reached"),
        wait_for(&scene.rig, "go"),
    ]);
    scene.rig.stop_harness("bob").await;
    scene
        .rig
        .start_harness("bob", &[rule("and now", vec![text("Nothing more.")]), rule("", steps)]);
    scene.asked = scene.operator.send("bob", "Count to two.").await;
    scene.rig.appeared("reached").await;
    scene.rig.kill_claude("bob").await;
    scene.comes_out(&ONE_TURN, Point::MidTurn).await;
}

/// Before the lease and after the end there is no claude: a parked agent costs no process, and none
/// outlives its turn.
#[tokio::test]
async fn between_turns_there_is_none_to_kill() {
    let mut scene = Scene::new(Point::BeforeEnd).await;
    for number in 1..=2 {
        scene.operator.send("bob", "and now?").await;
        ended(&scene.rig, &mut scene.watch, "bob", TurnOutcome::Ok).await;
        for program in ["scripted-claude", "hive-mcp"] {
            assert!(scene.rig.running("bob", program).is_empty(), "{program} after turn {number}");
        }
    }
    assert_eq!(lives(&scene.operator.turns("bob").await), [(TurnOutcome::Ok, 1); 2]);
    scene.rig.end().await;
}

/// The parent gets a notice of a failed turn, with the last output of claude.
#[tokio::test]
async fn the_parent_is_notified() {
    let mut scene = Scene::at(Point::AfterSend).await;
    scene.rig.kill_claude("bob").await;
    let failed = ended(&scene.rig, &mut scene.watch, "bob", TurnOutcome::Failed).await;
    ended(&scene.rig, &mut scene.watch, "bob", TurnOutcome::Ok).await;
    let notices = scene.operator.deliveries("ada", &[]).await;
    let notice = match &notices[..] {
        [notice] => notice.message.as_ref().expect("a message"),
        other => panic!("one notice, not {other:?}"),
    };
    assert_eq!(notice.system_kind(), SystemKind::TurnFailed);
    let beginning = format!(
        "A turn of bob failed (turn {failed}, message {}):\n\n> claude ended without a result",
        scene.asked
    );
    assert!(
        notice.body.starts_with(&beginning) && notice.body.contains("tool: mcp__hive__send"),
        "{}",
        notice.body
    );
    assert_eq!(unread(&scene.operator, "operator").await.len(), 2);
    scene.rig.end().await;
}
