//! Hive by unary calls: `SendMessage`, and `ReceiveMessages` that settles the page before.
//!
//! Invariant: a settlement without effect ends the bench.

use std::sync::atomic::{AtomicU64, Ordering};

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::settlement::{Action, Target};
use hive_proto::v1::{
    Ack, ReceiveMessagesRequest, SendMessageRequest, SettleDeliveriesRequest, Settlement,
    SettlementResult, settlement_result,
};
use hive_tests::rig::{fresh_id, request};
use tonic::Status;
use tonic::transport::Channel;

/// Request ids that no other producer and no other consumer makes. As in any client that counts its
/// calls, ids that follow each other are neighbours, also those of calls that run at once.
#[derive(Debug)]
pub(crate) struct Ids {
    prefix: String,
    last: AtomicU64,
}

impl Ids {
    pub(crate) fn new() -> Self {
        Self { prefix: fresh_id(), last: AtomicU64::new(0) }
    }

    pub(crate) fn next(&self) -> String {
        format!("{}-{}", self.prefix, self.last.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns a message of a producer.
pub(crate) fn message(ids: &Ids, inbox: usize, body: &str) -> SendMessageRequest {
    SendMessageRequest { request_id: ids.next(), ..request::send(&format!("a{inbox}"), body) }
}

/// Returns a message of a producer to all agents.
pub(crate) fn message_to_everyone(ids: &Ids, body: &str) -> SendMessageRequest {
    SendMessageRequest { request_id: ids.next(), ..request::send("*", body) }
}

/// Returns the ack of a lease.
pub(crate) fn ack(lease_token: String) -> Settlement {
    Settlement { target: Some(Target::LeaseToken(lease_token)), action: Some(Action::Ack(Ack {})) }
}

/// Fails if one of these acks changed nothing.
pub(crate) fn check(results: &[SettlementResult]) -> anyhow::Result<()> {
    let refused = results
        .iter()
        .find(|result| !matches!(result.result, Some(settlement_result::Result::State(_))));
    match refused {
        Some(result) => anyhow::bail!("an ack was refused: {result:?}"),
        None => Ok(()),
    }
}

/// A connection of a producer.
#[derive(Clone, Debug)]
pub(crate) struct Client(pub(crate) Channel);

impl Client {
    pub(crate) async fn send(&self, send: SendMessageRequest) -> Result<(), Status> {
        MessageServiceClient::new(self.0.clone()).send_message(send).await.map(drop)
    }
}

/// The consumer of an inbox.
#[derive(Debug)]
pub(crate) struct Consumer {
    inbox: InboxServiceClient<Channel>,
    ids: Ids,
    max: u32,
    /// Lease tokens of what was received and is not acked.
    held: Vec<String>,
}

impl Consumer {
    pub(crate) fn new(channel: Channel, max: u32) -> Self {
        let inbox = InboxServiceClient::new(channel);
        Self { inbox, ids: Ids::new(), max, held: Vec::new() }
    }

    /// Acks the last page and waits for the next one, by one call; returns its length.
    pub(crate) async fn receive(&mut self) -> anyhow::Result<usize> {
        let request = ReceiveMessagesRequest {
            request_id: self.ids.next(),
            max_deliveries: self.max,
            settlements: self.held.drain(..).map(ack).collect(),
            ..request::receive_waiting()
        };
        let received = self.inbox.receive_messages(request).await?.into_inner();
        check(&received.settlement_results)?;
        self.held.extend(received.deliveries.into_iter().map(|leased| leased.lease_token));
        Ok(self.held.len())
    }

    /// Acks the last page.
    pub(crate) async fn finish(mut self) -> anyhow::Result<()> {
        let settlements = self.held.drain(..).map(ack).collect();
        let settled = self.inbox.settle_deliveries(SettleDeliveriesRequest { settlements }).await?;
        check(&settled.into_inner().results)
    }
}
