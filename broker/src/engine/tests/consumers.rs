//! Consumers without a harness: leases with a time, proven by a token, settled one by one.

use hive_core::delivery::RedeliveryCause;

use hive_core::settlement::{Action, Settled};

use super::*;

/// Longer than any test waits; nothing here waits for its end.
const WAIT: Duration = Duration::from_secs(180);

async fn extend(hive: &Hive, leased: &Leased, seconds: u64) -> Result<Settled, Refusal> {
    let token = leased.token.clone().expect("a consumer's lease");
    hive.settle("bob", token, Action::Extend(Duration::from_secs(seconds))).await
}

/// bob has this much mail.
async fn hive_with(count: usize) -> Hive {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..count {
        hive.send("alice", "bob", &number.to_string()).await;
    }
    hive
}

#[tokio::test]
async fn a_consumer_takes_mail_for_a_time_and_acks_it() {
    let hive = hive_with(3).await;
    let received = hive.try_receive("bob", up_to(2)).await.expect("taken");
    assert_eq!((bodies(&received.deliveries), received.pending), (vec!["0", "1"], 1));
    let first = &received.deliveries[0];
    assert_eq!(first.remaining, Some(Duration::from_secs(60)));
    assert_ne!(first.token, received.deliveries[1].token);
    hive.ack("bob", first).await.expect("acked");
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 1));
    assert_eq!(hive.state("bob", message(2)).await, (State::Leased, 1));
}

#[tokio::test]
async fn a_leased_delivery_goes_to_no_other_consumer() {
    let hive = hive_with(3).await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        seen.extend(ids(&hive.receive("bob", 1).await));
    }
    assert_eq!(seen, [message(1), message(2), message(3)]);
}

#[tokio::test]
async fn settling_twice_is_settling_once() {
    let hive = hive_with(2).await;
    let taken = hive.receive("bob", 2).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    assert_eq!(hive.nack("bob", &taken[1], false).await.expect("given back"), State::Ready);
    let events = hive.events().await;
    hive.ack("bob", &taken[0]).await.expect("known as done, with another request id too");
    assert_eq!(hive.nack("bob", &taken[1], false).await.expect("known as done"), State::Ready);
    assert_eq!(hive.events().await, events);
    assert_eq!(hive.state("bob", message(2)).await, (State::Ready, 1));
    // But a settlement is not turned into another one.
    assert_eq!(reason(hive.nack("bob", &taken[0], false).await), Reason::LeaseLost);
    assert_eq!(reason(hive.ack("bob", &taken[1]).await), Reason::LeaseLost);
    assert_eq!(hive.events().await, events);
}

#[tokio::test]
async fn a_nack_uses_an_attempt_and_backs_off() {
    let hive = hive_with(1).await;
    for attempt in 1..=4 {
        let taken = hive.receive("bob", 1).await;
        assert_eq!(taken[0].delivery.attempt, attempt);
        hive.nack("bob", &taken[0], false).await.expect("given back");
        assert!(hive.receive("bob", 1).await.is_empty(), "it waits out its backoff");
        hive.pass(3600);
    }
    let taken = hive.receive("bob", 1).await;
    assert_eq!(hive.nack("bob", &taken[0], false).await.expect("the last attempt"), State::Dead);
    let delivery = hive.delivery("bob", message(1)).await;
    assert_eq!(
        (delivery.last_error.as_str(), delivery.cause),
        ("cannot", Some(RedeliveryCause::Nacked))
    );
    assert_eq!(hive.notices("operator").await.len(), 1);
}

#[tokio::test]
async fn a_permanent_nack_is_a_dead_letter_at_once() {
    let hive = hive_with(2).await;
    let taken = hive.receive("bob", 1).await;
    assert_eq!(hive.nack("bob", &taken[0], true).await.expect("given up"), State::Dead);
    assert_eq!(hive.nack("bob", &taken[0], true).await.expect("known as done"), State::Dead);
    assert_eq!(bodies(&hive.receive("bob", 1).await), ["1"]);
    assert_eq!(hive.notices("operator").await.len(), 1);
}

