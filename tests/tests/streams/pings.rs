//! Pings: the broker asks whether a client is there that holds leases, and ends the stream of one
//! that does not answer.
//!
//! The silences are real time, so all clients of a test are silent at once. Invariant: each time is
//! a lower bound, so a slow machine does not matter.

use std::time::{Duration, Instant};

use hive_core::limits::STREAM_PONG_MAX;
use hive_core::reason::Reason;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::stream_deliveries_response::Step as Heard;
use hive_proto::v1::{
    DeliveryState, EventKind, LeasedDelivery, OpenDeliveries, Ping, Pong, RedeliveryCause,
    SettleDeliveriesRequest,
};
use hive_tests::rig::{Line, Rig, soon};

use crate::consumer::{
    ACKED, Consumer, LOST, Lease, ack, assert_refused, opening, settle, state, window, with_grace,
};

/// Silence after which the broker asks.
const PING_AFTER: Duration = Duration::from_secs(10);
/// Pings after which a client that answers has outlived one that does not.
const PINGS: usize = 3;

/// The agents, one for each way to answer; the operator writes to each.
const CONFIG: &str = "[agents.pongs]\n[agents.windows]\n[agents.settles]\n[agents.silent]\n\
     [agents.brief]\n[agents.idle]\n[agents.full]\n\
     [agents.settled]\n[agents.called]\n[agents.resumed]\n[agents.asked]\n\
     [broker.limits]\nretry_backoff_base_ms = 20\nretry_backoff_max_ms = 40\n";

/// Opens a stream of an agent, and takes one message; its id and the lease.
async fn take(rig: &Rig, agent: &str, open: OpenDeliveries) -> (Consumer, Lease) {
    let sent = rig.operator().await.send(agent, "hello").await;
    let mut consumer = Consumer::fresh(&rig.agent(agent).await.channel(), open).await;
    let lease = consumer.lease().await;
    assert_eq!((lease.message, lease.attempt), (sent, 1));
    (consumer, lease)
}

/// Waits for a ping, before which nothing else comes.
async fn ping(consumer: &mut Consumer) {
    let step = consumer.step().await.expect("the stream goes on");
    assert_eq!(step, Some(Heard::Ping(Ping {})));
}

/// A client that answers each ping with this step has its stream for as long as it likes.
async fn answers(rig: &Rig, agent: &str, answer: Say) {
    let (begin, (mut consumer, lease)) =
        (Instant::now(), take(rig, agent, opening("work", window(1))).await);
    for number in 1..=PINGS {
        ping(&mut consumer).await;
        assert!(begin.elapsed() >= PING_AFTER * u32::try_from(number).expect("few"));
        consumer.say(answer.clone());
        if let Say::Settle(_) = answer {
            assert_eq!(consumer.results().await, []);
        }
    }
    assert!(begin.elapsed() >= PING_AFTER + STREAM_PONG_MAX, "a silent client is over now");
    consumer.ack(&lease).await;
    consumer.close().await;
    let operator = rig.operator().await;
    assert_eq!(state(&operator, agent, lease.message).await, (DeliveryState::Acked, 1, None));
}

/// A client that reads and does not answer is ended.
async fn silent(rig: &Rig, agent: &str, open: OpenDeliveries) -> Lease {
    let id = open.stream_id.clone();
    let (begin, (mut consumer, lease)) = (Instant::now(), take(rig, agent, open).await);
    ping(&mut consumer).await;
    assert!(begin.elapsed() >= PING_AFTER);
    let end = consumer.step().await.expect_err("the client is silent");
    assert!(begin.elapsed() >= PING_AFTER + STREAM_PONG_MAX);
    assert_refused(&end, Reason::StreamSilent, &id);
    lease
}

/// Its leases have their grace.
async fn settles_within_the_grace(rig: &Rig) {
    let lease = silent(rig, "silent", opening("work", window(1))).await;
    let operator = rig.operator().await;
    assert_eq!(state(&operator, "silent", lease.message).await, (DeliveryState::Leased, 1, None));
    let channel = rig.agent("silent").await.channel();
    assert_eq!(settle(&channel, vec![ack(&lease)]).await, [ACKED]);
}

