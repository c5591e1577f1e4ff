//! The link of calls to the broker: a channel, and the token of the session while it is attached.
//!
//! Invariant: a repeatable call is repeated with the same content until the broker answers it, and
//! never without a session.

use hive_proto::handshake::Channel;
use tokio::sync::watch;
use tonic::Status;

use crate::driver::backoff::Backoff;

/// The link to the broker.
#[derive(Clone, Debug)]
pub struct Link {
    /// The channel; it connects by itself.
    pub channel: Channel,
    /// The session's token; `None` while it is not attached.
    token: watch::Receiver<Option<String>>,
}

impl Link {
    /// Creates a link that receives its session token through `token`.
    pub fn new(channel: Channel, token: watch::Receiver<Option<String>>) -> Self {
        Self { channel, token }
    }

    /// Waits for the session and returns its token.
    pub async fn token(&mut self) -> String {
        let token = self.token.wait_for(Option::is_some).await.ok().and_then(|token| token.clone());
        match token {
            Some(token) => token,
            // The program ends, and this task with it.
            None => std::future::pending().await,
        }
    }

    /// Makes a call until the broker answers it: with a result, or with a refusal that waiting does
    /// not change.
    pub async fn persist<T, F>(&mut self, call: impl Fn(Channel, String) -> F) -> Result<T, Status>
    where
        F: Future<Output = Result<T, Status>>,
    {
        let mut backoff = Backoff::default();
        loop {
            let token = self.token().await;
            match call(self.channel.clone(), token).await {
                Err(status) if hive_proto::status::is_transient(&status) => backoff.rest().await,
                answer => return answer,
            }
        }
    }
}
