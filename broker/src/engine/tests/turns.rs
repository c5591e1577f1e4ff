//! Turns: BeginTurn waits as long as it takes, returns the delivery that woke it, and is a row
//! before the reply leaves.

use hive_core::limits::{ERROR_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX, PAGE_BYTES_MAX};

use super::*;
use crate::engine::error::TurnError;

#[tokio::test]
async fn a_harness_waits_until_mail_comes_and_is_woken_by_it() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    let sent = hive.send("alice", "bob", "hello").await;
    let begun = done(waiting).await.expect("a turn begins");
    assert_eq!(
        (begun.delivery().message.id, begun.delivery().attempt, begun.pending),
        (sent, 1, 0)
    );
    assert_eq!(
        (begun.turn.kind, begun.turn.message_id, begun.turn.attempt),
        (Kind::Mail, Some(sent), 1)
    );
    assert!(begun.already_sent.is_empty());
}

#[tokio::test]
async fn waiting_costs_nothing_and_mail_for_others_starts_no_turn() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    let (commits, events) = (hive.commits(), hive.events().await.len());
    hive.send("alice", "carol", "not for bob").await;
    hive.still_waits(&waiting).await;
    // One commit for the send, three for the check that nothing else happens: bob did not poll
    // again.
    assert_eq!(hive.commits() - commits, 4);
    assert_eq!(hive.events().await.len() - events, 1);
    stop(waiting).await;
}

#[tokio::test]
async fn a_wake_without_a_reason_finds_nothing_and_waits_on() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    for _ in 0..3 {
        hive.hint("bob").await;
        hive.still_waits(&waiting).await;
    }
    hive.send("alice", "bob", "hello").await;
    done(waiting).await.expect("a turn begins");
}

#[tokio::test]
async fn it_says_how_many_more_wait() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for body in ["one", "two", "three"] {
        hive.send("alice", "bob", body).await;
    }
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    assert_eq!((run.body(), run.begun().pending), ("one", 2));
    let answer = hive.end(&run, Outcome::Ok).await;
    assert_eq!(answer.pending, 2);
}

#[tokio::test]
async fn a_turn_is_a_row_before_its_reply_leaves() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    hive.crash().await;
    let turn = hive.engine().get_turn(caller("bob"), run.id).await.expect("the turn is there");
    assert_eq!(
        (turn.outcome, turn.message_id, turn.session_epoch),
        (None, Some(sent), harness.epoch)
    );
    assert_eq!(hive.state("bob", sent).await, (State::Leased, 1));
}

#[tokio::test]
async fn a_repeated_begin_returns_the_same_turn_while_it_is_open() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "one").await;
    hive.send("alice", "bob", "two").await;
    let harness = hive.attach("bob").await;
    let (wish, key) = (hive.wish(&harness.token), request("BeginTurn", "b1", 1));
    let first =
        hive.engine().begin_turn(caller("bob"), key.clone(), wish.clone()).await.expect("a turn");
    let second = hive
        .engine()
        .begin_turn(caller("bob"), key.clone(), wish.clone())
        .await
        .expect("the same turn");
    assert_eq!(
        (second.turn.id, second.delivery().message.id),
        (first.turn.id, first.delivery().message.id)
    );
    assert_eq!(hive.count_events(EventKind::TurnBegun).await, 1);
    let other =
        hive.engine().begin_turn(caller("bob"), request("BeginTurn", "b1", 2), wish.clone()).await;
    assert_eq!(reason(other), Reason::RequestIdReused);
    let run = Run {
        agent: "bob".to_owned(),
        session_token: harness.token.clone(),
        process_token: wish.process_token.clone(),
        id: first.turn.id,
        begun: Some(first),
    };
    hive.end(&run, Outcome::Ok).await;
    let third = hive.engine().begin_turn(caller("bob"), key, wish).await.expect("a turn");
    assert_ne!(third.turn.id, run.id, "an ended turn is not given again");
    assert_eq!(third.delivery().message.body, "two");
}

#[tokio::test]
async fn a_session_has_one_turn_at_a_time() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "one").await;
    hive.send("alice", "bob", "two").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let second = hive.try_begin(&harness).await.map(|_| ()).expect_err("one is open");
    assert!(matches!(second, Refusal::Turn(TurnError::Open { id }) if id == run.id));
    let opened = hive.open(&harness, Kind::Continue).await.map(|_| ()).expect_err("one is open");
    assert!(matches!(opened, Refusal::Turn(TurnError::Open { id }) if id == run.id));
}