/// After it they expire.
async fn is_too_late(rig: &Rig) {
    let brief = with_grace(Duration::from_millis(50), opening("work", window(1)));
    let lease = silent(rig, "brief", brief).await;
    let channel = rig.agent("brief").await.channel();
    let mut next = Consumer::fresh(&channel, opening("other", window(1))).await;
    let again = next.lease().await;
    assert_eq!((again.message, again.attempt), (lease.message, 2));
    assert_eq!(again.cause, Some(RedeliveryCause::LeaseExpired));
    assert_eq!(next.settle(vec![ack(&lease), ack(&again)]).await, [LOST, ACKED]);
    next.close().await;
}

/// A client that reads nothing is ended, too. What it was never sent is requeued without an
/// attempt.
async fn reads_nothing(rig: &Rig) {
    let mut watch = rig.watch().await;
    let sent = rig.operator().await.send("full", "hello").await;
    let open = with_grace(Duration::from_secs(3600), opening("work", window(1)));
    let line = Line::connect_without_room(&rig.agent_socket("full")).await.expect("a broker");
    let consumer = Consumer::begin(&line.channel(), open).await.expect("it begins");
    watch.kind("full", EventKind::DeliveryLeased).await;
    watch.kind("full", EventKind::DeliveryReturned).await;
    let operator = rig.operator().await;
    let ready = (DeliveryState::Ready, 1, Some(RedeliveryCause::NotReceived));
    assert_eq!(state(&operator, "full", sent).await, ready);
    drop(consumer);
}

/// Waits for a message, before which no ping comes.
async fn next_without_ping(rig: &Rig, agent: &str, consumer: &mut Consumer) {
    let sent = rig.operator().await.send(agent, "hello again").await;
    let step = consumer.step().await.expect("the stream has not ended");
    let Some(Heard::Leased(leased)) = step else { panic!("{agent} is asked: {step:?}") };
    let [leased] = <[LeasedDelivery; 1]>::try_from(leased.deliveries).expect("one lease");
    let lease = Lease::from(leased);
    assert_eq!((lease.message, lease.attempt), (sent, 1));
    consumer.ack(&lease).await;
}

#[tokio::test]
async fn a_silent_client_that_holds_leases_is_ended_and_no_other() {
    let mut rig = Rig::new(CONFIG);
    rig.start_broker().await;
    let channel = rig.agent("idle").await.channel();
    let mut idle = Consumer::fresh(&channel, opening("work", window(1))).await;
    let all = async {
        tokio::join!(
            answers(&rig, "pongs", Say::Pong(Pong {})),
            answers(&rig, "windows", Say::Window(window(1))),
            answers(&rig, "settles", Say::Settle(SettleDeliveriesRequest::default())),
            settles_within_the_grace(&rig),
            is_too_late(&rig),
            reads_nothing(&rig),
        )
    };
    soon("all clients are through", all).await;
    next_without_ping(&rig, "idle", &mut idle).await;
    idle.close().await;
    rig.end().await;
}

/// Opens a newer stream of the same id, and settles what the older one held.
async fn resumes_and_settles(rig: &Rig, agent: &str) -> Consumer {
    let (older, lease) = take(rig, agent, opening("work", window(1))).await;
    let channel = rig.agent(agent).await.channel();
    let (mut newer, listed) = Consumer::open(&channel, opening("work", window(1))).await;
    assert_eq!(listed, std::slice::from_ref(&lease));
    older.refused(Reason::StreamReplaced, "work").await;
    newer.ack(&lease).await;
    newer
}

/// Settled deliveries are not out any more.
#[tokio::test]
async fn a_client_that_has_settled_all_is_not_asked() {
    let mut rig = Rig::new(CONFIG);
    rig.start_broker().await;
    let (mut settled, lease) = take(&rig, "settled", opening("work", window(1))).await;
    settled.ack(&lease).await;
    let (mut called, lease) = take(&rig, "called", opening("work", window(1))).await;
    let channel = rig.agent("called").await.channel();
    assert_eq!(settle(&channel, vec![ack(&lease)]).await, [ACKED], "by a call of its own");
    let mut resumed = resumes_and_settles(&rig, "resumed").await;
    // The second ping of another client shows that the time of a first one is over.
    let (mut asked, _) = take(&rig, "asked", opening("work", window(1))).await;
    for _ in 0..2 {
        ping(&mut asked).await;
        asked.say(Say::Pong(Pong {}));
    }
    next_without_ping(&rig, "settled", &mut settled).await;
    next_without_ping(&rig, "called", &mut called).await;
    next_without_ping(&rig, "resumed", &mut resumed).await;
    for consumer in [settled, called, resumed, asked] {
        consumer.close().await;
    }
    rig.end().await;
}
