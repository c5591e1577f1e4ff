//! Windows: how much a stream holds at once, and how many streams an agent has open.
//!
//! Invariant: a stream never holds more than its window, except for one delivery that is larger.

use std::collections::BTreeSet;

use hive_core::limits::STREAMS_OPEN_MAX;
use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::{DeliveryState, DeliveryWindow};
use hive_tests::rig::{Client, Rig};

use crate::consumer::{ACKED, Consumer, ack, assert_refused, messages, opening, window};

/// Returns the messages to bob that are leased.
async fn leased(operator: &Client) -> Vec<u64> {
    let leased = operator.deliveries("bob", &[DeliveryState::Leased]).await;
    leased.into_iter().filter_map(|delivery| Some(delivery.message?.id)).collect()
}

#[tokio::test]
async fn settling_makes_room_and_a_new_window_changes_it() {
    let rig = Rig::duo().await;
    let (ada, operator) = (rig.agent("ada").await, rig.operator().await);
    let mut sent = Vec::new();
    for number in 1..=6 {
        sent.push(ada.send("bob", &format!("letter {number}")).await);
    }
    let bob = rig.agent("bob").await.channel();
    let mut consumer = Consumer::fresh(&bob, opening("work", window(2))).await;
    let mut held = consumer.leased(2).await;
    consumer.assert_nothing_came().await;
    assert_eq!(leased(&operator).await, sent[..2]);

    consumer.ack(&held.remove(0)).await;
    held.push(consumer.lease().await);
    assert_eq!(leased(&operator).await, sent[1..3]);
    assert_eq!(messages(&held), sent[1..3]);

    consumer.say(Say::Window(window(3)));
    held.push(consumer.lease().await);
    assert_eq!(leased(&operator).await, sent[1..4]);

    // With a smaller one, only what is below it makes room; with none, nothing does.
    consumer.say(Say::Window(window(1)));
    assert_eq!(
        consumer.settle(held.drain(..2).map(|lease| ack(&lease)).collect()).await,
        [ACKED; 2]
    );
    consumer.assert_nothing_came().await;
    assert_eq!(leased(&operator).await, sent[3..4]);
    consumer.say(Say::Window(window(0)));
    consumer.ack(&held.remove(0)).await;
    consumer.assert_nothing_came().await;
    let late = ada.send("bob", "letter 7").await;
    assert_eq!(leased(&operator).await, Vec::<u64>::new());

    consumer.say(Say::Window(window(u32::MAX)));
    let rest = consumer.leased(3).await;
    assert_eq!(messages(&rest), [sent[4], sent[5], late]);
    assert_eq!(consumer.settle(rest.iter().map(ack).collect()).await, [ACKED; 3]);
    consumer.close().await;
    rig.end().await;
}

#[tokio::test]
async fn bytes_have_a_window_too_and_one_delivery_always_fits() {
    let rig = Rig::duo().await;
    let (ada, operator) = (rig.agent("ada").await, rig.operator().await);
    let mut sent = Vec::new();
    for bytes in [4000, 400, 400, 400] {
        sent.push(ada.send("bob", &"x".repeat(bytes)).await);
    }
    let bob = rig.agent("bob").await.channel();
    let small = DeliveryWindow { deliveries: 8, bytes: 1000 };
    let mut consumer = Consumer::fresh(&bob, opening("work", small)).await;
    let large = consumer.lease().await;
    consumer.assert_nothing_came().await;
    assert_eq!(leased(&operator).await, sent[..1]);
    consumer.ack(&large).await;
    let two = consumer.leased(2).await;
    consumer.assert_nothing_came().await;
    assert_eq!(leased(&operator).await, sent[1..3]);
    consumer.ack(&two[0]).await;
    let last = consumer.lease().await;
    assert_eq!(messages(&[large, two[0].clone(), two[1].clone(), last]), sent);
    consumer.close().await;
    rig.end().await;
}

#[tokio::test]
async fn an_agent_has_eight_streams_and_the_ninth_is_refused() {
    let rig = Rig::duo().await;
    let (ada, bob) = (rig.agent("ada").await, rig.agent("bob").await.channel());
    let open = |number: usize| opening(&format!("stream {number}"), window(1));
    let mut streams = Vec::new();
    for number in 1..=STREAMS_OPEN_MAX {
        streams.push(Consumer::fresh(&bob, open(number)).await);
    }
    let other = rig.agent("bob").await.channel();
    for _ in 0..2 {
        let ninth = Consumer::try_open(&other, open(STREAMS_OPEN_MAX + 1)).await;
        let refusal = ninth.expect_err("there are eight");
        assert_refused(&refusal, Reason::CallLimit, "");
        let limit = status::metadata(&refusal).remove("limit");
        assert_eq!(limit, Some(STREAMS_OPEN_MAX.to_string()));
    }
    // Another agent has its own, and a newer stream of an id takes the place of the older.
    Consumer::fresh(&ada.channel(), open(1)).await.close().await;
    let newer = Consumer::fresh(&other, open(1)).await;
    let older = std::mem::replace(&mut streams[0], newer);
    older.refused(Reason::StreamReplaced, "stream 1").await;

    // All eight stand: each gets one message.
    let mut sent = BTreeSet::new();
    for number in 1..=STREAMS_OPEN_MAX {
        sent.insert(ada.send("bob", &format!("letter {number}")).await);
    }
    let mut leases = Vec::new();
    for stream in &mut streams {
        let lease = stream.lease().await;
        assert!(sent.remove(&lease.message), "{lease:?} is one of those, and comes once");
        leases.push(lease);
    }
    for (stream, lease) in streams.iter_mut().zip(&leases) {
        stream.ack(lease).await;
    }
    streams.pop().expect("there are eight").close().await;
    let ninth = Consumer::fresh(&other, open(STREAMS_OPEN_MAX + 1)).await;
    streams.push(ninth);
    for stream in streams {
        stream.close().await;
    }
    rig.end().await;
}
