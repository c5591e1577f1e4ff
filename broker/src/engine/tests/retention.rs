//! Retention: what is settled and old goes, in small steps; what is not settled stays, however old.

use hive_core::turn::ToolUse;

use super::*;

const MONTH: Duration = Duration::from_secs(30 * 86_400);
const DAY: u64 = 86_400;

async fn prune(hive: &Hive) {
    while hive.engine().sweep_retention(MONTH).await.expect("swept") {}
}

async fn is_there(hive: &Hive, id: MessageId) -> bool {
    hive.engine().get_message(caller("operator"), id).await.is_ok()
}

#[tokio::test]
async fn settled_mail_goes_after_a_month_and_not_before() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let [acked, dropped] =
        [hive.send("alice", "bob", "one").await, hive.send("alice", "bob", "two").await];
    hive.decide("bob", acked, Decision::Ack).await.expect("acked");
    hive.decide("bob", dropped, Decision::Drop).await.expect("dropped");
    hive.pass(30 * DAY);
    prune(&hive).await;
    assert!(is_there(&hive, acked).await && is_there(&hive, dropped).await);
    hive.pass(1);
    prune(&hive).await;
    assert!(!is_there(&hive, acked).await && !is_there(&hive, dropped).await);
    assert!(hive.inbox("bob").await.is_empty());
}

#[tokio::test]
async fn retention_counts_from_the_settlement_and_not_from_the_send() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    hive.pass(100 * DAY);
    let taken = hive.receive("bob", 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    prune(&hive).await;
    assert!(is_there(&hive, sent).await);
    hive.pass(30 * DAY + 1);
    prune(&hive).await;
    assert!(!is_there(&hive, sent).await);
}

#[tokio::test]
async fn a_settlement_can_be_repeated_for_as_long_as_a_request() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let taken = hive.receive("bob", 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    let day = Duration::from_secs(DAY);
    let sweep = async || while hive.engine().sweep_retention(day).await.expect("swept") {};
    hive.pass(6 * DAY);
    sweep().await;
    hive.ack("bob", &taken[0]).await.expect("the same result");
    hive.pass(DAY + 1);
    sweep().await;
    hive.ack("bob", &taken[0]).await.expect_err("it is not known any more");
}

#[tokio::test]
async fn unsettled_deliveries_are_never_pruned() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let dead = hive.send("alice", "bob", "dead").await;
    let taken = hive.receive("bob", 1).await;
    hive.nack("bob", &taken[0], true).await.expect("given up");
    let ready = hive.send("alice", "bob", "ready").await;
    let held = hive.send("alice", "carol", "held").await;
    let leased = hive.send("alice", "carol", "leased").await;
    let harness = hive.attach("carol").await;
    hive.turn(&harness, Outcome::Cancelled).await;
    hive.begin(&harness).await;
    hive.pass(1000 * DAY);
    prune(&hive).await;
    for (who, id, state) in [
        ("bob", dead, State::Dead),
        ("bob", ready, State::Ready),
        ("carol", held, State::Held),
        ("carol", leased, State::Leased),
    ] {
        assert_eq!(hive.state(who, id).await.0, state);
    }
    assert_eq!(hive.receive("bob", 1).await.len(), 1, "it can still be served");
}

#[tokio::test]
async fn a_wall_clock_that_was_far_ahead_does_not_stop_retention() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let now = hive.now().wall;
    hive.clock.set_wall(now.after(Duration::from_secs(10_000 * DAY)));
    let ahead = hive.send("alice", "bob", "from the future").await;
    hive.decide("bob", ahead, Decision::Ack).await.expect("acked");
    hive.clock.set_wall(now);
    let sent = hive.send("alice", "bob", "from today").await;
    hive.decide("bob", sent, Decision::Ack).await.expect("acked");
    let events = hive.events().await.len();
    hive.pass(40 * DAY);
    prune(&hive).await;
    assert!(!is_there(&hive, sent).await, "what is behind it goes");
    assert!(is_there(&hive, ahead).await, "its time has not come");
    assert!(hive.events().await.len() < events);
}

#[tokio::test]
async fn a_broadcast_stays_while_one_recipient_has_not_settled_it() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let all = hive.send("alice", "*", "all hands").await;
    hive.decide("bob", all, Decision::Ack).await.expect("acked");
    hive.pass(40 * DAY);
    prune(&hive).await;
    assert_eq!(hive.state("bob", all).await.0, State::Acked);
    hive.decide("carol", all, Decision::Ack).await.expect("acked");
    hive.pass(31 * DAY);
    prune(&hive).await;
    assert!(!is_there(&hive, all).await);
}

