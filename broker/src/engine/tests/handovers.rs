//! Handovers: leases whose answer no client got are requeued at once, without an attempt.

use hive_core::delivery::RedeliveryCause;

use super::*;
use crate::engine::mail::handover::Handover;
use crate::engine::mail::receive::Received;
use crate::store::request::RequestKey;

/// bob has this much mail.
async fn hive_with(count: usize) -> Hive {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..count {
        hive.send("alice", "bob", &number.to_string()).await;
    }
    hive
}

/// Receives one message; the answer is on its way.
async fn on_its_way(hive: &Hive, key: &RequestKey) -> (Received, Handover) {
    hive.engine().receive(actor("bob"), key.clone(), up_to(1)).await.expect("leased")
}

async fn assert_requeued(hive: &Hive, id: MessageId) {
    hive.sweep().await;
    let delivery = hive.delivery("bob", id).await;
    let requeued = (State::Ready, 1, Some(RedeliveryCause::NotReceived), None);
    let seen = (delivery.state, delivery.attempt, delivery.cause, delivery.not_before);
    assert_eq!(seen, requeued);
}

#[tokio::test]
async fn an_answer_that_is_never_taken_uses_no_attempt_and_no_backoff() {
    let hive = hive_with(2).await;
    for _ in 0..7 {
        let (received, handover) = on_its_way(&hive, &hive.request("ReceiveMessages")).await;
        assert_eq!(ids(&received.deliveries), [message(1)]);
        drop(handover);
        assert_requeued(&hive, message(1)).await;
    }
    let taken = hive.receive("bob", 1).await;
    assert_eq!((ids(&taken), taken[0].delivery.attempt), (vec![message(1)], 1));
    hive.pass_and_sweep(59).await;
    hive.ack("bob", &taken[0]).await.expect("an answer that was taken stays");
}

#[tokio::test]
async fn the_sweep_is_notified_of_a_missed_answer() {
    let hive = hive_with(1).await;
    let (_, handover) = on_its_way(&hive, &hive.request("ReceiveMessages")).await;
    hive.sweep().await;
    let due = hive.engine().hints().due.begin();
    tokio::pin!(due);
    drop(handover);
    tokio::time::timeout(Duration::from_secs(30), due).await.expect("notified");
}

#[tokio::test]
async fn calls_with_one_id_share_their_leases_until_the_last_of_them_ends() {
    let hive = hive_with(1).await;
    let key = request("ReceiveMessages", "r1", 1);
    let (first, lost) = on_its_way(&hive, &key).await;
    let (again, repeat) = on_its_way(&hive, &key).await;
    assert_eq!(first.deliveries, again.deliveries);
    drop(lost);
    hive.sweep().await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    drop(repeat);
    assert_requeued(&hive, message(1)).await;
}

#[tokio::test]
async fn a_repeat_that_is_lost_takes_nothing_from_the_first_call_while_that_is_open() {
    let hive = hive_with(1).await;
    for is_taken in [false, true] {
        let key = hive.request("ReceiveMessages");
        let (first, open) = on_its_way(&hive, &key).await;
        let (_, repeat) = on_its_way(&hive, &key).await;
        drop(repeat);
        hive.sweep().await;
        assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
        if is_taken {
            open.taken();
            hive.sweep().await;
            hive.ack("bob", &first.deliveries[0]).await.expect("its client has it");
        } else {
            drop(open);
            assert_requeued(&hive, message(1)).await;
        }
    }
}

#[tokio::test]
async fn a_late_end_of_the_first_call_takes_nothing_from_its_repeat() {
    let hive = hive_with(1).await;
    let key = request("ReceiveMessages", "r1", 1);
    let (_, lost) = on_its_way(&hive, &key).await;
    let (again, repeat) = on_its_way(&hive, &key).await;
    repeat.taken();
    drop(lost);
    hive.sweep().await;
    hive.ack("bob", &again.deliveries[0]).await.expect("its client has it");
}

#[tokio::test]
async fn a_repeat_that_is_lost_takes_nothing_from_the_client_of_the_first_answer() {
    let hive = hive_with(1).await;
    let key = request("ReceiveMessages", "r1", 1);
    // The first answer is taken before the repeat begins, and after.
    for is_taken_before in [true, false] {
        let (first, handover) = on_its_way(&hive, &key).await;
        let mut handover = Some(handover);
        if is_taken_before {
            handover.take().expect("once").taken();
        }
        let (_, repeat) = on_its_way(&hive, &key).await;
        handover.into_iter().for_each(Handover::taken);
        drop(repeat);
        hive.sweep().await;
        let token = first.deliveries[0].token.clone().expect("a lease");
        let nack = hive.nack("bob", &first.deliveries[0], false).await;
        assert_eq!(nack.expect("the lease of its client"), State::Ready, "{token}");
        hive.pass(300);
    }
}

#[tokio::test]
async fn a_call_that_ends_before_its_answer_requeues_what_it_leased() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    let sent = hive.send("alice", "bob", "hello").await;
    let hold = hive.hold().await;
    let (engine, key) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    // The call ends while the writer works: whether its poll comes before or after, nothing stays.
    let call = tokio::spawn(async move { engine.receive(actor("bob"), key, up_to(1)).await });
    tokio::task::yield_now().await;
    stop(call).await;
    done(hold.release()).await.expect("committed");
    hive.idle().await;
    hive.sweep().await;
    assert_eq!(hive.delivery("bob", sent).await.state, State::Ready);
}

#[tokio::test]
async fn a_tool_call_that_never_got_its_answer_received_nothing() {
    let hive = hive_with(1).await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let sent = hive.send("alice", "bob", "hello").await;
    let ask = Receive { tool_use: Some("tool-1".to_owned()), ..up_to(1) };
    let key = hive.request("ReceiveMessages");
    let (received, handover) =
        hive.engine().receive(run.actor(), key, ask).await.expect("leased to the turn");
    assert_eq!(ids(&received.deliveries), [sent]);
    drop(handover);
    assert_requeued(&hive, sent).await;
    // In the same turn another tool call receives it.
    assert_eq!(ids(&hive.recv(&run, "tool-2", 1).await.deliveries), [sent]);
    let ended = Ended { returned_tool_uses: ["tool-2".into()].into(), ..Ended::new(Outcome::Ok) };
    let counts = hive.try_end(&run, ended).await.expect("ended").settled;
    assert_eq!((counts.acked, counts.returned), (2, 0));
}

#[tokio::test]
async fn a_call_that_is_late_leases_nothing_and_repeats_what_was_leased() {
    let hive = hive_with(2).await;
    let late = Receive { leases_until: Some(std::time::Instant::now()), ..up_to(1) };
    let receive = async |id: &str, receive: Receive| {
        let key = request("ReceiveMessages", id, 1);
        hive.engine().receive(actor("bob"), key, receive).await.expect("an answer")
    };
    let (nothing, _) = receive("r1", late.clone()).await;
    assert_eq!((nothing.deliveries, nothing.pending), (vec![], 2));
    assert_eq!(hive.state("bob", message(1)).await, (State::Ready, 0), "it was never leased");
    let (first, lost) = receive("r2", up_to(1)).await;
    assert_eq!(ids(&first.deliveries), [message(1)]);
    let (again, taken) = receive("r2", late).await;
    assert_eq!(again.deliveries, first.deliveries);
    taken.taken();
    drop(lost);
    hive.sweep().await;
    hive.ack("bob", &again.deliveries[0]).await.expect("its client has it");
}
