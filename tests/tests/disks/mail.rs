//! Mail to one agent, and what was said of it: the receipts, and what has to be tried again.
//!
//! Invariant: a body names one message, so that one that is there twice is seen.

use std::collections::BTreeMap;

use hive_core::reason::Reason;
use hive_proto::status;
use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{
    GetBrokerStatusRequest, GetBrokerStatusResponse, ListDeliveriesRequest, SendMessageRequest,
};
use hive_tests::rig::{Client, Rig, request, soon};
use tokio::task::JoinHandle;
use tonic::{Status, Streaming};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// The answer of the health service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    Serving,
    NotServing,
}

pub(crate) struct Mail {
    operator: Client,
    health: Streaming<HealthCheckResponse>,
    receipts: BTreeMap<u64, String>,
    refused: Vec<SendMessageRequest>,
}

pub(crate) fn is_unavailable(refusal: &Status) {
    assert_eq!(status::reason(refusal), Some(Reason::StorageUnavailable), "{refusal:?}");
    assert!(status::retry_after(refusal).is_some(), "it says when to try again");
}

fn request(body: &str) -> SendMessageRequest {
    request::send("ada", body)
}

async fn watched(operator: &Client) -> Streaming<HealthCheckResponse> {
    let watched = HealthClient::new(operator.channel()).watch(HealthCheckRequest::default()).await;
    let mut health = watched.expect("watched").into_inner();
    let first = soon("its health", health.message()).await.expect("a status").expect("a status");
    assert_eq!(first.status(), ServingStatus::Serving);
    health
}

impl Mail {
    pub(crate) async fn of(rig: &Rig) -> Self {
        let operator = rig.operator().await;
        let health = watched(&operator).await;
        Self { operator, health, receipts: BTreeMap::new(), refused: Vec::new() }
    }

    /// Connects to the broker that was started again.
    pub(crate) async fn reconnect(&mut self, rig: &Rig) {
        self.operator = rig.operator().await;
        self.health = watched(&self.operator).await;
    }

    async fn send(&mut self, request: SendMessageRequest) -> Result<(), Status> {
        let mut sender = MessageServiceClient::new(self.operator.channel());
        match soon("an answer", sender.send_message(request.clone())).await {
            Ok(receipt) => {
                let before = self.receipts.insert(receipt.into_inner().message_id, request.body);
                assert_eq!(before, None, "an id is given once");
                Ok(())
            }
            Err(refusal) => {
                self.refused.push(request);
                Err(refusal)
            }
        }
    }

    pub(crate) async fn accepted(&mut self, body: &str) {
        self.send(request(body)).await.expect("accepted");
    }

    /// The broker has to refuse it, with the word to try again.
    pub(crate) async fn refused(&mut self, body: &str) {
        is_unavailable(&self.send(request(body)).await.expect_err("it is refused"));
    }

    /// Tries everything again that was refused, with the same request ids.
    pub(crate) async fn again(&mut self) {
        for request in std::mem::take(&mut self.refused) {
            self.send(request).await.expect("accepted");
        }
    }

    /// Sends without waiting for the answer.
    pub(crate) fn queued(&self, body: &str) -> JoinHandle<Result<u64, Status>> {
        let (mut sender, request) =
            (MessageServiceClient::new(self.operator.channel()), request(body));
        tokio::spawn(async move { Ok(sender.send_message(request).await?.into_inner().message_id) })
    }

    /// Waits for the next status of the health service.
    pub(crate) async fn health(&mut self) -> Told {
        let word = soon("its health changes", self.health.message())
            .await
            .expect("a status")
            .expect("a status");
        match word.status() {
            ServingStatus::Serving => Told::Serving,
            ServingStatus::NotServing => Told::NotServing,
            other @ (ServingStatus::Unknown | ServingStatus::ServiceUnknown) => {
                panic!("it says {other:?}")
            }
        }
    }

    pub(crate) async fn status(&self) -> GetBrokerStatusResponse {
        let status = self.operator.admin().get_broker_status(GetBrokerStatusRequest {}).await;
        status.expect("it can always be asked").into_inner()
    }

    pub(crate) async fn try_list(&self) -> Result<BTreeMap<u64, String>, Status> {
        let request = ListDeliveriesRequest {
            page_size: 500,
            page_token: String::new(),
            agent: "ada".into(),
            states: vec![],
        };
        let listed = soon(
            "an answer",
            InboxServiceClient::new(self.operator.channel()).list_deliveries(request),
        )
        .await?;
        let messages =
            listed.into_inner().deliveries.into_iter().filter_map(|delivery| delivery.message);
        let messages: Vec<(u64, String)> =
            messages.map(|message| (message.id, message.body)).collect();
        let by_id: BTreeMap<u64, String> = messages.iter().cloned().collect();
        assert_eq!(by_id.len(), messages.len(), "an id names one message");
        Ok(by_id)
    }

    /// Checks that acknowledged mail is stored with its text, and nothing is stored twice.
    pub(crate) async fn all_there(&self) {
        let there = self.try_list().await.expect("listed");
        for (id, body) in &self.receipts {
            assert_eq!(there.get(id), Some(body), "message {id} was acknowledged");
        }
        let mut bodies: Vec<&String> = there.values().filter(|body| *body != "hello").collect();
        let all = bodies.len();
        bodies.sort_unstable();
        bodies.dedup();
        assert_eq!(bodies.len(), all, "nothing is there twice");
    }
}
