//! Mail to the agent about the end of a task.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tonic::Status;

use crate::driver::link::Link;
use crate::wire::beside;

/// The label of mail about tasks.
pub const LABEL: &str = "bash";
/// The coalescing key: a newer list of ended tasks supersedes one that was not received.
const KEY: &str = "tasks";
/// Maximum time in which the broker answers.
const PATIENCE: Duration = Duration::from_secs(20);

/// A sender of messages to the agent.
pub trait Waker: fmt::Debug + Send + Sync {
    /// Sends a message of the origin external `bash`. The same request id with the same body is the
    /// same message. Returns the id of the message that it superseded, 0 for none.
    fn wake(
        &self,
        request_id: String,
        body: String,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Status>> + Send + '_>>;
}

/// A sender of mail over the broker.
#[derive(Clone, Debug)]
pub struct BrokerWaker {
    /// The agent's socket and session. With the session's token the mail is in the lane `system`.
    pub link: Link,
}

impl Waker for BrokerWaker {
    fn wake(
        &self,
        request_id: String,
        body: String,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Status>> + Send + '_>> {
        let mut link = self.link.clone();
        Box::pin(async move {
            let session_token = link.token().await;
            let wake =
                beside::wake(link.channel, session_token, request_id, LABEL, KEY, body, None);
            let receipt = tokio::time::timeout(PATIENCE, wake).await.map_err(|_| {
                Status::deadline_exceeded("the broker took the message and did not answer")
            })??;
            Ok(receipt.superseded_message_id)
        })
    }
}
