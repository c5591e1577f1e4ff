//! Streams of deliveries: windows, and what becomes of the leases at each kind of end.

use hive_core::delivery::RedeliveryCause;
use hive_core::limits::STREAMS_OPEN_MAX;
use hive_core::settlement::Action;

use super::*;
use crate::engine::launch::wanted::Wish;
use crate::engine::mail::stream::{DeliveryStream, Open, STEP, Window};
use crate::store::waiter::{Poll, Wake};
use hive_core::agent::PolicyPart;

/// How long the leases of a stream live on after a break, in seconds.
const GRACE: u64 = 30;

/// bob has this much mail.
async fn hive_with(count: usize) -> Hive {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..count {
        hive.send("alice", "bob", &number.to_string()).await;
    }
    hive
}

async fn try_open(
    hive: &Hive,
    id: &str,
    window: Window,
) -> Result<(DeliveryStream, Vec<Leased>), Refusal> {
    let open = Open { id: id.to_owned(), window, grace: Duration::from_secs(GRACE) };
    hive.engine().open_stream(actor("bob"), open).await
}

/// Opens a stream of this name for this number of deliveries.
async fn open(hive: &Hive, id: &str, deliveries: u32) -> (DeliveryStream, Vec<Leased>) {
    try_open(hive, id, Window::new(deliveries, 0)).await.expect("opened")
}

/// Opens a stream whose client knows of nothing before, and takes what there is; its connection
/// takes it, too.
async fn open_and_take(hive: &Hive, deliveries: u32) -> (DeliveryStream, Vec<Leased>) {
    let (mut stream, held) = open(hive, "s", deliveries).await;
    assert_eq!(held, []);
    let taken = take(&mut stream).await;
    (stream, taken)
}

async fn next(stream: &mut DeliveryStream) -> Result<Vec<Leased>, Refusal> {
    let leases = tokio::time::timeout(Duration::from_secs(30), stream.next()).await;
    leases.expect("it has leases").map(|leases| leases.deliveries)
}

/// Takes the next leases.
async fn take(stream: &mut DeliveryStream) -> Vec<Leased> {
    let leased = next(stream).await.expect("leased");
    stream.taken().add(leased.iter().filter_map(|one| one.token.clone()));
    leased
}

/// Proves that a stream has no more leases to give.
async fn nothing_more(hive: &Hive, stream: &mut DeliveryStream) {
    for _ in 0..3 {
        hive.idle().await;
        let next = stream.next();
        assert!(futures_now(next).await.is_none(), "it gives no more");
    }
}

/// Polls once; `None` while it waits.
async fn futures_now<T>(future: impl Future<Output = T>) -> Option<T> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(match future.as_mut().poll(cx) {
            std::task::Poll::Ready(done) => Some(done),
            std::task::Poll::Pending => None,
        })
    })
    .await
}

async fn assert_back(hive: &Hive, id: u64, attempt: u32, cause: RedeliveryCause) {
    let delivery = hive.delivery("bob", message(id)).await;
    let seen = (delivery.state, delivery.attempt, delivery.cause);
    assert_eq!(seen, (State::Ready, attempt, Some(cause)));
}

#[tokio::test]
async fn a_window_bounds_the_deliveries_and_settling_makes_room() {
    let hive = hive_with(5).await;
    let (mut stream, taken) = open_and_take(&hive, 2).await;
    assert_eq!(bodies(&taken), ["0", "1"]);
    assert_eq!(taken[0].remaining, None, "it lasts as long as the stream");
    nothing_more(&hive, &mut stream).await;
    hive.ack("bob", &taken[1]).await.expect("acked");
    assert_eq!(bodies(&take(&mut stream).await), ["2"]);
    nothing_more(&hive, &mut stream).await;
    stream.set_window(Window::new(4, 0)).await;
    assert_eq!(bodies(&take(&mut stream).await), ["3", "4"]);
    stream.set_window(Window::new(0, 0)).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    hive.send("alice", "bob", "5").await;
    nothing_more(&hive, &mut stream).await;
    stream.set_window(Window::new(256, 0)).await;
    assert_eq!(bodies(&take(&mut stream).await), ["5"]);
}