#[tokio::test]
async fn old_turns_go_but_those_of_unsettled_mail_stay() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "good").await;
    hive.send("alice", "bob", "bad").await;
    let harness = hive.attach("bob").await;
    let good = hive.begin(&harness).await;
    let tool_uses = vec![ToolUse { name: "Bash".to_owned(), count: 2 }];
    hive.try_end(&good, Ended { tool_uses, ..ended(Outcome::Ok) }).await.expect("it ends");
    let run = hive.begin(&harness).await;
    let sent = hive.send_in(&run, "alice", "done").await.expect("accepted").message;
    hive.end(&run, Outcome::Failed).await;
    hive.pass(31 * DAY);
    prune(&hive).await;
    let gone = hive.engine().get_turn(caller("operator"), good.id).await;
    assert_eq!(reason(gone), Reason::TurnNotFound);
    let tools = |conn: &rusqlite::Connection| {
        conn.query_row("SELECT count(*) FROM turn_tool", [], |row| row.get::<_, i64>(0))
    };
    let tools = hive.engine().store().read(move |conn, _| Ok::<_, Refusal>(tools(conn)?)).await;
    assert_eq!(tools.expect("counted"), 0, "its tools went with it");
    // The bad one is run again, and what its first run said is still known.
    let again = hive.begin(&harness).await;
    assert_eq!(hive.send_in(&again, "alice", "done").await.expect("accepted").message, sent);
}

#[tokio::test]
async fn a_thread_outlives_the_message_it_answers() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let question = hive.send("alice", "bob", "well?").await;
    hive.decide("bob", question, Decision::Ack).await.expect("acked");
    hive.pass(20 * DAY);
    let reply = Send { in_reply_to: Some(question), ..mail("alice", "well.") };
    let answer = hive.send_as(actor("bob"), reply).await.expect("accepted");
    hive.pass(20 * DAY);
    prune(&hive).await;
    assert!(!is_there(&hive, question).await);
    assert_eq!(hive.delivery("alice", answer.message).await.message.in_reply_to, Some(question));
}

#[tokio::test]
async fn ids_and_event_numbers_are_never_used_again() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    hive.decide("bob", sent, Decision::Ack).await.expect("acked");
    let newest = hive.events().await.last().expect("events").sequence;
    hive.pass(400 * DAY);
    prune(&hive).await;
    assert!(hive.events().await.is_empty());
    hive.crash().await;
    // A follower of the log sees no reset of its numbers.
    assert_eq!(hive.engine().events_after(0, None, 10).await.expect("read").1.last, newest);
    assert_eq!(*hive.engine().hints().last_event().borrow(), newest);
    let next = hive.send("alice", "bob", "hello").await;
    assert!(next > sent);
    assert_eq!(hive.events().await[0].sequence, newest + 1);
}

#[tokio::test]
async fn a_step_is_small_and_the_steps_come_to_an_end() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for _ in 0..450 {
        let sent = hive.send("alice", "bob", "hello").await;
        hive.decide("bob", sent, Decision::Ack).await.expect("acked");
    }
    hive.pass(31 * DAY);
    let mut steps = 0;
    while hive.engine().sweep_retention(MONTH).await.expect("swept") {
        steps += 1;
        hive.send("operator", "alice", "sends go in between").await;
    }
    assert!((3..=10).contains(&steps), "{steps} steps");
    assert!(hive.inbox("bob").await.is_empty());
    assert_eq!(hive.inbox("alice").await.len(), steps);
}

#[tokio::test]
async fn old_requests_are_found_wherever_they_are_and_others_stay() {
    let hive = Hive::new(&["alice"]).await;
    let now = hive.now().wall.0;
    let old = now - i64::try_from(8 * DAY * 1000).expect("a time");
    let written = hive.engine().store().write(move |tx| {
        let sql = "INSERT INTO request (caller_id, rpc, request_id, fingerprint, answer, time) \
             WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 5999) \
             SELECT 1, 'Test', format('r-%05d', i), x'00', '1', iif(i % 10 = 9 OR i > 5000, ?1, ?2) FROM n";
        Ok::<_, Refusal>(tx.connection().execute(sql, (old, now))?)
    });
    assert_eq!(written.await.expect("written"), 6000);
    let count = async |hive: &Hive| {
        let sql = "SELECT sum(time = ?1), sum(time = ?2) FROM request WHERE rpc = 'Test'";
        let counts = hive.engine().store().read(move |conn, _| {
            let counts: (u32, u32) =
                conn.query_row(sql, (old, now), |row| Ok((row.get(0)?, row.get(1)?)))?;
            Ok::<_, Refusal>(counts)
        });
        counts.await.expect("read")
    };
    assert_eq!(count(&hive).await, (1499, 4501));
    prune(&hive).await;
    assert_eq!(count(&hive).await, (0, 4501));
}
