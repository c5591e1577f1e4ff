//! Settlements on a stream: results in order, one for each entry, and repeats.
//!
//! Invariant: a settlement by a lost lease fails its own entry only.

use hive_core::reason::Reason;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::{DeliveryState, Extend, RedeliveryCause, Settlement};
use hive_tests::rig::Rig;

use crate::consumer::{
    ACKED, Consumer, LOST, Lease, Settled, ack, messages, nack, opening, release, settle, state,
    window,
};

/// The result of a nack, and of a release.
const READY: Settled = Ok(DeliveryState::Ready);

#[tokio::test]
async fn each_entry_has_its_own_result_in_order() {
    let rig = Rig::duo().await;
    let (ada, mut sent) = (rig.agent("ada").await, Vec::new());
    for number in 1..=5 {
        sent.push(ada.send("bob", &format!("letter {number}")).await);
    }
    let bob = rig.agent("bob").await.channel();
    let mut consumer = Consumer::fresh(&bob, opening("work", window(5))).await;
    let leases = consumer.leased(5).await;
    assert_eq!(messages(&leases), sent);
    // From here on nothing is leased, so what goes back stays ready.
    consumer.say(Say::Window(window(0)));

    // One lease is lost to a call, another never was.
    assert_eq!(settle(&bob, vec![ack(&leases[2])]).await, [ACKED]);
    let unknown = Lease { token: format!("{}x", leases[4].token), ..leases[4].clone() };
    let extend = Settlement {
        target: Some(Target::LeaseToken(leases[4].token.clone())),
        action: Some(Action::Extend(Extend::default())),
    };
    let first = vec![ack(&leases[0]), release(&leases[2]), nack(&leases[1], "no ink")];
    let second = vec![ack(&unknown), extend, release(&leases[3]), ack(&leases[0])];
    // Several requests at once: the results come in their order.
    consumer.say_settle(first.clone());
    consumer.say_settle(second.clone());
    consumer.say_settle(Vec::new());
    consumer.say_settle(first.clone());
    let first_results = vec![ACKED, LOST, READY];
    assert_eq!(consumer.results().await, first_results);
    assert_eq!(consumer.results().await, [LOST, Err(Reason::WrongState), READY, ACKED]);
    assert_eq!(consumer.results().await, []);
    assert_eq!(consumer.results().await, first_results, "a repeat has the same results");

    let operator = rig.operator().await;
    for (message, expected) in sent.iter().zip([
        (DeliveryState::Acked, 1, None),
        (DeliveryState::Ready, 1, Some(RedeliveryCause::Nacked)),
        (DeliveryState::Acked, 1, None),
        (DeliveryState::Ready, 1, Some(RedeliveryCause::NotReceived)),
        (DeliveryState::Leased, 1, None),
    ]) {
        assert_eq!(state(&operator, "bob", *message).await, expected, "{message}");
    }
    consumer.ack(&leases[4]).await;
    consumer.close().await;
    rig.end().await;
}

#[tokio::test]
async fn another_agents_lease_cannot_be_settled() {
    let rig = Rig::duo().await;
    let sent = rig.operator().await.send("ada", "hello").await;
    let ada = rig.agent("ada").await.channel();
    let mut owner = Consumer::fresh(&ada, opening("work", window(1))).await;
    let lease = owner.lease().await;
    // Streams of two agents may have the same id.
    let bob = rig.agent("bob").await.channel();
    let mut thief = Consumer::fresh(&bob, opening("work", window(1))).await;
    assert_eq!(thief.settle(vec![ack(&lease)]).await, [LOST]);
    let operator = rig.operator().await;
    assert_eq!(state(&operator, "ada", sent).await, (DeliveryState::Leased, 1, None));
    owner.ack(&lease).await;
    owner.close().await;
    thief.close().await;
    rig.end().await;
}