#[tokio::test]
async fn a_window_bounds_the_bytes_and_one_delivery_always_fits() {
    let hive = hive_with(0).await;
    for length in [50, 30, 30, 90] {
        hive.send("alice", "bob", &"x".repeat(length)).await;
    }
    let (mut stream, held) = try_open(&hive, "s", Window::new(256, 60)).await.expect("opened");
    assert_eq!(held, []);
    let lengths =
        |taken: &[Leased]| -> Vec<usize> { bodies(taken).iter().map(|body| body.len()).collect() };
    let first = take(&mut stream).await;
    assert_eq!(lengths(&first), [50]);
    nothing_more(&hive, &mut stream).await;
    hive.ack("bob", &first[0]).await.expect("acked");
    let second = take(&mut stream).await;
    assert_eq!(lengths(&second), [30, 30]);
    for leased in &second {
        hive.ack("bob", leased).await.expect("acked");
    }
    assert_eq!(lengths(&take(&mut stream).await), [90], "it is larger than the window");
}

#[tokio::test]
async fn mail_that_comes_later_is_leased_at_once() {
    let hive = hive_with(0).await;
    let (mut stream, _) = open(&hive, "s", 4).await;
    nothing_more(&hive, &mut stream).await;
    hive.send("alice", "bob", "hello").await;
    assert_eq!(bodies(&take(&mut stream).await), ["hello"]);
}

#[tokio::test]
async fn leases_last_as_long_as_the_stream_and_are_not_extended() {
    let hive = hive_with(1).await;
    let (stream, taken) = open_and_take(&hive, 1).await;
    for _ in 0..5 {
        hive.pass_and_sweep(24 * 3600).await;
    }
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    let token = taken[0].token.clone().expect("a lease");
    let extend = Action::Extend(Duration::from_secs(60));
    assert_eq!(reason(hive.settle("bob", token, extend).await), Reason::WrongState);
    hive.ack("bob", &taken[0]).await.expect("acked");
    drop(stream);
}

#[tokio::test]
async fn a_delivery_served_alone_waits_until_the_stream_holds_nothing() {
    let hive = hive_with(3).await;
    // The second fails twice, so its next attempt is served alone.
    let first = hive.receive("bob", 1).await;
    for _ in 0..2 {
        let second = hive.receive("bob", 1).await;
        hive.nack("bob", &second[0], false).await.expect("nacked");
        hive.pass(3600);
    }
    // The lease of the first has expired once, so it is not served alone.
    hive.sweep().await;
    assert_eq!(ids(&first), [message(1)]);
    hive.pass(3600);
    let (mut stream, taken) = open_and_take(&hive, 8).await;
    assert_eq!(bodies(&taken), ["0"]);
    nothing_more(&hive, &mut stream).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    let alone = take(&mut stream).await;
    assert_eq!((bodies(&alone), alone[0].delivery.attempt), (vec!["1"], 3));
    nothing_more(&hive, &mut stream).await;
    hive.ack("bob", &alone[0]).await.expect("acked");
    assert_eq!(bodies(&take(&mut stream).await), ["2"]);
}