#[tokio::test]
async fn turns_without_mail_are_opened_by_the_harness_and_tools_work_in_them() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let waiting = hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    for kind in [Kind::Continue, Kind::Checkpoint, Kind::Compact] {
        let run = hive.open(&harness, kind).await.expect("it opens");
        let turn = hive.engine().get_turn(caller("bob"), run.id).await.expect("the turn is there");
        assert_eq!((turn.kind, turn.message_id, turn.attempt), (kind, None, 0));
        hive.send_in(&run, "alice", "tools work").await.expect("accepted");
        let answer = hive.end(&run, Outcome::Ok).await;
        assert_eq!((answer.settled.acked, answer.settled.returned), (0, 0));
    }
    assert_eq!(
        hive.state("bob", waiting).await,
        (State::Ready, 0),
        "they carry no delivery by themselves"
    );
    let run = hive.open(&harness, Kind::Checkpoint).await.expect("it opens");
    assert_eq!(hive.recv(&run, "tool-1", 1).await.deliveries.len(), 1, "but may take one");
    hive.end(&run, Outcome::Failed).await;
    assert_eq!(hive.state("bob", waiting).await, (State::Ready, 1));
}

#[tokio::test]
async fn a_turn_may_ask_for_another_one() {
    let (hive, harness, run) = in_mid_turn().await;
    hive.engine().request_next_turn(run.actor()).await.expect("noted");
    assert!(hive.end(&run, Outcome::Ok).await.next_turn_requested);
    let late = hive.engine().request_next_turn(run.actor()).await;
    assert_eq!(reason(late), Reason::TurnEnded);
    let next = hive.open(&harness, Kind::Continue).await.expect("it opens");
    assert!(!hive.end(&next, Outcome::Ok).await.next_turn_requested);
}

#[tokio::test]
async fn a_turn_keeps_the_report_of_the_harness() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    hive.send("alice", "bob", "more").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let taken = hive.recv(&run, "tool-1", 1).await;
    let sent = hive.send_in(&run, "alice", "answer").await.expect("accepted");
    hive.pass(7);
    let usage = hive_core::turn::Usage {
        input_tokens: 3,
        cost_micro_usd: 5,
        tool_call_count: 2,
        ..Default::default()
    };
    let ended = Ended {
        usage,
        model: "large".to_owned(),
        context_tokens: 1000,
        context_window_tokens: 200_000,
        compacted: true,
        error: "e".repeat(10_000),
        output_tail: format!("{}the end", "ä".repeat(10_000)),
        ..ended(Outcome::Ok)
    };
    hive.try_end(&run, ended).await.expect("it ends");
    let turn = hive.engine().get_turn(caller("bob"), run.id).await.expect("the turn is there");
    assert_eq!(
        (turn.outcome, turn.usage, turn.model.as_str(), turn.compacted),
        (Some(Outcome::Ok), usage, "large", true)
    );
    assert_eq!((turn.received, turn.sent), (ids(&taken.deliveries), vec![sent.message]));
    assert_eq!(turn.end_time.expect("it has ended").since(turn.start_time).as_secs(), 7);
    assert_eq!(turn.error.len(), 4096);
    assert!(turn.output_tail.ends_with("the end") && turn.output_tail.len() <= 8192);
    let agent = hive.agent("bob").await;
    assert_eq!((agent.model.as_str(), agent.model_in_use.as_str()), ("", "large"));
    hive.send("alice", "bob", "once more").await;
    hive.turn(&harness, Outcome::Unavailable).await;
    let agent = hive.agent("bob").await;
    assert_eq!(agent.model_in_use, "large", "a turn in which no model ran changes nothing");
    assert_eq!(
        (agent.context_tokens, agent.context_window_tokens, agent.open_turns),
        (1000, 200_000, Vec::new())
    );
}

#[tokio::test]
async fn histories_are_for_their_owner_and_the_operator() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let run = hive.turn(&harness, Outcome::Ok).await;
    hive.engine().get_turn(caller("operator"), run.id).await.expect("the operator sees all");
    let foreign = hive.engine().get_turn(caller("alice"), run.id).await;
    assert_eq!(reason(foreign), Reason::TurnNotFound);
    let (own, more) =
        hive.engine().list_turns(caller("bob"), String::new(), None, 10).await.expect("listed");
    assert_eq!((own.len(), more), (1, false));
    let foreign = hive.engine().list_turns(caller("alice"), "bob".to_owned(), None, 10).await;
    assert_eq!(reason(foreign), Reason::NotYours);
}

