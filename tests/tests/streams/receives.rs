//! A consumer without a stream that settles the last deliveries with the receive of the next.
//!
//! Invariant: it makes no other call.

use hive_core::limits::RECEIVE_DELIVERIES_MAX;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::{
    Ack, DeliveryState, GetInboxStatusRequest, ReceiveMessagesRequest, Settlement,
    settlement_result,
};
use hive_tests::rig::{Rig, request, soon};

use crate::messages::send_all;

/// Messages to receive.
const MESSAGES: usize = 640;
/// Maximum calls for each of them.
const CALLS_PER_MESSAGE_MAX: f64 = 0.05;

#[tokio::test]
async fn a_consumer_needs_few_calls() {
    let mut rig =
        Rig::new("[agents.ada]\n[agents.bob]\n[broker.limits]\nsends_per_minute_max = 10000\n");
    rig.start_broker().await;
    let sent = send_all(&rig.agent("ada").await.channel(), "bob", MESSAGES).await;
    let mut bob = InboxServiceClient::new(rig.agent("bob").await.channel());
    let (mut settlements, mut received, mut calls) = (Vec::new(), Vec::new(), 0_u32);
    loop {
        let settled = settlements.len();
        let max_deliveries = RECEIVE_DELIVERIES_MAX;
        let request = ReceiveMessagesRequest { max_deliveries, settlements, ..request::receive() };
        let response = soon("a receive", bob.receive_messages(request)).await;
        let response = response.expect("bob may receive").into_inner();
        calls += 1;
        let results: Vec<_> =
            response.settlement_results.into_iter().map(|result| result.result).collect();
        let acked = settlement_result::Result::State(DeliveryState::Acked.into());
        assert_eq!(results, vec![Some(acked); settled]);
        if response.deliveries.is_empty() {
            assert_eq!(response.pending_count, 0);
            break;
        }
        settlements = Vec::new();
        for leased in response.deliveries {
            settlements.push(Settlement {
                target: Some(Target::LeaseToken(leased.lease_token)),
                action: Some(Action::Ack(Ack {})),
            });
            let message = leased.delivery.and_then(|delivery| delivery.message);
            received.push(message.expect("a delivery has its message").id);
        }
        let left = MESSAGES - received.len();
        assert_eq!(usize::try_from(response.pending_count), Ok(left));
    }
    assert_eq!(received, sent);
    let per_message = f64::from(calls) / MESSAGES as f64;
    assert!(per_message <= CALLS_PER_MESSAGE_MAX, "{calls} calls for {MESSAGES} messages");

    let status = bob.get_inbox_status(GetInboxStatusRequest::default()).await;
    let status = status.expect("the inbox is bob's").into_inner();
    assert_eq!((status.ready_count, status.leased_count, status.dead_count), (0, 0, 0));
    // A page has at most 500: the last ones are on another.
    let acked = rig.operator().await.deliveries("bob", &[DeliveryState::Acked]).await;
    assert_eq!(acked.len(), 500);
    assert!(acked.iter().all(|delivery| delivery.attempt == 1));
    rig.end().await;
}
