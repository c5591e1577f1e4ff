//! Sessions: one harness per agent, fenced at the moment another takes over; a harness that
//! attaches again in time keeps everything.

use hive_core::delivery::RedeliveryCause;

use super::*;

#[tokio::test]
async fn a_second_harness_is_refused_while_the_first_lives() {
    let (hive, harness, run) = in_mid_turn().await;
    assert_eq!(reason(hive.try_attach("bob", "", false).await), Reason::AlreadyAttached);
    assert_eq!(
        reason(hive.try_attach("bob", "some old token", false).await),
        Reason::AlreadyAttached
    );
    assert!(!harness.attachment().ended().is_cancelled());
    assert_eq!(
        hive.engine().heartbeat(caller("bob"), harness.token.clone()).await.expect("alive"),
        Some(run.id)
    );
    hive.end(&run, Outcome::Ok).await;
    hive.attach("alice").await;
}

#[tokio::test]
async fn a_takeover_fences_the_older_harness_at_that_moment() {
    let (hive, older, run) = in_mid_turn().await;
    let newer = hive.try_attach("bob", "", true).await.expect("it takes over");
    assert_eq!(
        hive.count_events(EventKind::HarnessLost).await,
        1,
        "the log tells that the older one was fenced"
    );
    assert!(older.attachment().ended().is_cancelled());
    assert_eq!((newer.epoch, newer.resumed), (older.epoch + 1, false));
    // Its mail went back without blame, and whatever the zombie says is refused and changes
    // nothing.
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Fenced));
    assert_eq!(hive.state("bob", run.message()).await, (State::Ready, 1));
    let events = hive.events().await;
    assert_eq!(reason(hive.try_end(&run, ended(Outcome::Ok)).await), Reason::SessionLost);
    assert_eq!(
        reason(hive.engine().heartbeat(caller("bob"), older.token.clone()).await),
        Reason::SessionLost
    );
    assert_eq!(reason(hive.try_begin(&older).await), Reason::SessionLost);
    assert_eq!(reason(hive.send_in(&run, "alice", "from the grave").await), Reason::TurnEnded);
    assert_eq!(reason(hive.open(&older, Kind::Continue).await), Reason::SessionLost);
    assert_eq!(hive.events().await, events);
    // The end of the older one's connection is no news for the newer one.
    drop(older);
    hive.pass_and_sweep(30).await;
    let again = hive.begin(&newer).await;
    assert_eq!(
        (again.message(), again.begun().delivery().cause),
        (run.message(), Some(RedeliveryCause::Drained))
    );
    assert_eq!(reason(hive.try_end(&run, ended(Outcome::Ok)).await), Reason::SessionLost);
    assert_eq!(hive.state("bob", run.message()).await, (State::Leased, 1));
}

#[tokio::test]
async fn a_session_ends_its_own_turns_only() {
    let (hive, _older, run) = in_mid_turn().await;
    hive.end(&run, Outcome::Ok).await;
    let newer = hive.try_attach("bob", "", true).await.expect("it takes over");
    let theirs = Run { session_token: newer.token.clone(), ..run };
    assert_eq!(reason(hive.try_end(&theirs, ended(Outcome::Ok)).await), Reason::SessionLost);
}

#[tokio::test]
async fn a_fresh_start_after_a_vanished_harness_requeues_its_turn_with_an_attempt() {
    let (hive, harness, run) = in_mid_turn().await;
    drop(harness);
    let fresh = hive.attach("bob").await;
    assert!(fresh.open_turn.is_none());
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Vanished));
    let delivery = hive.delivery("bob", run.message()).await;
    let back = (State::Ready, 1, Some(RedeliveryCause::HarnessVanished));
    assert_eq!((delivery.state, delivery.attempt, delivery.cause), back);
}

#[tokio::test]
async fn a_harness_back_within_the_grace_time_keeps_epoch_and_turn() {
    let (hive, harness, run) = in_mid_turn().await;
    let (token, epoch) = (harness.token.clone(), harness.epoch);
    drop(harness);
    hive.pass_and_sweep(59).await;
    let back = hive.try_attach("bob", &token, false).await.expect("it comes back");
    assert_eq!((back.token.as_str(), back.epoch, back.resumed), (token.as_str(), epoch, true));
    assert_eq!(back.open_turn.as_ref().map(|turn| turn.id), Some(run.id));
    hive.pass_and_sweep(59).await;
    hive.send_in(&run, "alice", "still me").await.expect("the process goes on");
    assert_eq!(hive.end(&run, Outcome::Ok).await.settled.acked, 1);
}

