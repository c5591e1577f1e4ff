//! Restarts of the broker: the client opens its stream again by its id, and finds its leases.
//!
//! Invariant: a restart alone uses no attempt, however long the broker was away.

use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::{DeliveryState, RedeliveryCause};
use hive_tests::rig::{Rig, clock};

use crate::consumer::{
    ACKED, Consumer, LOST, ack, messages, nack, opening, settle, state, window, with_grace,
};

/// The kind of end of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    Killed,
    ShutDown,
}

/// Ends the broker; the stream ends with it.
async fn gone(rig: &mut Rig, going: Going, consumer: Consumer) {
    match going {
        Going::Killed => {
            rig.kill_broker().await;
            let status = consumer.broken().await;
            assert_eq!(hive_proto::status::reason(&status), None, "{status:?}");
        }
        Going::ShutDown => {
            let ((), ()) =
                tokio::join!(rig.stop_broker(), consumer.refused(Reason::Draining, "work"));
            let log = rig.read("hived.log");
            assert!(!log.contains("did not end in time"), "a stream holds up nothing: {log}");
        }
    }
}

async fn a_client_finds_its_leases(going: Going) {
    let mut rig = Rig::duo().await;
    let (ada, mut sent) = (rig.agent("ada").await, Vec::new());
    for number in 1..=6 {
        sent.push(ada.send("bob", &format!("letter {number}")).await);
    }
    let bob = rig.agent("bob").await.channel();
    let mut consumer = Consumer::fresh(&bob, opening("work", window(5))).await;
    let leases = consumer.leased(5).await;
    let entries = || vec![ack(&leases[0]), nack(&leases[1], "no ink")];
    let results = [ACKED, Ok(DeliveryState::Ready)];
    consumer.say(Say::Window(window(0)));
    assert_eq!(consumer.settle(entries()).await, results);
    gone(&mut rig, going, consumer).await;
    rig.start_broker().await;

    let bob = rig.agent("bob").await.channel();
    assert_eq!(settle(&bob, vec![ack(&leases[2])]).await, [ACKED], "by a call of its own");
    let (mut consumer, listed) = Consumer::open(&bob, opening("work", window(0))).await;
    assert_eq!(listed, leases[3..]);
    // What was committed before is not done again.
    assert_eq!(consumer.settle(entries()).await, results);
    assert_eq!(consumer.settle(vec![ack(&leases[3])]).await, [ACKED]);
    consumer.say(Say::Window(window(3)));
    let mut more = consumer.leased(2).await;
    more.sort_by_key(|lease| lease.message);
    assert_eq!(messages(&more), [sent[1], sent[5]]);
    assert_eq!(more.iter().map(|lease| lease.attempt).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(consumer.settle(entries()).await, [ACKED, LOST], "the second has another lease");
    consumer.settle(more.iter().chain(&leases[4..]).map(ack).collect()).await;
    consumer.close().await;
    let operator = rig.operator().await;
    for (message, attempt) in sent.into_iter().zip([1, 2, 1, 1, 1, 1]) {
        let (state, attempts, _) = state(&operator, "bob", message).await;
        assert_eq!((state, attempts), (DeliveryState::Acked, attempt));
    }
    rig.end().await;
}

cases! {
    after_a_kill_a_client_finds_its_leases => a_client_finds_its_leases(Going::Killed),
    after_a_drain_a_client_finds_its_leases => a_client_finds_its_leases(Going::ShutDown),
}

/// The grace counts from the readiness of the next broker, so no downtime is too long.
async fn downtime_is_no_part_of_the_grace(going: Going) {
    const GRACE_MS: i64 = 4_000;
    let mut rig = Rig::duo().await;
    rig.agent("ada").await.send("bob", "hello").await;
    let grace = Duration::from_millis(GRACE_MS.unsigned_abs());
    let open = with_grace(grace, opening("work", window(1)));
    let mut consumer = Consumer::fresh(&rig.agent("bob").await.channel(), open.clone()).await;
    let lease = consumer.lease().await;
    gone(&mut rig, going, consumer).await;
    clock::shows(clock::in_millis(GRACE_MS)).await;
    rig.start_broker().await;
    let (mut consumer, listed) = Consumer::open(&rig.agent("bob").await.channel(), open).await;
    assert_eq!(listed, std::slice::from_ref(&lease));
    consumer.ack(&lease).await;
    consumer.close().await;
    rig.end().await;
}

cases! {
    a_long_downtime_after_a_kill => downtime_is_no_part_of_the_grace(Going::Killed),
    a_long_downtime_after_a_drain => downtime_is_no_part_of_the_grace(Going::ShutDown),
}

/// A client that does not come back has its grace at the next broker, and no more.
async fn unclaimed_leases_expire(going: Going) {
    let mut rig = Rig::duo().await;
    let sent = rig.agent("ada").await.send("bob", "hello").await;
    let brief = with_grace(Duration::from_millis(100), opening("work", window(1)));
    let mut consumer = Consumer::fresh(&rig.agent("bob").await.channel(), brief).await;
    let lease = consumer.lease().await;
    gone(&mut rig, going, consumer).await;
    rig.start_broker().await;
    let bob = rig.agent("bob").await.channel();
    let mut other = Consumer::fresh(&bob, opening("other", window(1))).await;
    let again = other.lease().await;
    assert_eq!((again.message, again.attempt), (sent, 2));
    assert_eq!(again.cause, Some(RedeliveryCause::LeaseExpired));
    assert_eq!(other.settle(vec![ack(&lease), ack(&again)]).await, [LOST, ACKED]);
    other.close().await;
    rig.end().await;
}

cases! {
    after_a_kill_unclaimed_leases_expire => unclaimed_leases_expire(Going::Killed),
    after_a_drain_unclaimed_leases_expire => unclaimed_leases_expire(Going::ShutDown),
}
