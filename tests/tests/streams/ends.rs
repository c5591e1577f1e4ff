//! Ends of streams on a connection that lives: the client closes its side, a newer stream takes
//! over, a harness attaches, the agent is retired or loses a right, a step is wrong.
//!
//! Invariant: none of these ends uses an attempt, and no delivery is leased to two clients at once.

use hive_core::reason::Reason;
use hive_proto::v1::stream_deliveries_request::Step as Say;
use hive_proto::v1::{
    DeliveryState, Policy, RedeliveryCause, SetPolicyRequest, Settlement, TurnOutcome,
};
use hive_tests::rig::{Harness, Rig, call, fresh_id, request};

use crate::consumer::{
    ACKED, Consumer, LOST, ack, assert_refused, messages, nack, opening, release, settle, state,
    window,
};

/// Sends this many messages from ada to bob; their ids.
async fn send(rig: &Rig, count: usize) -> Vec<u64> {
    let (ada, mut sent) = (rig.agent("ada").await, Vec::new());
    for number in 1..=count {
        sent.push(ada.send("bob", &format!("letter {number}")).await);
    }
    sent
}

#[tokio::test]
async fn a_half_close_releases_the_rest_and_ends_with_ok() {
    let rig = Rig::duo().await;
    let sent = send(&rig, 6).await;
    let (bob, operator) = (rig.agent("bob").await.channel(), rig.operator().await);
    let mut consumer = Consumer::fresh(&bob, opening("work", window(4))).await;
    let leases = consumer.leased(4).await;
    assert_eq!(messages(&leases), sent[..4]);
    // What is due comes before the end: the results of both requests. Without room in the window
    // nothing is leased after them.
    consumer.say(Say::Window(window(0)));
    consumer.say_settle(vec![ack(&leases[0])]);
    consumer.say_settle(vec![ack(&leases[0]), nack(&leases[1], "no ink")]);
    let due = vec![vec![ACKED], vec![ACKED, Ok(DeliveryState::Ready)]];
    assert_eq!(consumer.close().await, (due, Vec::new()));

    assert_eq!(state(&operator, "bob", sent[0]).await, (DeliveryState::Acked, 1, None));
    for lease in &leases[2..] {
        let delivery = operator.delivery("bob", lease.message).await;
        assert_eq!(delivery.state(), DeliveryState::Ready);
        assert_eq!(delivery.redelivery_cause(), RedeliveryCause::NotReceived);
        assert_eq!((delivery.attempt, delivery.not_before_time), (1, None));
    }
    let mut next = Consumer::fresh(&bob, opening("work", window(8))).await;
    let mut again = next.leased(5).await;
    again.sort_by_key(|lease| lease.message);
    assert_eq!(messages(&again), sent[1..]);
    let nacked = (2, Some(RedeliveryCause::Nacked));
    assert_eq!((again[0].attempt, again[0].cause), nacked);
    for lease in &again[1..3] {
        assert_eq!((lease.attempt, lease.cause), (1, Some(RedeliveryCause::NotReceived)));
    }
    assert_eq!(settle(&bob, vec![ack(&leases[2])]).await, [LOST], "it has another lease");
    let all = again.iter().map(ack).collect();
    assert_eq!(next.settle(all).await, [ACKED; 5]);
    assert_eq!(next.close().await, (Vec::new(), Vec::new()));
    rig.end().await;
}

#[tokio::test]
async fn a_newer_stream_takes_over_the_leases_with_their_tokens() {
    let rig = Rig::duo().await;
    let sent = send(&rig, 3).await;
    let mut older =
        Consumer::fresh(&rig.agent("bob").await.channel(), opening("work", window(2))).await;
    let leases = older.leased(2).await;
    // The third message waits for room. The list comes first, although there is room now.
    let bob = rig.agent("bob").await.channel();
    let (mut newer, listed) = Consumer::open(&bob, opening("work", window(3))).await;
    assert_eq!(listed, leases);
    older.refused(Reason::StreamReplaced, "work").await;
    let third = newer.lease().await;
    assert_eq!((third.message, third.attempt, third.cause), (sent[2], 1, None));
    assert_eq!(newer.settle(leases.iter().map(ack).collect()).await, [ACKED; 2]);
    // Another id is another stream.
    let other = Consumer::fresh(&bob, opening("other", window(1))).await;
    newer.ack(&third).await;
    newer.close().await;
    other.close().await;
    let operator = rig.operator().await;
    for message in sent {
        assert_eq!(state(&operator, "bob", message).await, (DeliveryState::Acked, 1, None));
    }
    rig.end().await;
}

