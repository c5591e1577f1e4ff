//! Connections that break: the client comes back in time, too late, or never, or it never had its
//! leases.
//!
//! Invariant: the grace runs before a client comes back, so that the list is not what a newer
//! stream takes over from one that lives.

use std::time::Duration;

use hive_proto::v1::{DeliveryState, EventKind, RedeliveryCause};
use hive_tests::rig::{Line, Rig, soon};

use crate::consumer::{
    ACKED, Consumer, LOST, ack, messages, opening, settle, state, window, with_grace,
};

/// What the row of a delivery has while it is leased.
const LEASED: &str = "state=Integer(2);";
/// What it has, too, while its stream lives.
const LASTING: &str = "lease_until_boot=Integer(9223372036854775807);";

/// Waits until the grace of this many leases runs. It is no event, so the database is read again
/// and again.
async fn grace_runs(rig: &Rig, count: usize) {
    let ends = |row: &&String| row.contains(LEASED) && !row.contains(LASTING);
    let seen = async {
        while rig.on_disk()["open_delivery"].iter().filter(ends).count() != count {
            tokio::task::yield_now().await;
        }
    };
    soon(&format!("the grace of {count} leases runs"), seen).await;
}

/// Connects bob by a connection that can be cut.
async fn line(rig: &Rig) -> Line {
    Line::connect(&rig.agent_socket("bob")).await.expect("a broker")
}

#[tokio::test]
async fn a_client_that_comes_back_in_time_has_its_leases_with_their_tokens() {
    let rig = Rig::duo().await;
    let (ada, operator) = (rig.agent("ada").await, rig.operator().await);
    let mut sent = Vec::new();
    for body in ["one", "two", "three"] {
        sent.push(ada.send("bob", body).await);
    }
    let (bob, first) = (rig.agent("bob").await.channel(), line(&rig).await);
    let mut consumer = Consumer::fresh(&first.channel(), opening("work", window(3))).await;
    let leases = consumer.leased(3).await;
    assert_eq!(messages(&leases), sent);
    first.cut();
    let status = consumer.broken().await;
    assert_eq!(hive_proto::status::reason(&status), None, "the broker ended nothing: {status:?}");
    grace_runs(&rig, 3).await;
    let late = ada.send("bob", "four").await;

    // Between two streams a lease is settled by its token.
    assert_eq!(settle(&bob, vec![ack(&leases[0])]).await, [ACKED]);
    let second = line(&rig).await;
    let (mut consumer, listed) =
        Consumer::open(&second.channel(), opening("work", window(3))).await;
    assert_eq!(listed, leases[1..]);
    assert_eq!(consumer.lease().await.message, late, "there is room for one more");
    grace_runs(&rig, 0).await;
    consumer.ack(&leases[1]).await;

    // And once more: each break has a grace of its own.
    second.cut();
    drop(consumer);
    grace_runs(&rig, 2).await;
    let (mut consumer, listed) = Consumer::open(&bob, opening("work", window(3))).await;
    assert_eq!(messages(&listed), [sent[2], late]);
    assert_eq!(listed[0], leases[2]);
    assert_eq!(consumer.settle(listed.iter().map(ack).collect()).await, [ACKED; 2]);
    consumer.close().await;
    for message in sent.into_iter().chain([late]) {
        assert_eq!(state(&operator, "bob", message).await, (DeliveryState::Acked, 1, None));
    }
    rig.end().await;
}

#[tokio::test]
async fn leases_of_a_client_that_stays_away_expire_after_the_grace() {
    let rig = Rig::duo().await;
    let sent = rig.agent("ada").await.send("bob", "hello").await;
    let (bob, line) = (rig.agent("bob").await.channel(), line(&rig).await);
    let brief = with_grace(Duration::from_millis(100), opening("brief", window(1)));
    let mut brief_consumer = Consumer::fresh(&line.channel(), brief.clone()).await;
    let lease = brief_consumer.lease().await;
    let mut other = Consumer::fresh(&bob, opening("other", window(1))).await;
    other.assert_nothing_came().await;
    line.cut();
    brief_consumer.broken().await;

    let again = other.lease().await;
    assert_eq!((again.message, again.attempt), (sent, 2));
    assert_eq!(again.cause, Some(RedeliveryCause::LeaseExpired));
    assert_eq!(settle(&bob, vec![ack(&lease)]).await, [LOST]);
    let back = Consumer::fresh(&bob, brief).await;
    back.close().await;
    other.ack(&again).await;
    other.close().await;
    rig.end().await;
}

#[tokio::test]
async fn leases_that_the_connection_never_took_go_back_at_once() {
    let rig = Rig::duo().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let sent = rig.agent("ada").await.send("bob", "hello").await;
    // An hour would be longer than the test waits.
    let open = with_grace(Duration::from_secs(3600), opening("work", window(1)));
    let line = Line::connect_without_room(&rig.agent_socket("bob")).await.expect("a broker");
    let consumer = Consumer::begin(&line.channel(), open.clone()).await.expect("it begins");
    watch.kind("bob", EventKind::DeliveryLeased).await;
    // Dropping the stream would close its side, and a half-close releases all leases.
    line.cut();
    consumer.broken().await;
    watch.kind("bob", EventKind::DeliveryReturned).await;
    let ready = (DeliveryState::Ready, 1, Some(RedeliveryCause::NotReceived));
    assert_eq!(state(&operator, "bob", sent).await, ready);
    let bob = rig.agent("bob").await.channel();
    let mut consumer = Consumer::fresh(&bob, open).await;
    let lease = consumer.lease().await;
    assert_eq!((lease.attempt, lease.cause), (1, Some(RedeliveryCause::NotReceived)));
    consumer.ack(&lease).await;
    consumer.close().await;
    rig.end().await;
}