#[tokio::test]
async fn an_expired_lease_requeues_the_delivery_with_an_attempt() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    hive.pass_and_sweep(1).await;
    let delivery = hive.delivery("bob", message(1)).await;
    let back = (State::Ready, 1, Some(RedeliveryCause::LeaseExpired));
    assert_eq!((delivery.state, delivery.attempt, delivery.cause), back);
    assert_eq!(reason(hive.ack("bob", &taken[0]).await), Reason::LeaseLost);
    assert_eq!(reason(hive.nack("bob", &taken[0], false).await), Reason::LeaseLost);
    assert_eq!(reason(extend(&hive, &taken[0], 60).await), Reason::LeaseLost);
    // The next holder is safe from the former one.
    hive.pass(3600);
    let next = hive.receive("bob", 1).await;
    assert_eq!(reason(hive.ack("bob", &taken[0]).await), Reason::LeaseLost);
    hive.ack("bob", &next[0]).await.expect("acked by its holder");
}

#[tokio::test]
async fn the_sweeper_knows_when_the_next_lease_runs_out() {
    let hive = hive_with(2).await;
    assert_eq!(hive.sweep().await, None);
    let due = hive.engine().hints().due.begin();
    tokio::pin!(due);
    let now = hive.now().boot;
    hive.receive("bob", 1).await;
    tokio::time::timeout(Duration::from_secs(30), due).await.expect("it is told to look again");
    assert_eq!(hive.sweep().await.expect("a time").since(now), Duration::from_secs(60));
}

#[tokio::test]
async fn a_lease_is_extended_as_often_as_its_holder_likes() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    for _ in 0..5 {
        hive.pass_and_sweep(50).await;
        let until = extend(&hive, &taken[0], 60).await.expect("extended");
        assert_eq!(until, extend(&hive, &taken[0], 60).await.expect("said twice"));
        assert_eq!(until, Settled::Extended(Duration::from_secs(60)));
    }
    hive.ack("bob", &taken[0]).await.expect("acked");
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 1));
    assert_eq!(reason(extend(&hive, &taken[0], 60).await), Reason::LeaseLost);
}

#[tokio::test]
async fn tokens_are_not_guessed_and_not_anothers() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    assert_eq!(reason(hive.ack("alice", &taken[0]).await), Reason::LeaseLost);
    let alices = "2.1.ffffffffffffffffffffffffffffffff";
    for token in ["", "0", "ffffffffffffffffffffffffffffffff", "999999.1.f", "1.1.f", alices] {
        let guess = hive.settle("bob", token, Action::Ack).await;
        assert_eq!(reason(guess), Reason::LeaseLost);
    }
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
}

#[tokio::test]
async fn a_delivery_shows_when_its_state_changed_and_not_when_it_was_read() {
    let hive = hive_with(1).await;
    hive.pass(5);
    let (key, taken) = (request("ReceiveMessages", "r1", 1), hive.now().wall);
    let first = receive(hive.engine(), actor("bob"), key.clone(), up_to(1)).await.expect("taken");
    hive.pass(5);
    extend(&hive, &first.deliveries[0], 60).await.expect("extended");
    let again = receive(hive.engine(), actor("bob"), key, up_to(1)).await.expect("answered again");
    for received in [first, again] {
        assert_eq!(received.deliveries[0].delivery.state_time, taken);
    }
}