#[tokio::test]
async fn a_page_of_turns_fits_into_a_reply_and_loses_none() {
    let hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let each = OUTPUT_TAIL_BYTES_MAX + ERROR_BYTES_MAX;
    let count = PAGE_BYTES_MAX / each + 2;
    for _ in 0..count {
        hive.send("operator", "bob", "work").await;
        let run = hive.begin(&harness).await;
        let ended = Ended {
            error: "e".repeat(ERROR_BYTES_MAX),
            output_tail: "o".repeat(OUTPUT_TAIL_BYTES_MAX),
            ..ended(Outcome::Ok)
        };
        hive.try_end(&run, ended).await.expect("it ends");
    }
    let list = async |before| {
        let listed = hive.engine().list_turns(caller("bob"), String::new(), before, 500);
        listed.await.expect("listed")
    };
    let (first, more) = list(None).await;
    assert!(more && first.len() * each <= PAGE_BYTES_MAX, "{} turns", first.len());
    let (rest, more) = list(first.last().map(|turn| turn.id)).await;
    assert_eq!((first.len() + rest.len(), more), (count, false));
}

#[tokio::test]
async fn one_piece_of_mail_begins_one_turn_however_many_ask() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let first = hive.begin_waits(&harness).await;
    let second = hive.begin_waits(&harness).await;
    hive.send("alice", "bob", "hello").await;
    let mut answers = [done(first).await, done(second).await];
    answers.sort_by_key(Result::is_err);
    assert!(answers[0].is_ok());
    assert!(matches!(answers[1], Err(Refusal::Turn(TurnError::Open { .. }))));
    assert_eq!(hive.count_events(EventKind::DeliveryLeased).await, 1);
}

#[tokio::test]
async fn a_waiting_harness_hears_that_its_session_is_over() {
    let hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    let newer = hive.try_attach("bob", "", true).await.expect("it takes over");
    assert_eq!(reason(done(waiting).await), Reason::SessionLost);
    let waiting = hive.begin_waits(&newer).await;
    hive.retire("bob").await;
    let refusal = done(waiting).await.map(|_| ()).expect_err("retired");
    assert!(matches!(refusal.reason(), Reason::AgentRetired | Reason::SessionLost));
}

#[tokio::test]
async fn a_hint_between_looking_and_waiting_is_not_lost() {
    // Sends race with harnesses that are just about to wait; every message has to begin its turn.
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    for round in 0..50 {
        let (engine, wish, key) =
            (Arc::clone(hive.engine()), hive.wish(&harness.token), hive.request("BeginTurn"));
        let process_token = wish.process_token.clone();
        let task = tokio::spawn(async move { engine.begin_turn(caller("bob"), key, wish).await });
        for _ in 0..round % 7 {
            tokio::task::yield_now().await;
        }
        hive.send("alice", "bob", "hello").await;
        let begun = done(task).await.expect("a turn");
        let run = Run {
            agent: "bob".to_owned(),
            session_token: harness.token.clone(),
            process_token,
            id: begun.turn.id,
            begun: Some(begun),
        };
        hive.end(&run, Outcome::Ok).await;
    }
}

#[tokio::test]
async fn the_lines_of_a_turn_are_reported_by_its_session_only_and_read_in_order() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let older = hive.attach("bob").await;
    let run = hive.begin(&older).await;
    let engine = hive.engine();
    engine.check_reporter(caller("bob"), older.token.clone(), run.id).await.expect("its own turn");
    let line = |sequence: u64, text: &str| crate::store::turn_events::Line {
        sequence,
        stream: 1,
        text: text.to_owned(),
        time: engine.clock().now().wall,
    };
    let mut changed = engine.lines_changed();
    changed.mark_unchanged();
    assert_eq!(
        engine.keep_lines(run.id, vec![line(1, "one"), line(2, "two")]).await.expect("kept"),
        2
    );
    assert!(changed.has_changed().expect("the broker runs"));
    let read = engine.lines_after(run.id, 1).await.expect("read");
    assert_eq!(read.iter().map(|line| line.text.as_str()).collect::<Vec<_>>(), ["two"]);
    let newer = hive.try_attach("bob", "", true).await.expect("it takes over");
    for token in [&older.token, &newer.token] {
        assert_eq!(
            reason(engine.check_reporter(caller("bob"), token.clone(), run.id).await),
            Reason::SessionLost
        );
    }
    // For another agent's harness the turn does not exist.
    let alice = hive.attach("alice").await;
    let foreign = engine.check_reporter(caller("alice"), alice.token.clone(), run.id).await;
    assert_eq!(reason(foreign), Reason::TurnNotFound);
}