#[tokio::test]
async fn a_harness_that_attaches_ends_streams_and_gets_their_mail() {
    let rig = Rig::duo().await;
    let sent = send(&rig, 2).await;
    let (bob, operator) = (rig.agent("bob").await.channel(), rig.operator().await);
    let mut first = Consumer::fresh(&bob, opening("first", window(1))).await;
    let lease = first.lease().await;
    let mut second = Consumer::fresh(&bob, opening("second", window(1))).await;
    second.lease().await;
    let empty = Consumer::fresh(&bob, opening("third", window(1))).await;
    let harness = Harness::attach(&rig.agent("bob").await.channel(), false).await;
    for (consumer, id) in [(first, "first"), (second, "second"), (empty, "third")] {
        consumer.refused(Reason::HarnessAttached, id).await;
    }
    for message in &sent {
        let delivery = operator.delivery("bob", *message).await;
        assert_eq!(delivery.state(), DeliveryState::Ready);
        assert_eq!(delivery.redelivery_cause(), RedeliveryCause::Drained);
        assert_eq!((delivery.attempt, delivery.not_before_time), (1, None));
    }
    assert_eq!(settle(&bob, vec![ack(&lease)]).await, [LOST]);
    let refused = Consumer::try_open(&bob, opening("first", window(1))).await;
    let refusal = refused.expect_err("a harness is attached");
    assert_refused(&refusal, Reason::HarnessAttached, "first");
    let (begun, _) = harness.begin().await;
    let delivery = begun.delivery.expect("the turn has mail");
    assert_eq!(delivery.message.as_ref().map(|message| message.id), Some(sent[0]));
    assert_eq!(delivery.attempt, 1);
    harness.end(begun.turn.expect("a turn").id, TurnOutcome::Ok).await;
    assert_eq!(state(&operator, "bob", sent[0]).await.0, DeliveryState::Acked);
    rig.end().await;
}

/// Retires bob, who holds a lease; the stream, and the message of the lease.
async fn retire(rig: &Rig) -> (Consumer, u64) {
    let sent = send(rig, 1).await;
    let bob = rig.agent("bob").await.channel();
    let mut consumer = Consumer::fresh(&bob, opening("work", window(1))).await;
    consumer.lease().await;
    let mut admin = rig.operator().await.admin();
    admin.retire_agent(request::retire_agent("bob")).await.expect("bob is retired");
    (consumer, sent[0])
}

#[tokio::test]
async fn leases_of_a_retired_agent_go_back_without_an_attempt() {
    let rig = Rig::duo().await;
    let (consumer, message) = retire(&rig).await;
    consumer.broken().await;
    let ready = (DeliveryState::Ready, 1, Some(RedeliveryCause::Drained));
    assert_eq!(state(&rig.operator().await, "bob", message).await, ready);
    rig.end().await;
}

#[tokio::test]
async fn the_stream_of_a_retired_agent_ends_with_the_reason() {
    let rig = Rig::duo().await;
    let (consumer, _) = retire(&rig).await;
    consumer.refused(Reason::AgentRetired, "work").await;
    rig.end().await;
}

#[tokio::test]
async fn an_agent_that_may_not_receive_any_more_settles_within_the_grace() {
    let rig = Rig::duo().await;
    let sent = send(&rig, 2).await;
    let (bob, operator) = (rig.agent("bob").await.channel(), rig.operator().await);
    let mut consumer = Consumer::fresh(&bob, opening("work", window(2))).await;
    let leases = consumer.leased(2).await;
    let policy = Policy { tool_groups: request::texts(&["inbox"]), ..Policy::default() };
    let update_mask = Some(prost_types::FieldMask { paths: request::texts(&["tool_groups"]) });
    let (request_id, name) = (fresh_id(), "bob".to_owned());
    let set = SetPolicyRequest { request_id, name, policy: Some(policy), update_mask };
    call::did(&operator.channel(), &set).await;
    consumer.refused(Reason::CapabilityMissing, "work").await;
    assert_eq!(state(&operator, "bob", sent[0]).await, (DeliveryState::Leased, 1, None));
    assert_eq!(settle(&bob, leases.iter().map(ack).collect()).await, [ACKED; 2]);
    rig.end().await;
}

#[tokio::test]
async fn a_wrong_step_ends_the_stream_and_its_leases_have_their_grace() {
    let rig = Rig::duo().await;
    let sent = send(&rig, 3).await;
    let bob = rig.agent("bob").await.channel();
    let unnamed = Consumer::try_open(&bob, opening("", window(1))).await;
    let mut windowless = opening("work", window(1));
    windowless.window = None;
    for refused in [unnamed, Consumer::try_open(&bob, windowless).await] {
        let refusal = refused.expect_err("the opening is wrong");
        assert_refused(&refusal, Reason::FieldInvalid, "");
    }
    let mut first = Consumer::fresh(&bob, opening("work", window(3))).await;
    let leases = first.leased(3).await;
    assert_eq!(messages(&leases), sent);
    first.say(Say::Open(opening("work", window(1))));
    first.refused(Reason::FieldInvalid, "work").await;
    let (second, listed) = Consumer::open(&bob, opening("work", window(3))).await;
    assert_eq!(listed, leases);
    second.say_settle(vec![Settlement::default()]);
    second.refused(Reason::FieldInvalid, "work").await;
    let entries = vec![ack(&leases[0]), release(&leases[1]), nack(&leases[2], "no ink")];
    let ready = Ok(DeliveryState::Ready);
    assert_eq!(settle(&bob, entries).await, [ACKED, ready, ready]);
    rig.end().await;
}