#[tokio::test]
async fn a_session_may_be_resumed_while_its_old_connection_seems_alive() {
    let (hive, harness, run) = in_mid_turn().await;
    let back = hive.try_attach("bob", &harness.token, false).await.expect("it is the same session");
    assert!(harness.attachment().ended().is_cancelled(), "the older connection is cut off");
    drop(harness);
    hive.pass_and_sweep(30).await;
    assert_eq!(
        hive.engine().heartbeat(caller("bob"), back.token.clone()).await.expect("alive"),
        Some(run.id)
    );
    assert_eq!(hive.outcome(&run).await, None);
}

#[tokio::test]
async fn after_the_grace_time_the_turn_is_requeued() {
    let (hive, harness, run) = in_mid_turn().await;
    let token = harness.token.clone();
    drop(harness);
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.outcome(&run).await, None);
    hive.pass_and_sweep(1).await;
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Vanished));
    assert_eq!(hive.state("bob", run.message()).await, (State::Ready, 1));
    assert_eq!(hive.count_events(EventKind::HarnessLost).await, 1);
    assert_eq!(reason(hive.try_end(&run, ended(Outcome::Ok)).await), Reason::SessionLost);
    let late = hive.try_attach("bob", &token, false).await.expect("it may start afresh");
    assert!(!late.resumed && late.token != token);
}

#[tokio::test]
async fn grace_counts_from_the_last_contact_and_every_call_is_a_contact() {
    let (hive, harness, run) = in_mid_turn().await;
    // Attached, but silent: a connection that stays open proves nothing about the process behind
    // it.
    hive.pass_and_sweep(59).await;
    hive.engine().heartbeat(caller("bob"), harness.token.clone()).await.expect("alive");
    hive.pass_and_sweep(59).await;
    let thinking = HarnessState::Thinking;
    hive.report(&harness, thinking).await.expect("noted");
    hive.pass_and_sweep(59).await;
    hive.engine()
        .check_reporter(caller("bob"), harness.token.clone(), run.id)
        .await
        .expect("it reports lines");
    hive.pass_and_sweep(59).await;
    let command = hive_core::id::CommandId::new(999).expect("a number");
    let ack = hive
        .engine()
        .ack_command(caller("bob"), harness.token.clone(), command, String::new())
        .await;
    assert_eq!(reason(ack), Reason::CommandNotFound, "even a call that is refused");
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.outcome(&run).await, None);
    hive.pass_and_sweep(1).await;
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Vanished));
    assert!(harness.attachment().ended().is_cancelled(), "it hears that it is too late");
}

#[tokio::test]
async fn a_harness_that_waits_for_mail_may_be_silent_for_ever() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    for _ in 0..10 {
        hive.pass_and_sweep(86_400).await;
    }
    hive.still_waits(&waiting).await;
    hive.send("alice", "bob", "hello").await;
    done(waiting).await.expect("a turn begins");
}

#[tokio::test]
async fn the_sweeper_gets_a_hint_when_a_turn_makes_silence_a_sign_of_death() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    assert_eq!(hive.sweep().await, None, "nothing is due while nobody works");
    let due = hive.engine().hints().due.begin();
    tokio::pin!(due);
    hive.begin(&harness).await;
    tokio::time::timeout(Duration::from_secs(30), due).await.expect("it is told to look again");
    let now = hive.now().boot;
    assert_eq!(hive.sweep().await.expect("a time").since(now), hive.limits.harness_grace());
}

#[tokio::test]
async fn a_harness_that_goes_without_a_turn_ends_its_session_at_once() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let token = harness.token.clone();
    drop(harness);
    hive.sweep().await;
    assert_eq!(hive.row("bob").await.session_token, None);
    assert_eq!(reason(hive.engine().heartbeat(caller("bob"), token).await), Reason::SessionLost);
    // From now on bob is a plain consumer again.
    hive.send("alice", "bob", "hello").await;
    assert_eq!(hive.receive("bob", 1).await.len(), 1);
}

#[tokio::test]
async fn harnesses_that_go_together_end_their_sessions_together() {
    // More than one step ends.
    let names: Vec<String> = (0..40).map(|number| format!("a{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let hive = Hive::new(&names).await;
    let mut harnesses = Vec::new();
    for name in &names {
        harnesses.push(hive.attach(name).await);
    }
    let stays = harnesses.pop();
    drop(harnesses);
    hive.sweep().await;
    assert_eq!(hive.count_events(EventKind::HarnessLost).await, 39);
    drop(stays);
    hive.sweep().await;
    assert_eq!(hive.count_events(EventKind::HarnessLost).await, 40);
}

#[tokio::test]
async fn a_broker_that_restarts_in_mid_turn_does_not_end_it_and_gives_the_whole_grace_time() {
    let (mut hive, harness, run) = in_mid_turn().await;
    let (token, epoch) = (harness.token.clone(), harness.epoch);
    hive.pass(50);
    hive.crash().await;
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.outcome(&run).await, None);
    hive.send_in(&run, "alice", "the process never noticed").await.expect("accepted");
    let back = hive.try_attach("bob", &token, false).await.expect("it comes back");
    assert_eq!(
        (back.epoch, back.resumed, back.open_turn.map(|turn| turn.id)),
        (epoch, true, Some(run.id))
    );
    assert_eq!(hive.end(&run, Outcome::Ok).await.settled.acked, 1);
    assert_eq!(hive.state("bob", run.message()).await, (State::Acked, 1));
}

#[tokio::test]
async fn the_grace_time_begins_when_the_broker_serves_however_long_its_start_took() {
    let (mut hive, harness, run) = in_mid_turn().await;
    hive.restart_slowly(70).await;
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.outcome(&run).await, None);
    let back = hive.try_attach("bob", &harness.token, false).await.expect("it comes back");
    assert!(back.resumed);
}

