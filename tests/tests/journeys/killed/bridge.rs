//! The bridge is killed: claude starts it again at its next call, with the same turn. What was in a
//! call when it died is an error to the model, and a delivery in it goes back.

use hive_proto::v1::{DeliveryState, RedeliveryCause};
use hive_tests::rig::{Rig, gone};
use hive_tests::scripted::script::Step;
use rustix::process::{Signal, kill_process};
use serde_json::json;

use super::{ONE_TURN, Point, Scene};
use crate::steps::{DONE, acked, answer, rule, standing, text, unread, wait_for};

async fn killed_at(point: Point) {
    let scene = Scene::at(point).await;
    let bridge = scene.rig.bridge("bob");
    kill_process(bridge, Signal::KILL).expect("the bridge runs");
    gone(bridge).await;
    scene.rig.touch("go");
    scene.comes_out(&ONE_TURN, point).await;
}

cases! {
    in_mid_turn => killed_at(Point::MidTurn),
    after_a_send => killed_at(Point::AfterSend),
    before_the_end_of_the_turn => killed_at(Point::BeforeEnd),
}

/// The call in which it died is an error to the model, which continues with a new bridge. Mail that
/// arrived in the meantime is not lost.
#[tokio::test]
async fn in_a_call_that_waits_for_mail() {
    let mut rig = Rig::duo().await;
    let call = Step::Call {
        call: "recv".to_owned(),
        input: json!({"wait_seconds": 100}),
        touch: rig.path("called"),
    };
    let steps =
        vec![call, wait_for(&rig, "go"), answer("operator", "the call has failed"), text("Done.")];
    rig.start_harness(
        "bob",
        &[rule("Wait", steps), rule("", vec![answer("operator", "got it"), text("Done.")])],
    );
    let operator = rig.operator().await;
    let waiting = operator.send("bob", "Wait for more.").await;
    rig.appeared("called").await;
    kill_process(rig.bridge("bob"), Signal::KILL).expect("the bridge runs");
    // The mail may or may not be leased to the dead bridge's call: the model sees it in its next
    // turn.
    let late = operator.send("bob", "More.").await;
    rig.touch("go");
    acked(&rig, "bob", waiting).await;
    acked(&rig, "bob", late).await;

    assert_eq!(standing(&operator, "bob", waiting).await, DONE);
    let (state, attempt, cause) = standing(&operator, "bob", late).await;
    assert_eq!((state, attempt), (DeliveryState::Acked, 1));
    assert!(
        matches!(cause, RedeliveryCause::Unspecified | RedeliveryCause::NotReceived),
        "{cause:?}"
    );
    assert_eq!(
        unread(&operator, "operator").await,
        [("the call has failed".to_owned(), waiting), ("got it".to_owned(), late)]
    );
    assert_eq!(rig.tool_results("bob")[0], "Connection closed");
    rig.end().await;
}