#[tokio::test]
async fn a_repeated_receive_gives_the_same_leases_while_they_live() {
    let mut hive = hive_with(3).await;
    let key = request("ReceiveMessages", "r1", 1);
    let first = receive(hive.engine(), actor("bob"), key.clone(), up_to(2)).await.expect("taken");
    let again =
        receive(hive.engine(), actor("bob"), key.clone(), up_to(2)).await.expect("answered again");
    assert_eq!(ids(&first.deliveries), ids(&again.deliveries));
    assert_eq!(first.deliveries[0].token, again.deliveries[0].token);
    assert_eq!(first.deliveries[0].remaining, again.deliveries[0].remaining);
    hive.crash().await;
    let again = receive(hive.engine(), actor("bob"), key.clone(), up_to(2))
        .await
        .expect("answered by the next broker too");
    assert_eq!(first.deliveries[1].token, again.deliveries[1].token);
    let other =
        receive(hive.engine(), actor("bob"), request("ReceiveMessages", "r1", 2), up_to(1)).await;
    assert_eq!(reason(other), Reason::RequestIdReused);
    // A settled delivery is left out, and nothing is added.
    hive.ack("bob", &first.deliveries[0]).await.expect("acked");
    let rest = receive(hive.engine(), actor("bob"), key.clone(), up_to(2)).await.expect("repeated");
    assert_eq!(ids(&rest.deliveries), [message(2)]);
    // Without a live lease the repeat is a new receive.
    hive.ack("bob", &first.deliveries[1]).await.expect("acked");
    let new = receive(hive.engine(), actor("bob"), key, up_to(2)).await.expect("taken");
    assert_eq!(ids(&new.deliveries), [message(3)]);
}

#[tokio::test]
async fn an_empty_poll_writes_nothing() {
    let hive = hive_with(0).await;
    let changes = async || {
        let read = hive
            .engine()
            .store()
            .write(|tx| Ok::<_, Refusal>(tx.connection().total_changes()))
            .await;
        read.expect("the writer answers")
    };
    let before = changes().await;
    for _ in 0..5 {
        let received = hive.try_receive("bob", up_to(5)).await.expect("answered");
        assert_eq!((received.deliveries.len(), received.pending, received.alone), (0, 0, false));
    }
    assert_eq!(changes().await, before);
}

#[tokio::test]
async fn a_consumer_may_wait_and_is_woken_by_mail() {
    let hive = hive_with(0).await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    let waiting = hive
        .waits(async move {
            receive(&engine, actor("bob"), key, Receive { wait: WAIT, ..up_to(5) }).await
        })
        .await;
    hive.send("alice", "bob", "hello").await;
    assert_eq!(bodies(&done(waiting).await.expect("taken").deliveries), ["hello"]);
}

#[tokio::test]
async fn two_consumers_share_an_inbox_without_sharing_mail() {
    let hive = hive_with(0).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        let (engine, key) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
        let ask = Receive { wait: WAIT, ..up_to(1) };
        waiting
            .push(hive.waits(async move { receive(&engine, actor("bob"), key, ask).await }).await);
    }
    for body in ["one", "two", "three"] {
        hive.send("alice", "bob", body).await;
    }
    let mut got = Vec::new();
    for task in waiting {
        got.extend(ids(&done(task).await.expect("taken").deliveries));
    }
    got.sort();
    assert_eq!(got, [message(1), message(2), message(3)]);
}

#[tokio::test]
async fn consumers_are_refused_while_a_harness_is_attached() {
    let hive = hive_with(2).await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    let taken = hive.receive("bob", 2).await;
    let ask = Receive { wait: WAIT, ..up_to(1) };
    let waiting = hive.waits(async move { receive(&engine, actor("bob"), key, ask).await }).await;
    let harness = hive.attach("bob").await;
    assert_eq!(reason(done(waiting).await), Reason::HarnessAttached);
    assert_eq!(reason(hive.try_receive("bob", up_to(1)).await), Reason::HarnessAttached);
    // A consumer keeps its earlier leases until they expire.
    hive.ack("bob", &taken[0]).await.expect("acked");
    let parked = hive.begin_waits(&harness).await;
    hive.pass_and_sweep(60).await;
    assert_eq!(hive.state("bob", message(2)).await, (State::Ready, 1));
    hive.pass(5);
    hive.hint("bob").await;
    assert_eq!(done(parked).await.expect("a turn").delivery().message.id, message(2));
}

