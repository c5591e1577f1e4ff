//! Stopped agents: no turn begins, mail waits, and nothing but a start changes that.

use super::*;
use crate::engine::launch::wanted::Wish;

const START: Wish = Wish::Start { on_demand: None };

fn wish(stopped: bool) -> Wish {
    if stopped { Wish::Stop } else { START }
}

async fn set(hive: &Hive, stopped: bool) -> bool {
    let request = hive.request(if stopped { "StopAgent" } else { "StartAgent" });
    hive.engine()
        .wish(caller("operator"), request, name("bob"), wish(stopped))
        .await
        .expect("set")
        .stopped
}

async fn state(hive: &Hive) -> HarnessState {
    hive.agent("bob").await.state
}

#[tokio::test]
async fn no_turn_begins_while_an_agent_is_stopped_and_mail_waits() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    assert!(set(&hive, true).await);
    assert_eq!(state(&hive).await, HarnessState::Stopped);
    hive.send("alice", "bob", "hello").await;
    let waiting = hive.begin_waits(&harness).await;
    for kind in [Kind::Continue, Kind::Checkpoint, Kind::Compact] {
        assert_eq!(reason(hive.open(&harness, kind).await), Reason::AgentStopped, "{kind}");
    }
    assert!(!set(&hive, false).await);
    let begun = done(waiting).await.expect("it begins at once");
    assert_eq!((begun.delivery().message.body.as_str(), begun.delivery().attempt), ("hello", 1));
}

#[tokio::test]
async fn a_stop_survives_restarts_of_the_broker_and_of_the_harness() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    set(&hive, true).await;
    hive.crash().await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    hive.still_waits(&waiting).await;
    set(&hive, false).await;
    assert_eq!(done(waiting).await.expect("begun").delivery().message.body, "hello");
}

#[tokio::test]
async fn the_turn_that_runs_is_ended_by_its_harness_without_an_attempt() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    hive.send("alice", "bob", "hello").await;
    let run = hive.begin(&harness).await;
    set(&hive, true).await;
    // A stopped agent is shown with its turn, which may still send.
    assert_eq!(state(&hive).await, HarnessState::Thinking);
    hive.send_in(&run, "alice", "on it").await.expect("the turn is open");
    hive.end(&run, Outcome::Drained).await;
    assert_eq!(state(&hive).await, HarnessState::Stopped);
    let (_, failures) = hive.state("bob", run.message()).await;
    let waiting = hive.begin_waits(&harness).await;
    set(&hive, false).await;
    assert_eq!(done(waiting).await.expect("begun").delivery().message.id, run.message());
    assert_eq!(hive.state("bob", run.message()).await.1, failures);
}

#[tokio::test]
async fn a_consumer_of_a_stopped_agent_gets_nothing() {
    let hive = Hive::new(&["alice", "bob"]).await;
    set(&hive, true).await;
    hive.send("alice", "bob", "hello").await;
    let received = hive.try_receive("bob", up_to(5)).await.expect("answered");
    assert_eq!((received.deliveries.len(), received.pending), (0, 1));
    set(&hive, false).await;
    assert_eq!(hive.receive("bob", 5).await.len(), 1);
}

#[tokio::test]
async fn stopping_twice_is_stopping_once_and_a_stopped_harness_is_not_restarted() {
    let hive = Hive::new(&["bob"]).await;
    for _ in 0..2 {
        set(&hive, true).await;
    }
    assert_eq!(hive.count_events(EventKind::AgentStopped).await, 1);
    let restart = NewCommand::Order(Order::RestartHarness);
    let refusal = hive
        .engine()
        .create_command(caller("operator"), hive.request("Tell"), name("bob"), restart)
        .await;
    assert_eq!(reason(refusal), Reason::AgentStopped);
    set(&hive, false).await;
    set(&hive, false).await;
    assert_eq!(hive.count_events(EventKind::AgentStarted).await, 1);
    let gone = hive
        .engine()
        .wish(caller("operator"), hive.request("StopAgent"), name("bo"), Wish::Stop)
        .await;
    assert_eq!(reason(gone), Reason::AgentNotFound);
}

#[tokio::test]
async fn an_agent_that_is_created_again_is_not_stopped() {
    let hive = Hive::new(&["bob"]).await;
    set(&hive, true).await;
    hive.retire("bob").await;
    let refusal = hive
        .engine()
        .wish(caller("operator"), hive.request("StartAgent"), name("bob"), START)
        .await;
    assert_eq!(reason(refusal), Reason::AgentRetired);
    assert!(!hive.row("bob").await.stopped);
}
