//! Faults of the disk: what was voided never happened, neither in the database nor in memory, and a
//! retry does it once.

use hive_core::id::TurnId;

use super::*;
use crate::engine::turn::begin::Begin;
use crate::store::agent::AgentRow;
use crate::store::turn::NewTurn;
use crate::store::{Tx, agent, turn};

fn unavailable<T>(answer: Result<T, Refusal>) {
    let refusal = answer.map(|_| ()).expect_err("it is void");
    assert_eq!(refusal.reason(), Reason::StorageUnavailable);
    assert!(refusal.retry_after().is_some(), "it is worth a retry");
}

#[tokio::test]
async fn an_aborted_send_is_no_send_and_its_retry_is_one() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (engine, key) = (Arc::clone(hive.engine()), request("SendMessage", "r1", 1));
    let retried = key.clone();
    unavailable(
        hive.voided(async move { engine.send(actor("alice"), key, mail("bob", "hello")).await })
            .await,
    );
    assert!(hive.inbox("bob").await.is_empty());
    let sent = hive.send_with("alice", retried, "bob", "hello").await.expect("accepted").message;
    assert_eq!(sent, message(1), "the number of a message that never was is given to one that is");
    assert_eq!(hive.inbox("bob").await.len(), 1);
    assert_eq!(hive.events().await.len(), 3);
}

#[tokio::test]
async fn a_turn_whose_end_was_aborted_keeps_its_lease_and_its_grace_time() {
    let (hive, harness, run) = in_mid_turn().await;
    let (engine, end, key) =
        (Arc::clone(hive.engine()), ended(Outcome::Ok), request("EndTurn", "e1", 1));
    let retried = key.clone();
    let ending = run.clone();
    unavailable(hive.voided(async move { end_turn(&engine, &ending, key, end).await }).await);
    assert_eq!(hive.outcome(&run).await, None);
    let token = harness.token.clone();
    drop(harness);
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.outcome(&run).await, None, "it is not given back before its time");
    hive.try_attach("bob", &token, false).await.expect("it comes back");
    let answer = end_turn(hive.engine(), &run, retried, ended(Outcome::Ok)).await.expect("it ends");
    assert_eq!(answer.settled.acked, 1);
}

#[tokio::test]
async fn an_aborted_attach_lets_the_older_session_resume() {
    let (hive, harness, run) = in_mid_turn().await;
    let engine = Arc::clone(hive.engine());
    let attach = Attach {
        session_token: String::new(),
        take_over: true,
        revision: String::new(),
        isolation: None,
    };
    unavailable(hive.voided(async move { engine.attach(caller("bob"), attach).await }).await);
    assert_eq!(hive.outcome(&run).await, None);
    hive.sweep().await;
    let back = hive.try_attach("bob", &harness.token, false).await.expect("it comes back");
    assert_eq!((back.resumed, back.epoch), (true, harness.epoch));
    assert_eq!(hive.end(&run, Outcome::Ok).await.settled.acked, 1);
}

#[tokio::test]
async fn an_attach_in_an_aborted_batch_fences_no_harness() {
    let (hive, harness, run) = in_mid_turn().await;
    for session_token in [String::new(), harness.token.clone()] {
        let engine = Arc::clone(hive.engine());
        let attach =
            Attach { session_token, take_over: true, revision: String::new(), isolation: None };
        unavailable(hive.voided(async move { engine.attach(caller("bob"), attach).await }).await);
        assert!(
            !harness.attachment().ended().is_cancelled(),
            "its successor never reached the disk"
        );
        assert_eq!(reason(hive.try_attach("bob", "", false).await), Reason::AlreadyAttached);
    }
    // The turn continues as if nothing had happened, and its end is recorded.
    hive.sweep().await;
    assert_eq!(hive.end(&run, Outcome::Ok).await.settled.acked, 1);
    drop(harness);
    hive.try_attach("bob", "", false).await.expect("there is room for another");
}