#[tokio::test]
async fn a_broker_restart_renews_the_leases() {
    let mut hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    hive.pass(59);
    hive.crash().await;
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn leases_start_again_when_the_broker_serves_after_any_length_of_start() {
    let mut hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    hive.restart_slowly(120).await;
    hive.pass_and_sweep(59).await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn a_long_outage_of_the_broker_uses_no_attempt() {
    let mut hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    for _ in 0..10 {
        hive.pass(3600);
        hive.restart().await;
        hive.sweep().await;
    }
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn a_reboot_ends_the_leases_without_blame() {
    let mut hive = hive_with(1).await;
    for _ in 0..10 {
        let taken = hive.receive("bob", 1).await;
        assert_eq!(taken[0].delivery.attempt, 1);
        hive.reboot().await;
        hive.sweep().await;
        assert_eq!(hive.state("bob", message(1)).await, (State::Ready, 1));
        assert_eq!(reason(hive.ack("bob", &taken[0]).await), Reason::LeaseLost);
    }
    assert_eq!(hive.count_events(EventKind::DeliveryDead).await, 0);
}

#[tokio::test]
async fn a_poison_message_is_taken_alone_by_consumers_too() {
    let hive = hive_with(3).await;
    for _ in 0..2 {
        let taken = hive.receive("bob", 1).await;
        hive.nack("bob", &taken[0], false).await.expect("given back");
        hive.pass(3600);
    }
    let taken = hive.receive("bob", 5).await;
    assert_eq!((bodies(&taken), taken[0].delivery.attempt), (vec!["0"], 3));
    assert_eq!(bodies(&hive.receive("bob", 5).await), ["1", "2"]);
}

#[tokio::test]
async fn an_error_that_is_too_long_is_refused_before_anything_changes() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    let token = taken[0].token.clone().expect("a token");
    let nack = Action::Nack { error: "e".repeat(4097), permanent: false };
    let nack = hive.settle("bob", token, nack).await;
    assert_eq!(reason(nack), Reason::FieldInvalid);
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
}

#[tokio::test]
async fn a_consumer_whose_connection_breaks_while_it_waits_takes_nothing() {
    let hive = hive_with(0).await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    let ask = Receive { wait: WAIT, ..up_to(1) };
    let waiting = hive.waits(async move { receive(&engine, actor("bob"), key, ask).await }).await;
    stop(waiting).await;
    let sent = hive.send("alice", "bob", "hello").await;
    hive.idle().await;
    assert_eq!(hive.state("bob", sent).await, (State::Ready, 0));
}

#[tokio::test]
async fn a_consumer_that_gives_up_before_it_is_served_takes_nothing() {
    let hive = hive_with(1).await;
    // An earlier call has made the broker know the name, so that this one goes straight to the
    // writer.
    let taken = hive.receive("bob", 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    let sent = hive.send("alice", "bob", "hello").await;
    let hold = hive.hold().await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    let call = tokio::spawn(async move { receive(&engine, actor("bob"), key, up_to(1)).await });
    tokio::task::yield_now().await;
    stop(call).await;
    done(hold.release()).await.expect("committed");
    hive.idle().await;
    assert_eq!(hive.state("bob", sent).await, (State::Ready, 0));
}

#[tokio::test]
async fn a_nack_after_an_ack_is_refused_also_where_an_earlier_lease_was_nacked() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let first = hive.receive("bob", 1).await;
    hive.nack("bob", &first[0], false).await.expect("given back");
    hive.pass(5);
    let second = hive.receive("bob", 1).await;
    hive.ack("bob", &second[0]).await.expect("done");
    assert_eq!(reason(hive.nack("bob", &second[0], false).await), Reason::LeaseLost);
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 2));
}
