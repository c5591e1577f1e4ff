//! The way to the broker: one channel, made when first used, and the patience to wait out a restart.
//!
//! Invariants: every attempt of a call sends the same bytes, request id included; only what a later attempt may cure is tried again; the
//! bridge gives up before the broker gives the turn up.

use std::path::Path;
use std::time::Duration;

use hive_proto::PROCESS_TOKEN_KEY;
use hive_proto::connect::{self, ConnectError};
use hive_proto::status::{is_transient, retry_after};
use tokio::time::{Instant, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

use crate::call::Call;

/// How long a broker may be away before a call fails; less than the broker's grace for a harness.
pub const AWAY_MAX: Duration = Duration::from_secs(45);
/// How long one attempt waits for its reply, beyond any wait that the request itself asks for.
const REPLY_MAX: Duration = Duration::from_secs(20);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// A later attempt of a waiting call lasts at least this long, so that it can learn what an earlier one was given.
const LATER_WAIT_MIN: Duration = Duration::from_secs(2);

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The broker said no.
    #[error("the broker refused")]
    Refused(#[source] Status),
    /// The broker stayed away for longer than the bridge waits.
    #[error("the broker stayed away")]
    Away(#[source] Status),
    /// The socket can never be reached.
    #[error("there is no way to the broker")]
    NoWay(#[source] ConnectError),
    /// A waiting call's time was over while the broker came back.
    #[error("the wait is over")]
    WaitOver,
    /// Claude has gone, so nobody waits for the reply.
    #[error("nobody waits for the reply any more")]
    Closing,
}

/// The channel to the broker, and the proof of which turn its calls belong to.
#[derive(Debug)]
pub struct Broker {
    channel: Result<Channel, std::sync::Mutex<Option<ConnectError>>>,
    process_token: Option<MetadataValue<Ascii>>,
}

impl Broker {
    /// A broker that nothing was asked of yet; nothing is connected.
    #[must_use]
    pub fn new(socket: &Path, process_token: Option<MetadataValue<Ascii>>) -> Self {
        let channel = connect::connect_lazy(socket).map_err(|error| std::sync::Mutex::new(Some(error)));
        Self { channel, process_token }
    }

    /// Whether calls belong to a turn.
    #[must_use]
    pub fn has_process_token(&self) -> bool {
        self.process_token.is_some()
    }

    /// Makes a call, again and again while the broker is away.
    pub async fn call<M, R, F>(&self, call: &Call, message: M, rpc: impl Fn(Channel, Request<M>) -> F) -> Result<R, Failure>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.call_waiting(call, Duration::ZERO, message, rpc).await
    }

    /// Makes a call that the broker answers only after up to `wait`.
    pub async fn call_waiting<M, R, F>(
        &self,
        call: &Call,
        wait: Duration,
        message: M,
        rpc: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<R, Failure>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        let channel = self.channel()?;
        let started = Instant::now();
        let mut away_since = None;
        let mut backoff = BACKOFF_FIRST;
        loop {
            // The request has to stay the same for its id to hold, so a later attempt asks for the full wait again and is cut here.
            let later = away_since.is_some() && !wait.is_zero();
            let patience = if later { wait.saturating_sub(started.elapsed()).max(LATER_WAIT_MIN) } else { wait + REPLY_MAX };
            let attempt = timeout(patience, rpc(channel.clone(), self.request(message.clone())));
            let outcome = tokio::select! {
                outcome = attempt => outcome,
                () = call.closing.cancelled(), if !wait.is_zero() => return Err(Failure::Closing),
            };
            let status = match outcome {
                Ok(Ok(reply)) => {
                    note_away(call, away_since);
                    return Ok(reply.into_inner());
                }
                Ok(Err(status)) if is_transient(&status) => status,
                Ok(Err(status)) => {
                    note_away(call, away_since);
                    return Err(Failure::Refused(status));
                }
                Err(_) if later => return Err(Failure::WaitOver),
                Err(_) => Status::deadline_exceeded("the broker took the call and did not answer"),
            };
            let since = *away_since.get_or_insert_with(Instant::now);
            note_away(call, away_since);
            let left = AWAY_MAX.saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(Failure::Away(status));
            }
            tracing::warn!(code = ?status.code(), error = status.message(), "the broker is away; the call is tried again");
            call.wait_for("waiting for the broker, which is away");
            let pause = retry_after(&status).unwrap_or_default().max(jittered(backoff)).min(left);
            backoff = (backoff * 2).min(BACKOFF_MAX);
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = call.closing.cancelled() => return Err(Failure::Closing),
            }
        }
    }

    fn channel(&self) -> Result<&Channel, Failure> {
        self.channel.as_ref().map_err(|error| {
            let error = error.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
            error.map_or_else(|| Failure::Away(Status::unavailable("the socket's path cannot be used")), Failure::NoWay)
        })
    }

    fn request<M>(&self, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(token) = &self.process_token {
            request.metadata_mut().insert(PROCESS_TOKEN_KEY, token.clone());
        }
        request
    }
}

fn note_away(call: &Call, since: Option<Instant>) {
    if let Some(since) = since {
        call.note_away(since.elapsed());
    }
}

/// Between a half and the whole of `pause`, so that the bridges of a fleet do not come back in step.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use hive_proto::v1::inbox_service_client::InboxServiceClient;
    use hive_proto::v1::{ReceiveMessagesRequest, ReceiveMessagesResponse};
    use hive_tests::fake_broker::{FakeBroker, Reaction};
    use rmcp::model::RequestMetaObject;
    use tokio_util::sync::CancellationToken;

    use super::*;

    async fn receive(socket: &Path, wait: Duration) -> (Result<ReceiveMessagesResponse, Failure>, Duration) {
        let broker = Broker::new(socket, None);
        let call = Call::new(None, &RequestMetaObject::default(), CancellationToken::new());
        let started = Instant::now();
        let rpc = |channel, request| async move { InboxServiceClient::new(channel).receive_messages(request).await };
        let outcome = broker.call_waiting(&call, wait, ReceiveMessagesRequest::default(), rpc).await;
        (outcome, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_is_away_is_waited_for_but_not_for_ever() {
        let never = FakeBroker::stopped();
        let (outcome, took) = receive(&never.socket(), Duration::ZERO).await;
        assert!(matches!(outcome, Err(Failure::Away(_))), "{outcome:?}");
        assert!(took >= AWAY_MAX && took < AWAY_MAX + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_does_not_begin_anew_after_an_outage() {
        let broker = FakeBroker::start();
        for _ in 0..2 {
            broker.react(Reaction::Hang);
        }
        let wait = Duration::from_secs(60);
        let (outcome, took) = receive(&broker.socket(), wait).await;
        assert!(matches!(outcome, Err(Failure::WaitOver)), "{outcome:?}");
        assert!(took < wait + REPLY_MAX + LATER_WAIT_MIN + BACKOFF_MAX, "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_path_that_no_socket_can_have_fails_at_once() {
        let (outcome, took) = receive(Path::new(&format!("/{}", "a".repeat(200))), Duration::ZERO).await;
        assert!(matches!(outcome, Err(Failure::NoWay(_))), "{outcome:?}");
        assert!(took.is_zero());
    }
}