#[tokio::test]
async fn a_turn_that_was_opened_in_an_aborted_batch_makes_no_silence_a_sign_of_death() {
    let hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let (engine, wish, key) =
        (Arc::clone(hive.engine()), hive.wish(&harness.token), hive.request("BeginTurn"));
    let wish = Begin { kind: Kind::Compact, ..wish };
    let opened = async move { engine.begin_turn(caller("bob"), key, wish).await };
    unavailable(hive.voided(opened).await);
    assert_eq!(
        hive.engine().sweep_sessions().await.expect("swept"),
        None,
        "there is nothing to look out for"
    );
}

/// Writes what a batch left on disk that was reported as aborted: no effect of it was applied. Then
/// the database fails and recovers.
async fn left_on_disk(
    hive: &Hive,
    write: impl FnOnce(&Tx<'_>, &AgentRow) -> rusqlite::Result<()> + std::marker::Send + 'static,
) {
    let row = hive.row("bob").await;
    let written = hive.engine().store().write(move |tx| Ok::<_, Refusal>(write(tx, &row)?));
    written.await.expect("written");
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("SendMessage"));
    let aborted = async move { engine.send(actor("alice"), key, mail("bob", "aborted")).await };
    unavailable(hive.voided(aborted).await);
}

#[tokio::test]
async fn a_session_that_is_on_disk_after_all_replaces_the_older_one() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    left_on_disk(&hive, |tx, bob| agent::set_session(tx, bob.key, 7, "of the disk", "")).await;
    hive.sweep().await;
    assert!(harness.attachment().ended().is_cancelled(), "its session is over");
    hive.pass_and_sweep(59).await;
    let back = hive.try_attach("bob", "of the disk", false).await.expect("it comes back");
    assert_eq!((back.resumed, back.epoch), (true, 7));
}

#[tokio::test]
async fn a_session_that_is_on_disk_after_all_ends_if_no_harness_resumes_it() {
    let hive = Hive::new(&["alice", "bob"]).await;
    left_on_disk(&hive, |tx, bob| agent::set_session(tx, bob.key, 1, "of the disk", "")).await;
    hive.sweep().await;
    let due = hive.sweep().await.expect("its grace time is looked out for");
    assert!(due > hive.now().boot);
    hive.pass_and_sweep(60).await;
    assert_eq!(hive.row("bob").await.session_token, None);
    assert_eq!(hive.sweep().await, None);
}

#[tokio::test]
async fn a_turn_that_is_on_disk_after_all_has_its_grace_time() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let id = TurnId::new(1000).expect("not 0");
    left_on_disk(&hive, move |tx, bob| {
        let (agent, session_epoch) = (bob.key, bob.session_epoch);
        let turn = NewTurn {
            id,
            agent,
            kind: Kind::Compact,
            conversation: "main",
            session_epoch,
            process_token: "of the disk",
            boot_id: "boot-0",
            delivery: None,
            model: "",
            traced: None,
        };
        turn::insert(tx, &turn)
    })
    .await;
    drop(harness);
    let outcome = async || {
        hive.engine().get_turn(caller("operator"), id).await.expect("the turn is there").outcome
    };
    hive.pass_and_sweep(59).await;
    assert_eq!(outcome().await, None);
    hive.pass_and_sweep(60).await;
    assert_eq!(outcome().await, Some(Outcome::Vanished));
}

#[tokio::test]
async fn a_retirement_that_is_on_disk_after_all_cuts_the_harness_off() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    left_on_disk(&hive, |tx, bob| {
        agent::clear_session(tx, bob.key)?;
        agent::update(tx, &AgentRow { retired: true, session_token: None, ..bob.clone() })
    })
    .await;
    hive.sweep().await;
    assert!(harness.attachment().ended().is_cancelled());
}

