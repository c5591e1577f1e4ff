//! Kicks: an agent whose turn was interrupted gets one notice to go on, and an agent that crashes
//! its harness does not get them for ever.

use std::collections::BTreeMap;

use hive_core::agent::KickOnStart;

use super::*;
use crate::engine::declared::Declared;

/// Longer than any backoff of a delivery or a park.
const LONG: u64 = 1_000;

/// A hive whose agent `bob` is declared with this value.
async fn hive_with(kick_on_start: KickOnStart) -> Hive {
    let hive = Hive::new(&[]).await;
    let bob = Declared {
        parent: None,
        role: String::new(),
        model: String::new(),
        policy: Policy::default(),
        available_models: Vec::new(),
        kick_on_start,
        on_demand: false,
    };
    hive.engine().declare(BTreeMap::from([(name("bob"), bob)])).await.expect("declared");
    hive
}

/// Returns the number of RESTARTED notices that were ever sent to `bob`.
async fn kicks(hive: &Hive) -> usize {
    let inbox = hive.inbox("bob").await;
    inbox
        .iter()
        .filter(|delivery| delivery.message.system_kind == Some(SystemKind::Restarted))
        .count()
}

/// `bob`'s harness ends without a word.
async fn crash(hive: &Hive, harness: Harness) {
    drop(harness);
    hive.pass_and_sweep(LONG).await;
}

/// A turn without mail is open under a harness.
async fn continuing(hive: &Hive) -> (Harness, Run) {
    let harness = hive.attach("bob").await;
    let run = hive.open(&harness, Kind::Continue).await.expect("opened");
    (harness, run)
}

#[tokio::test]
async fn an_interrupted_agent_is_asked_to_continue() {
    for outcome in [Outcome::Vanished, Outcome::Fenced, Outcome::Drained] {
        let hive = Hive::new(&["bob"]).await;
        let (harness, run) = continuing(&hive).await;
        assert_eq!(kicks(&hive).await, 0);
        if outcome == Outcome::Drained {
            hive.end(&run, outcome).await;
        }
        let again = if outcome == Outcome::Fenced {
            hive.try_attach("bob", "", true).await.expect("taken over")
        } else {
            drop(harness);
            hive.attach("bob").await
        };
        assert_eq!(kicks(&hive).await, 1, "{outcome:?}");
        let told = hive.turn(&again, Outcome::Ok).await;
        assert!(told.body().contains(&format!("turn {}", run.id)), "{}", told.body());
        drop(again);
        hive.attach("bob").await;
        assert_eq!(kicks(&hive).await, 1, "it has gone on");
    }
}

#[tokio::test]
async fn a_reboot_interrupts_too() {
    let mut hive = Hive::new(&["bob"]).await;
    let (harness, _) = continuing(&hive).await;
    drop(harness);
    hive.reboot().await;
    assert_eq!(kicks(&hive).await, 0, "not before there is a session");
    hive.attach("bob").await;
    assert_eq!(kicks(&hive).await, 1);
}

