//! Mail from a task's end to the agent.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use tonic::Status;

use crate::driver::link::Link;
use crate::wire::beside;

/// Under which name tasks wake their agent.
pub const LABEL: &str = "bash";
/// A newer list of ended tasks takes the place of one that was not handed out.
const KEY: &str = "tasks";
/// How long the broker may take to answer.
const PATIENCE: Duration = Duration::from_secs(20);

/// Tells the agent something.
pub trait Waker: fmt::Debug + Send + Sync {
    /// Sends a message of the origin external `bash`. The same request id with the same body is the
    /// same message. Gives the id of the message whose place it took, 0 for none.
    fn wake(
        &self,
        request_id: String,
        body: String,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Status>> + Send + '_>>;
}

/// Tells it by mail.
#[derive(Clone, Debug)]
pub struct BrokerWaker {
    /// The agent's socket and session. With the session's token the mail goes into the lane
    /// `system`.
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
            let wake = beside::wake(link.channel, session_token, request_id, LABEL, KEY, body);
            let receipt = tokio::time::timeout(PATIENCE, wake).await.map_err(|_| {
                Status::deadline_exceeded("the broker took the message and did not answer")
            })??;
            Ok(receipt.superseded_message_id)
        })
    }
}
