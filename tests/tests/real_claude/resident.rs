//! A claude that stays between turns: when it goes, what takes its place, and that it never
//! outlives who started it.

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause, TurnOutcome};
use hive_tests::api::{Reply, Script};
use hive_tests::rig::{Mode, gone, soon};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::stage::{Stage, count};

both!(
    a_cancel_ends_the_turn_and_the_next_one_goes_on,
    a_drain_takes_the_turn_back_and_leaves_no_process
);

/// Waits in a tool call where the prompt says so.
fn waits() -> Script {
    let wait = Reply::tool("mcp__hive__recv", json!({"wait_seconds": 150}));
    Script::new()
        .when("This is attempt", [Reply::text("Done.")])
        .when("wait", [wait, Reply::text("Done.")])
}

async fn waits_in_a_tool(stage: &Stage) {
    stage
        .api
        .wait_until("the model is asked", |requests| {
            requests.iter().any(|request| request.prompt.contains("| wait"))
        })
        .await;
    let called = |lines: &str| lines.contains("mcp__hive__recv");
    let agent = stage.operator.get_agent("ada").await;
    let turn = stage.operator.turn(agent.open_turn_ids[0]).await;
    soon("the tool is called", async {
        while !called(&serde_json::to_string(&stage.lines(&turn).await).unwrap_or_default()) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Ada's turn waits in a tool call.
async fn waiting(stage: &mut Stage) -> Pid {
    stage.watch.kind("ada", EventKind::TurnBegun).await;
    waits_in_a_tool(stage).await;
    stage.rig.the_one("ada", "claude")
}

/// A claude that stays, after a turn about "the first".
async fn stays(script: Script) -> (Stage, Pid) {
    let mut stage = Stage::in_mode(Mode::Resident, script).await;
    stage.start();
    stage.send("the first").await;
    stage.ok().await;
    let pid = stage.rig.the_one("ada", "claude");
    (stage, pid)
}

/// Checks that another claude runs the next turn, in the same conversation.
async fn goes_on(stage: &mut Stage, before: Pid) {
    let message = stage.send("the next").await;
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 1), "{turn:?}");
    assert_ne!(stage.rig.the_one("ada", "claude"), before);
    assert_eq!(count(&stage.last_request_of(message), "| the first\n"), 1, "the same conversation");
}

async fn a_cancel_ends_the_turn_and_the_next_one_goes_on(mode: Mode) {
    let mut stage = Stage::in_mode(mode, waits()).await;
    stage.start();
    stage.send("the first").await;
    stage.ok().await;
    let message = stage.operator.send("ada", "wait for it").await;
    let claude = waiting(&mut stage).await;
    stage.order(&["cancel", "ada"]).await;
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.message_id), (TurnOutcome::Cancelled, message), "{turn:?}");
    gone(claude).await;
    assert_eq!(stage.operator.delivery("ada", message).await.state(), DeliveryState::Held);
    goes_on_with_the_first(&mut stage).await;
    stage.end().await;
}

async fn goes_on_with_the_first(stage: &mut Stage) {
    let next = stage.send("the next").await;
    assert_eq!(stage.ok().await.message_id, next);
    assert_eq!(count(&stage.last_request_of(next), "| the first\n"), 1, "the same conversation");
}

async fn a_drain_takes_the_turn_back_and_leaves_no_process(mode: Mode) {
    let mut stage = Stage::in_mode(mode, waits()).await;
    stage.start();
    stage.send("the first").await;
    stage.ok().await;
    let message = stage.send("wait for it").await;
    waiting(&mut stage).await;
    stage.rig.stop_harness("ada").await;
    assert_eq!(
        hive_tests::rig::strays(&stage.rig.path("agents/ada")),
        [],
        "no claude and no server is left"
    );
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Drained, 1), "{turn:?}");
    stage.start();
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 1), "{turn:?}");
    let last = stage.last_request_of(message);
    assert!(last.prompt.contains("cut off by a restart"), "{}", last.prompt);
    assert_eq!(count(&last, "| the first\n"), 1, "the same conversation");
    stage.end().await;
}

#[tokio::test]
async fn it_ends_when_it_has_rested() {
    let mut stage = Stage::in_mode(Mode::Resident, Script::new()).await;
    stage.set_env("HIVE_RESIDENT_IDLE_SECS", "1");
    stage.start();
    stage.send("the first").await;
    stage.ok().await;
    // claude may have been idle long enough already.
    if let [pid] = stage.rig.running("ada", "claude")[..] {
        gone(pid).await;
    }
    assert_eq!(stage.rig.running("ada", "hive-mcp"), [], "its servers go with it");
    goes_on_with_the_first(&mut stage).await;
    stage.end().await;
}

#[tokio::test]
async fn one_that_is_killed_at_rest_costs_nothing() {
    let (mut stage, pid) = stays(Script::new()).await;
    kill_process(pid, Signal::KILL).expect("it runs");
    gone(pid).await;
    goes_on(&mut stage, pid).await;
    assert_eq!(stage.turns().await.len(), 2);
    stage.end().await;
}

#[tokio::test]
async fn one_that_is_killed_in_mid_turn_requeues_its_mail() {
    let (mut stage, pid) = stays(waits()).await;
    let message = stage.send("wait for it").await;
    assert_eq!(waiting(&mut stage).await, pid);
    kill_process(pid, Signal::KILL).expect("it runs");
    gone(pid).await;
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Failed, 1), "{turn:?}");
    assert!(turn.error.contains("signal 9"), "{turn:?}");
    let turn = stage.ok().await;
    assert_eq!((turn.message_id, turn.attempt), (message, 2), "{turn:?}");
    let delivery = stage.operator.delivery("ada", message).await;
    assert_eq!(delivery.redelivery_cause(), RedeliveryCause::TurnFailed);
    goes_on(&mut stage, pid).await;
    stage.end().await;
}

#[tokio::test]
async fn a_takeover_ends_the_one_that_rests_with_the_other_harness() {
    let (mut stage, pid) = stays(Script::new()).await;
    stage.options.args = vec!["--take-over".to_owned()];
    stage.rig.start_harness_with("ada", &stage.options);
    let status = stage.rig.harness_ends("ada").await;
    assert_eq!(status.code(), Some(1), "{}", stage.rig.read("ada.log"));
    gone(pid).await;
    goes_on(&mut stage, pid).await;
    stage.end().await;
}

#[tokio::test]
async fn a_restart_replaces_it_and_the_agent_is_notified() {
    let (mut stage, pid) = stays(Script::new()).await;
    stage.order(&["restart", "ada"]).await;
    gone(pid).await;
    let turn = stage.ok().await;
    let told = stage.requests_of(turn.message_id).pop().expect("the model was asked");
    assert!(
        told.prompt.contains("you were started anew") && told.mentions("| the first\n"),
        "{}",
        told.prompt
    );
    goes_on(&mut stage, pid).await;
    stage.end().await;
}