#[tokio::test]
async fn a_redelivery_says_so_itself() {
    let hive = Hive::new(&["bob"]).await;
    let sent = hive.send("operator", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    hive.begin(&harness).await;
    drop(harness);
    let harness = hive.attach("bob").await;
    assert_eq!(hive.state("bob", sent).await.0, State::Ready);
    hive.pass(LONG);
    hive.turn(&harness, Outcome::Drained).await;
    drop(harness);
    hive.attach("bob").await;
    assert_eq!(kicks(&hive).await, 0);
}

#[tokio::test]
async fn a_turn_whose_mail_the_operator_settled_was_interrupted_all_by_itself() {
    let hive = Hive::new(&["bob"]).await;
    let sent = hive.send("operator", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    hive.begin(&harness).await;
    hive.decide("bob", sent, Decision::Ack).await.expect("acked");
    drop(harness);
    hive.attach("bob").await;
    assert_eq!(kicks(&hive).await, 1);
}

#[tokio::test]
async fn a_turn_that_was_asked_for_and_never_opened_is_made_up_for() {
    let hive = Hive::new(&["bob"]).await;
    for (outcome, expected) in [(Outcome::Ok, 1), (Outcome::Cancelled, 1)] {
        let (harness, run) = continuing(&hive).await;
        hive.engine().request_next_turn(run.actor()).await.expect("asked for");
        hive.end(&run, outcome).await;
        drop(harness);
        let harness = hive.attach("bob").await;
        assert_eq!(kicks(&hive).await, expected, "{outcome:?}");
        if outcome == Outcome::Ok {
            hive.turn(&harness, Outcome::Ok).await;
        }
        drop(harness);
    }
}

#[tokio::test]
async fn a_turn_without_an_interruption_gets_no_kick() {
    let mut hive = Hive::new(&["bob"]).await;
    let sent = hive.send("operator", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    hive.end(&run, Outcome::Cancelled).await;
    drop(harness);
    drop(hive.attach("bob").await);
    hive.decide("bob", sent, Decision::Release).await.expect("released");
    let harness = hive.attach("bob").await;
    hive.turn(&harness, Outcome::Ok).await;
    let upkeep = hive.open(&harness, Kind::Compact).await.expect("opened");
    drop((harness, upkeep));
    let harness = hive.attach("bob").await;
    assert_eq!(kicks(&hive).await, 0, "nothing of the agent's work was cut off");
    hive.open(&harness, Kind::Continue).await.expect("opened");
    let token = harness.token.clone();
    drop(harness);
    hive.restart().await;
    let harness = hive.try_attach("bob", &token, false).await.expect("it comes back");
    assert!(harness.resumed);
    assert_eq!(kicks(&hive).await, 0, "the broker alone was restarted");
}

#[tokio::test]
async fn a_kick_waits_under_a_park() {
    let hive = Hive::new(&["bob"]).await;
    let (harness, run) = continuing(&hive).await;
    hive.engine().request_next_turn(run.actor()).await.expect("asked for");
    hive.end(&run, Outcome::AuthFailed).await;
    drop(harness);
    let harness = hive.attach("bob").await;
    assert_eq!(kicks(&hive).await, 1);
    stop(hive.begin_waits(&harness).await).await;
}

#[tokio::test]
async fn always_and_never_mean_it() {
    let hive = hive_with(KickOnStart::Always).await;
    for number in 1..=3 {
        let harness = hive.attach("bob").await;
        assert_eq!(kicks(&hive).await, number);
        drop(harness);
        let harness = hive.attach("bob").await;
        assert_eq!(kicks(&hive).await, number, "the earlier one still waits");
        hive.turn(&harness, Outcome::Ok).await;
        drop(harness);
    }
    let hive = hive_with(KickOnStart::Never).await;
    let (harness, _) = continuing(&hive).await;
    drop(harness);
    hive.attach("bob").await;
    assert_eq!(kicks(&hive).await, 0);
    assert_eq!(hive.agent("bob").await.kick_on_start, KickOnStart::Never);
}

/// Lets `bob` crash its harness at every turn, for as long as a turn begins. Answers how many
/// began.
async fn crashes(hive: &Hive) -> u32 {
    let mut calls = 0;
    // More sessions than turns: an agent that gets no turn in several sessions gets none later.
    for _ in 0..20 {
        let harness = hive.attach("bob").await;
        hive.pass(LONG);
        let ready = hive.inbox("bob").await.iter().any(|delivery| delivery.state == State::Ready);
        if ready {
            hive.begin(&harness).await;
            calls += 1;
        }
        crash(hive, harness).await;
    }
    calls
}

#[tokio::test]
async fn an_agent_that_crashes_for_ever_is_called_no_more_often_than_a_message_has_attempts() {
    for mode in KickOnStart::ALL {
        let most = 6;
        let hive = hive_with(mode).await;
        let (harness, _) = continuing(&hive).await;
        crash(&hive, harness).await;
        let calls = 1 + crashes(&hive).await;
        assert!(calls <= most, "{mode:?}: {calls} calls after a turn without mail");
        let hive = hive_with(mode).await;
        let harness = hive.attach("bob").await;
        if mode == KickOnStart::Always {
            hive.turn(&harness, Outcome::Ok).await;
        }
        hive.send("operator", "bob", "poison").await;
        hive.begin(&harness).await;
        crash(&hive, harness).await;
        let calls = 1 + crashes(&hive).await;
        assert!((5..=most).contains(&calls), "{mode:?}: {calls} calls with mail");
    }
}

#[tokio::test]
async fn a_hundred_idle_agents_restart_without_a_call() {
    let mut hive = Hive::new(&[]).await;
    let names: Vec<String> = (0..100).map(|number| format!("agent-{number}")).collect();
    for agent in &names {
        hive.create(agent, None, Policy::default()).await;
        hive.send("operator", agent, "hello").await;
        let harness = hive.attach(agent).await;
        hive.turn(&harness, Outcome::Ok).await;
    }
    hive.reboot().await;
    for agent in &names {
        hive.attach(agent).await;
        assert!(hive.notices(agent).await.is_empty(), "{agent}");
    }
}