#[tokio::test]
async fn of_two_that_attach_in_one_batch_the_second_sees_the_first() {
    let hive = Hive::new(&["bob"]).await;
    for (take_over, wanted) in [(false, Some(Reason::AlreadyAttached)), (true, None)] {
        let hold = hive.hold().await;
        let attach = |take_over| {
            let engine = Arc::clone(hive.engine());
            let attach = Attach {
                session_token: String::new(),
                take_over,
                revision: String::new(),
                isolation: None,
            };
            tokio::spawn(async move { engine.attach(caller("bob"), attach).await })
        };
        let first = attach(true);
        tokio::task::yield_now().await;
        let second = attach(take_over);
        tokio::task::yield_now().await;
        done(hold.release()).await.expect("committed");
        let (first, second) = (done(first).await.expect("it attaches"), done(second).await);
        assert_eq!(second.as_ref().err().map(Refusal::reason), wanted);
        assert_eq!(first.attachment.ended().is_cancelled(), take_over, "only a takeover fences it");
    }
}

#[tokio::test]
async fn an_aborted_attach_does_not_hide_that_the_older_harness_has_gone() {
    let (hive, harness, run) = in_mid_turn().await;
    let engine = Arc::clone(hive.engine());
    let attach = Attach {
        session_token: String::new(),
        take_over: true,
        revision: String::new(),
        isolation: None,
    };
    unavailable(hive.voided(async move { engine.attach(caller("bob"), attach).await }).await);
    drop(harness);
    hive.sweep().await;
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.outcome(&run).await, None);
    hive.pass_and_sweep(1).await;
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Vanished));
    assert_eq!(hive.state("bob", run.message()).await, (State::Ready, 1));
}

#[tokio::test]
async fn an_aborted_sweep_is_retried() {
    let (hive, harness, run) = in_mid_turn().await;
    drop(harness);
    hive.pass(60);
    let engine = Arc::clone(hive.engine());
    unavailable(hive.voided(async move { engine.sweep_sessions().await }).await);
    assert_eq!(hive.outcome(&run).await, None);
    hive.sweep().await;
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Vanished));
    assert_eq!(hive.count_events(EventKind::HarnessLost).await, 1);
}

#[tokio::test]
async fn an_agent_whose_retirement_was_aborted_keeps_its_harness() {
    let (hive, harness, run) = in_mid_turn().await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("RetireAgent"));
    unavailable(
        hive.voided(async move { engine.retire_agent(caller("operator"), key, name("bob")).await })
            .await,
    );
    assert!(!harness.attachment().ended().is_cancelled());
    hive.send_in(&run, "alice", "still here").await.expect("accepted");
    hive.retire("bob").await;
    assert!(harness.attachment().ended().is_cancelled());
}

#[tokio::test]
async fn waiting_harnesses_and_consumers_outlive_a_fault() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("SendMessage"));
    unavailable(
        hive.voided(async move { engine.send(actor("alice"), key, mail("bob", "void")).await })
            .await,
    );
    hive.still_waits(&waiting).await;
    hive.send("alice", "bob", "hello").await;
    assert_eq!(done(waiting).await.expect("a turn").delivery().message.body, "hello");
}

#[tokio::test]
async fn a_harness_whose_waiter_was_aborted_gets_an_error_and_its_turn_at_the_retry() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    // An earlier call has made the broker know the name, so that the next one goes straight to the
    // writer.
    stop(hive.begin_waits(&harness).await).await;
    let sent = hive.send("alice", "bob", "hello").await;
    let (engine, wish, key) =
        (Arc::clone(hive.engine()), hive.wish(&harness.token), hive.request("BeginTurn"));
    let (again, same_wish, same_key) =
        (Arc::clone(&engine), hive.wish(&harness.token), key.clone());
    unavailable(
        hive.voided(async move { engine.begin_turn(caller("bob"), key, wish).await }).await,
    );
    let begun = again.begin_turn(caller("bob"), same_key, same_wish).await.expect("a turn");
    assert_eq!((begun.delivery().message.id, begun.turn.id.get()), (sent, 2));
    assert_eq!(hive.state("bob", sent).await, (State::Leased, 1));
    assert_eq!(hive.count_events(EventKind::TurnBegun).await, 1);
}