#[tokio::test]
async fn another_consumer_may_take_what_a_stream_serves_alone_later() {
    let hive = hive_with(2).await;
    let (mut stream, taken) = open_and_take(&hive, 1).await;
    for _ in 0..2 {
        let other = hive.receive("bob", 1).await;
        hive.nack("bob", &other[0], false).await.expect("nacked");
        hive.pass(3600);
    }
    stream.set_window(Window::new(8, 0)).await;
    nothing_more(&hive, &mut stream).await;
    let other = hive.receive("bob", 1).await;
    assert_eq!((ids(&other), other[0].delivery.attempt), (vec![message(2)], 3));
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn a_newer_stream_ends_the_older_and_lists_its_leases_with_their_tokens() {
    let hive = hive_with(3).await;
    let (mut older, taken) = open_and_take(&hive, 2).await;
    let (mut newer, held) = open(&hive, "s", 8).await;
    assert_eq!(held, taken);
    assert_eq!(reason(next(&mut older).await), Reason::StreamReplaced);
    assert_eq!(bodies(&take(&mut newer).await), ["2"]);
    // The end of the older one takes nothing from the newer.
    drop(older);
    hive.pass_and_sweep(GRACE + 1).await;
    for leased in &taken {
        hive.ack("bob", leased).await.expect("its lease lives");
    }
    // Another id is another stream.
    let (_other, held) = open(&hive, "t", 8).await;
    assert_eq!(held, []);
}

#[tokio::test]
async fn what_an_older_stream_was_never_told_of_is_requeued_when_the_newer_breaks() {
    let hive = hive_with(2).await;
    let (mut older, held) = open(&hive, "s", 1).await;
    assert_eq!(held, []);
    // The lease is made, and its connection takes nothing.
    assert_eq!(bodies(&next(&mut older).await.expect("leased")), ["0"]);
    let (newer, held) = open(&hive, "s", 1).await;
    assert_eq!(bodies(&held), ["0"]);
    drop((older, newer));
    hive.sweep().await;
    assert_back(&hive, 1, 1, RedeliveryCause::NotReceived).await;
}

#[tokio::test]
async fn after_a_break_leases_have_their_grace_and_then_expire_with_an_attempt() {
    let hive = hive_with(1).await;
    let (stream, taken) = open_and_take(&hive, 1).await;
    hive.pass_and_sweep(3600).await;
    drop(stream);
    hive.pass_and_sweep(GRACE - 1).await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    hive.pass_and_sweep(1).await;
    assert_back(&hive, 1, 1, RedeliveryCause::LeaseExpired).await;
    assert_eq!(reason(hive.ack("bob", &taken[0]).await), Reason::LeaseLost);
    hive.pass(3600);
    assert_eq!(hive.receive("bob", 1).await[0].delivery.attempt, 2);
}

#[tokio::test]
async fn leases_can_be_settled_within_the_grace() {
    let hive = hive_with(1).await;
    let (stream, taken) = open_and_take(&hive, 1).await;
    drop(stream);
    hive.pass_and_sweep(GRACE - 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn a_stream_that_comes_back_within_the_grace_goes_on() {
    let hive = hive_with(2).await;
    let (stream, taken) = open_and_take(&hive, 2).await;
    drop(stream);
    hive.pass_and_sweep(GRACE - 1).await;
    let (stream, held) = open(&hive, "s", 2).await;
    assert_eq!(held, taken);
    hive.pass_and_sweep(3600).await;
    assert_eq!(hive.state("bob", message(2)).await, (State::Leased, 1));
    // It breaks again: the grace is a new one.
    drop(stream);
    hive.pass_and_sweep(GRACE - 1).await;
    hive.ack("bob", &taken[1]).await.expect("acked");
    hive.pass_and_sweep(1).await;
    assert_back(&hive, 1, 1, RedeliveryCause::LeaseExpired).await;
}

#[tokio::test]
async fn what_the_connection_never_took_is_requeued_without_an_attempt() {
    let hive = hive_with(3).await;
    let (mut stream, held) = open(&hive, "s", 1).await;
    assert_eq!(held, []);
    assert_eq!(bodies(&take(&mut stream).await), ["0"]);
    stream.set_window(Window::new(3, 0)).await;
    // These were leased, and their connection broke.
    assert_eq!(bodies(&next(&mut stream).await.expect("leased")), ["1", "2"]);
    drop(stream);
    hive.sweep().await;
    for number in [2, 3] {
        assert_back(&hive, number, 1, RedeliveryCause::NotReceived).await;
    }
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    assert_eq!(bodies(&hive.receive("bob", 5).await), ["1", "2"]);
}

#[tokio::test]
async fn leases_that_a_dropped_wait_made_are_requeued() {
    let hive = hive_with(1).await;
    let (mut stream, _) = open(&hive, "s", 1).await;
    let hold = hive.hold().await;
    // The call to lease is on its way when the stream is dropped.
    assert!(futures_now(stream.next()).await.is_none());
    drop(stream);
    done(hold.release()).await.expect("committed");
    hive.idle().await;
    hive.sweep().await;
    assert_eq!(hive.state("bob", message(1)).await.0, State::Ready);
    let taken = hive.receive("bob", 1).await;
    assert_eq!(taken[0].delivery.attempt, 1);
}

#[tokio::test]
async fn a_client_that_closes_its_side_releases_the_rest() {
    let hive = hive_with(3).await;
    let (stream, taken) = open_and_take(&hive, 3).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    stream.close().await.expect("closed");
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 1));
    for number in [2, 3] {
        assert_back(&hive, number, 1, RedeliveryCause::NotReceived).await;
    }
    let token = taken[1].token.clone().expect("a lease");
    let repeated = hive.settle("bob", token, Action::Release).await;
    assert!(repeated.is_ok(), "it was released: {repeated:?}");
}

#[tokio::test]
async fn an_agent_has_few_streams_and_a_newer_one_of_an_id_always_opens() {
    let hive = hive_with(0).await;
    let mut streams = Vec::new();
    for number in 0..STREAMS_OPEN_MAX {
        streams.push(open(&hive, &format!("stream {number}"), 1).await.0);
    }
    let another = || try_open(&hive, "another", Window::new(1, 0));
    let refused = another().await.expect_err("one too many");
    assert_eq!(refused.reason(), Reason::CallLimit);
    streams.push(open(&hive, "stream 0", 1).await.0);
    streams.pop().expect("a stream").close().await.expect("closed");
    drop(another().await.expect("there is room again"));
}

#[tokio::test]
async fn leases_come_in_steps_and_are_released_in_steps() {
    let count = STEP as usize + 8;
    let hive = hive_with(count).await;
    let (mut stream, first) = open_and_take(&hive, 256).await;
    assert_eq!(first.len(), STEP as usize);
    let rest = stream.next().await.expect("leased");
    assert_eq!((rest.deliveries.len(), rest.pending), (8, 0));
    stream.close().await.expect("all steps of the release");
    for id in 1..=count as u64 {
        assert_eq!(hive.state("bob", message(id)).await, (State::Ready, 1));
    }
}

#[tokio::test]
async fn what_is_released_at_the_end_is_not_leased_to_the_same_stream_again() {
    let hive = hive_with(1).await;
    let (mut stream, _) = open_and_take(&hive, 2).await;
    // It waits for more when it is closed, and what is released is more.
    nothing_more(&hive, &mut stream).await;
    stream.close().await.expect("closed");
    hive.idle().await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Ready, 1));
}