#[tokio::test]
async fn a_broker_that_restarts_often_still_requeues_turns_in_the_end() {
    let (mut hive, harness, run) = in_mid_turn().await;
    for _ in 0..3 {
        hive.restart().await;
        hive.pass_and_sweep(40).await;
    }
    drop(harness);
    assert_eq!(hive.outcome(&run).await, None);
    hive.pass_and_sweep(20).await;
    assert_eq!(hive.outcome(&run).await, Some(Outcome::Vanished));
}

#[tokio::test]
async fn broker_restarts_use_no_attempt() {
    let (mut hive, harness, run) = in_mid_turn().await;
    for _ in 0..10 {
        hive.crash().await;
        hive.try_attach("bob", &harness.token, false).await.expect("it comes back");
    }
    hive.end(&run, Outcome::Drained).await;
    assert_eq!(hive.state("bob", run.message()).await, (State::Ready, 1));
}

#[tokio::test]
async fn a_reboot_ends_the_turn_without_blame() {
    let (mut hive, harness, run) = in_mid_turn().await;
    for _ in 0..10 {
        hive.reboot().await;
        assert_eq!(hive.outcome(&run).await, Some(Outcome::Fenced));
        assert_eq!(hive.state("bob", run.message()).await, (State::Ready, 1));
    }
    assert_eq!(reason(hive.try_end(&run, ended(Outcome::Ok)).await), Reason::LeaseLost);
    drop(harness);
    let fresh = hive.attach("bob").await;
    assert_eq!(hive.begin(&fresh).await.message(), run.message());
}

#[tokio::test]
async fn a_session_that_does_not_come_back_after_a_reboot_ends() {
    let (mut hive, _harness, _run) = in_mid_turn().await;
    hive.reboot().await;
    hive.pass_and_sweep(60).await;
    assert_eq!(hive.row("bob").await.session_token, None);
}

#[tokio::test]
async fn epochs_only_grow() {
    let mut hive = Hive::new(&["bob"]).await;
    let mut epochs = Vec::new();
    for round in 0..6 {
        match round % 3 {
            0 => hive.restart().await,
            1 => hive.reboot().await,
            _ => {}
        }
        epochs.push(hive.try_attach("bob", "", true).await.expect("it attaches").epoch);
    }
    assert!(epochs.windows(2).all(|pair| pair[0] < pair[1]), "{epochs:?}");
}

#[tokio::test]
async fn a_broker_that_shuts_down_does_not_take_its_harnesses_for_lost() {
    let mut hive = Hive::new(&["bob"]).await;
    let mut harness = hive.attach("bob").await;
    hive.engine().drain();
    harness.vanish();
    assert_eq!(hive.sweep().await, None);
    hive.restart().await;
    let back = hive.try_attach("bob", &harness.token, false).await.expect("it comes back");
    assert_eq!((back.resumed, back.epoch), (true, harness.epoch));
}

#[tokio::test]
async fn a_harness_that_gives_up_while_it_attaches_leaves_no_session_behind() {
    let hive = Hive::new(&["bob"]).await;
    hive.sweep().await;
    let hold = hive.hold().await;
    let engine = Arc::clone(hive.engine());
    let attach = Attach {
        session_token: String::new(),
        take_over: false,
        revision: String::new(),
        isolation: None,
    };
    let attaching = tokio::spawn(async move { engine.attach(caller("bob"), attach).await });
    tokio::task::yield_now().await;
    stop(attaching).await;
    let due = hive.engine().hints().due.begin();
    done(hold.release()).await.expect("committed");
    tokio::time::timeout(Duration::from_secs(30), due).await.expect("the sweeper is told to look");
    assert!(hive.row("bob").await.session_token.is_some(), "the attach itself was committed");
    hive.sweep().await;
    assert_eq!(hive.row("bob").await.session_token, None);
}
