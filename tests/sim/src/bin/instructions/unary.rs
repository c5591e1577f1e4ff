//! Unary calls: `SendMessage`, and `ReceiveMessages` that acks the message before.
//!
//! Invariant: a message is accepted before it is received, so that each takes the same two commits.

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{ReceiveMessagesRequest, SettleDeliveriesRequest};

use super::{Channels, ack, call, check, message};

/// Time that a receive would wait, as a consumer sets it; there is always a message.
const WAIT_SECONDS: i64 = 60;

pub(crate) async fn run(channels: Channels, messages: u64) -> anyhow::Result<()> {
    let mut producer = MessageServiceClient::new(channels.producer);
    let mut consumer = InboxServiceClient::new(channels.consumer);
    let mut settlements = Vec::new();
    for number in 0..messages {
        let traceparent = channels.tracing.next(number, messages);
        producer.send_message(call(message(number), traceparent)).await?;
        let acks = settlements.len();
        let request = ReceiveMessagesRequest {
            request_id: format!("receive-{number}"),
            max_deliveries: 1,
            wait: Some(prost_types::Duration { seconds: WAIT_SECONDS, nanos: 0 }),
            settlements: std::mem::take(&mut settlements),
            ..ReceiveMessagesRequest::default()
        };
        let received = consumer.receive_messages(request).await?.into_inner();
        check(&received.settlement_results, acks)?;
        settlements.push(ack(received.deliveries)?);
    }
    let acks = settlements.len();
    let settled = consumer.settle_deliveries(SettleDeliveriesRequest { settlements }).await?;
    check(&settled.into_inner().results, acks)
}