#[tokio::test]
async fn a_harness_that_attaches_ends_it_and_the_leases_go_back_without_an_attempt() {
    let hive = hive_with(2).await;
    let (mut stream, _) = open_and_take(&hive, 1).await;
    let harness = hive.attach("bob").await;
    assert_eq!(reason(next(&mut stream).await), Reason::HarnessAttached);
    assert_eq!(hive.state("bob", message(1)).await, (State::Ready, 1));
    assert_eq!(reason(try_open(&hive, "s", Window::new(1, 0)).await), Reason::HarnessAttached);
    let run = hive.begin(&harness).await;
    assert_eq!((run.message(), run.begun().delivery().attempt), (message(1), 1));
}

#[tokio::test]
async fn a_retired_agent_has_no_stream() {
    let hive = hive_with(1).await;
    let (mut stream, _) = open_and_take(&hive, 1).await;
    hive.retire("bob").await;
    assert_eq!(reason(next(&mut stream).await), Reason::AgentRetired);
    assert_eq!(reason(try_open(&hive, "s", Window::new(1, 0)).await), Reason::AgentRetired);
}

#[tokio::test]
async fn an_agent_that_may_not_receive_any_more_settles_within_the_grace() {
    let hive = hive_with(2).await;
    let (mut stream, taken) = open_and_take(&hive, 1).await;
    let policy = Policy { tool_groups: vec!["inbox".to_owned()], ..Policy::default() };
    hive.set_policy("bob", policy, &[PolicyPart::ToolGroups]).await.expect("set");
    assert_eq!(reason(next(&mut stream).await), Reason::CapabilityMissing);
    drop(stream);
    hive.pass_and_sweep(GRACE - 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn the_operator_has_no_stream() {
    let hive = hive_with(0).await;
    let open =
        Open { id: "s".to_owned(), window: Window::new(1, 0), grace: Duration::from_secs(GRACE) };
    assert_eq!(
        reason(hive.engine().open_stream(actor("operator"), open).await),
        Reason::NotAnAgent
    );
}

#[tokio::test]
async fn the_grace_of_a_broker_that_restarts_counts_from_its_readiness() {
    for is_crash in [false, true] {
        let mut hive = hive_with(1).await;
        let (stream, taken) = open_and_take(&hive, 1).await;
        drop(stream);
        if is_crash {
            hive.crash().await;
        } else {
            hive.restart_slowly(3600).await;
        }
        hive.pass_and_sweep(GRACE - 1).await;
        let (stream, held) = open(&hive, "s", 1).await;
        assert_eq!(held[0].token, taken[0].token);
        drop(stream);
        hive.restart_slowly(10).await;
        hive.pass_and_sweep(GRACE).await;
        assert_back(&hive, 1, 1, RedeliveryCause::LeaseExpired).await;
    }
}

#[tokio::test]
async fn a_reboot_requeues_the_leases_of_streams_without_an_attempt() {
    let mut hive = hive_with(1).await;
    for _ in 0..10 {
        let (stream, taken) = open_and_take(&hive, 1).await;
        assert_eq!(taken[0].delivery.attempt, 1);
        drop(stream);
        hive.reboot().await;
        hive.sweep().await;
        assert_eq!(hive.state("bob", message(1)).await, (State::Ready, 1));
    }
}

#[tokio::test]
async fn a_drain_ends_it_and_the_leases_can_be_settled_after_the_restart() {
    let mut hive = hive_with(1).await;
    let (mut stream, taken) = open_and_take(&hive, 1).await;
    hive.engine().drain();
    assert_eq!(reason(next(&mut stream).await), Reason::Draining);
    drop(stream);
    hive.restart_slowly(3600).await;
    hive.pass_and_sweep(GRACE - 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
}

#[tokio::test]
async fn a_stopped_agent_gets_nothing_on_its_stream() {
    let hive = hive_with(1).await;
    let stop = hive.request("StopAgent");
    let stopped = hive.engine().wish(caller("operator"), stop, name("bob"), Wish::Stop).await;
    assert!(stopped.expect("set").stopped);
    let (mut stream, _) = open(&hive, "s", 1).await;
    nothing_more(&hive, &mut stream).await;
}

#[tokio::test]
async fn what_a_failed_batch_left_leased_on_disk_is_handed_over_by_the_next_poll() {
    let hive = hive_with(3).await;
    let (stream, _) = open(&hive, "s", 2).await;
    let mut poll = stream.poll();
    let both = hive.engine().store().write(move |tx| {
        let ready = |poll| match poll {
            Poll::Ready(leases) => leases,
            other @ (Poll::Pending { .. } | Poll::Unchanged) => {
                panic!("nothing is leased: {other:?}")
            }
        };
        let mut ready =
            |is_repeat| Ok::<_, Refusal>(ready(poll(tx, Wake { is_asked: false, is_repeat })?));
        Ok::<_, Refusal>((ready(false)?, ready(true)?))
    });
    let (first, again) = both.await.expect("polled");
    assert_eq!(first.deliveries.len(), 2);
    assert_eq!(again, first);
}

#[tokio::test]
async fn a_stream_that_is_not_opened_neither_ends_nor_extends_the_grace() {
    let hive = hive_with(1).await;
    let (stream, taken) = open_and_take(&hive, 1).await;
    drop(stream);
    hive.pass_and_sweep(GRACE / 2).await;
    let policy = Policy { tool_groups: vec!["inbox".to_owned()], ..Policy::default() };
    hive.set_policy("bob", policy, &[PolicyPart::ToolGroups]).await.expect("set");
    let again = try_open(&hive, "s", Window::new(1, 0)).await;
    assert_eq!(reason(again), Reason::CapabilityMissing);
    hive.pass_and_sweep(GRACE / 2 - 1).await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1), "{taken:?}");
    hive.pass_and_sweep(1).await;
    assert_back(&hive, 1, 1, RedeliveryCause::LeaseExpired).await;
}

#[tokio::test]
async fn a_stream_whose_opening_is_aborted_leaves_the_leases_their_grace() {
    let hive = hive_with(1).await;
    let (stream, taken) = open_and_take(&hive, 1).await;
    drop(stream);
    hive.sweep().await;
    let open =
        Open { id: "s".to_owned(), window: Window::new(1, 0), grace: Duration::from_secs(GRACE) };
    let engine = Arc::clone(hive.engine());
    let again = hive.voided(async move { engine.open_stream(actor("bob"), open).await }).await;
    assert_eq!(reason(again), Reason::StorageUnavailable);
    hive.pass_and_sweep(GRACE - 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
}
