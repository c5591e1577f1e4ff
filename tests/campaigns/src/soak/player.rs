//! A player: an agent without a harness, whose mail the soak leases and acks as a program outside a
//! hive would.
//!
//! Invariant: it reconnects after every restart of the broker, and a message counts once, when its
//! ack was answered.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use hive_proto::v1::inbox_service_client::InboxServiceClient;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::{
    AckDeliveryRequest, ReceiveMessagesRequest, SearchMessagesRequest, ack_delivery_request::Target,
};
use hive_tests::rig::fresh_id;
use tokio::task::AbortHandle;
use tonic::Status;
use tonic::transport::Channel;

/// The mail of a player: by message, when it was first received; the message it replies to, and its
/// text.
#[derive(Debug, Default)]
pub(super) struct Had {
    pub(super) at: BTreeMap<u64, Instant>,
    pub(super) replies_to: BTreeMap<u64, u64>,
    pub(super) bodies: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Player {
    had: Arc<Mutex<Had>>,
    life: AbortHandle,
}

impl Player {
    pub(super) fn new(socket: PathBuf) -> Self {
        let had = Arc::new(Mutex::new(Had::default()));
        let life = tokio::spawn(live(socket, Arc::clone(&had))).abort_handle();
        Self { had, life }
    }

    pub(super) fn had(&self) -> MutexGuard<'_, Had> {
        self.had.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        self.life.abort();
    }
}

/// Searches once. From then on the broker keeps its index up to date, whose size is judged.
async fn search(channel: &Channel) {
    let request = SearchMessagesRequest { query: "hello".to_owned(), ..Default::default() };
    // While the index is made, or the broker restarts, it is refused.
    drop(MessageServiceClient::new(channel.clone()).search_messages(request).await);
}

async fn live(socket: PathBuf, had: Arc<Mutex<Had>>) {
    loop {
        // A restarting broker is away for a moment; there is no signal when it is ready again.
        if let Ok(channel) = hive_proto::connect::connect(&socket).await {
            search(&channel).await;
            while take(&channel, &had).await.is_ok() {}
        }
        tokio::task::yield_now().await;
    }
}

/// Waits for a message, records and acks it.
async fn take(channel: &Channel, had: &Mutex<Had>) -> Result<(), Status> {
    let mut inbox = InboxServiceClient::new(channel.clone());
    let request = ReceiveMessagesRequest {
        request_id: fresh_id(),
        max_deliveries: 1,
        wait: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        ..ReceiveMessagesRequest::default()
    };
    for leased in inbox.receive_messages(request).await?.into_inner().deliveries {
        let Some(message) = leased.delivery.and_then(|delivery| delivery.message) else { continue };
        let now = Instant::now();
        let ack = AckDeliveryRequest { target: Some(Target::LeaseToken(leased.lease_token)) };
        inbox.ack_delivery(ack).await?;
        let mut had = had.lock().unwrap_or_else(PoisonError::into_inner);
        had.at.insert(message.id, now);
        if message.in_reply_to != 0 {
            *had.replies_to.entry(message.in_reply_to).or_default() += 1;
        }
        had.bodies.push(message.body);
    }
    Ok(())
}
