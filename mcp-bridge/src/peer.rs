//! The peer that answers the calls, the broker or the agent's harness: one channel, made at first
//! use, and retries during a restart.
//!
//! Invariants: every attempt of a call sends the same bytes, request id included; only an error
//! that a later attempt may not have is retried; the bridge gives up before the broker's grace time
//! ends.

use std::path::Path;
use std::time::Duration;

use hive_proto::connect::{self, ConnectError};
use hive_proto::handshake::{ADDITIONS, Channel, Handshake, Program};
use hive_proto::status::{is_transient, retry_after};
use hive_proto::{PROCESS_TOKEN_KEY, TOOL_USE_ID_KEY, in_trace};
use tokio::time::{Instant, timeout};
use tonic::metadata::{Ascii, MetadataValue};
use tonic::{Request, Response, Status};

use crate::call::Call;

/// This program, for the handshake.
const PROGRAM: Program = Program { name: "hive-mcp", version: env!("CARGO_PKG_VERSION") };

/// The kind of program that answers the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// The broker.
    Broker,
    /// The harness that started claude.
    Harness,
}

impl PeerKind {
    /// Returns the name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Broker => "broker",
            Self::Harness => "harness",
        }
    }

    /// Returns how long the peer may be away before a call fails. For the broker this is less than
    /// its grace time for a harness. A harness that is away has ended, and its claude ends with it.
    #[must_use]
    pub const fn away_max(self) -> Duration {
        match self {
            Self::Broker => Duration::from_secs(45),
            Self::Harness => Duration::from_secs(10),
        }
    }

    const fn waiting_for(self) -> &'static str {
        match self {
            Self::Broker => "waiting for the broker, which is away",
            Self::Harness => "waiting for the harness, which is away",
        }
    }
}

/// Maximum time that one attempt waits for its reply, beyond a wait in the request itself.
const REPLY_MAX: Duration = Duration::from_secs(20);
const BACKOFF_FIRST: Duration = Duration::from_millis(50);
const BACKOFF_MAX: Duration = Duration::from_secs(2);
/// Minimum length of a later attempt of a waiting call, so that it can return the leases of an
/// earlier one.
const LATER_WAIT_MIN: Duration = Duration::from_secs(2);

/// Why a call has no reply.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The peer refused.
    #[error("the {} refused", .0.as_str())]
    Refused(PeerKind, #[source] Status),
    /// The peer was away for longer than the bridge waits.
    #[error("the {} did not answer in time", .0.as_str())]
    Away(PeerKind, #[source] Status),
    /// The socket can never be connected.
    #[error("the socket of the {} cannot be used", .0.as_str())]
    BadSocket(PeerKind, #[source] ConnectError),
    /// The time of a waiting call ended while the peer was away.
    #[error("the wait is over")]
    WaitOver,
    /// Claude has ended, so the reply has no reader.
    #[error("the call was closed")]
    Closing,
}

/// The channel to the peer, and the token of the turn that the calls belong to.
#[derive(Debug)]
pub struct Peer {
    kind: PeerKind,
    channel: Result<Channel, std::sync::Mutex<Option<ConnectError>>>,
    process_token: Option<MetadataValue<Ascii>>,
}

impl Peer {
    /// Returns a peer for the broker; connects at the first call.
    #[must_use]
    pub fn broker(socket: &Path, process_token: Option<MetadataValue<Ascii>>) -> Self {
        let channel = connect::connect_lazy_as(Handshake::new(PROGRAM, ADDITIONS), socket);
        Self::new(PeerKind::Broker, channel, process_token)
    }

    /// Returns a peer for the harness; connects at the first call.
    #[must_use]
    pub fn harness(socket: &Path) -> Self {
        let channel = connect::connect_lazy(socket).map(Channel::from);
        Self::new(PeerKind::Harness, channel, None)
    }

    fn new(
        kind: PeerKind,
        channel: Result<Channel, ConnectError>,
        process_token: Option<MetadataValue<Ascii>>,
    ) -> Self {
        let channel = channel.map_err(|error| std::sync::Mutex::new(Some(error)));
        Self { kind, channel, process_token }
    }

    /// Returns the kind of the peer.
    #[must_use]
    pub fn kind(&self) -> PeerKind {
        self.kind
    }

    /// Returns whether calls belong to a turn.
    #[must_use]
    pub fn has_process_token(&self) -> bool {
        self.process_token.is_some()
    }

    /// Makes a call; retries while the peer is away.
    pub async fn call<M, R, F>(
        &self,
        call: &Call,
        message: M,
        rpc: impl Fn(Channel, Request<M>) -> F,
    ) -> Result<R, Failure>
    where
        M: Clone,
        F: Future<Output = Result<Response<R>, Status>>,
    {
        self.call_waiting(call, Duration::ZERO, message, rpc).await
    }

    /// Makes a call that the peer may answer after up to `wait`.
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
            // A request id needs an identical request, so a later attempt asks for the full wait
            // again and is cut off here.
            let later = away_since.is_some() && !wait.is_zero();
            let patience = if later {
                wait.saturating_sub(started.elapsed()).max(LATER_WAIT_MIN)
            } else {
                wait + REPLY_MAX
            };
            let attempt =
                timeout(patience, rpc(channel.clone(), self.request(call, message.clone())));
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
                    return Err(Failure::Refused(self.kind, status));
                }
                Err(_) if later => return Err(Failure::WaitOver),
                Err(_) => Status::deadline_exceeded("it took the call and did not answer"),
            };
            let since = *away_since.get_or_insert_with(Instant::now);
            note_away(call, away_since);
            let left = self.kind.away_max().saturating_sub(since.elapsed());
            if left.is_zero() {
                return Err(Failure::Away(self.kind, status));
            }
            let peer = self.kind.as_str();
            tracing::warn!(peer, code = ?status.code(), error = status.message(), "no answer; the call is retried");
            call.wait_for(self.kind.waiting_for());
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
            error.map_or_else(
                || {
                    Failure::Away(
                        self.kind,
                        Status::unavailable("the socket's path cannot be used"),
                    )
                },
                |error| Failure::BadSocket(self.kind, error),
            )
        })
    }

    fn request<M>(&self, call: &Call, message: M) -> Request<M> {
        let mut request = Request::new(message);
        if let Some(token) = &self.process_token {
            request.metadata_mut().insert(PROCESS_TOKEN_KEY, token.clone());
            if let Ok(id) = MetadataValue::try_from(&call.tool_use_id)
                && !id.is_empty()
            {
                request.metadata_mut().insert(TOOL_USE_ID_KEY, id);
            }
        }
        match call.trace {
            Some(trace) => in_trace(request, &trace.to_string()),
            None => request,
        }
    }
}

fn note_away(call: &Call, since: Option<Instant>) {
    if let Some(since) = since {
        call.note_away(since.elapsed());
    }
}

/// Returns a random pause between a half and the whole of `pause`, so that the bridges of a fleet
/// do not retry at the same moment.
fn jittered(pause: Duration) -> Duration {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    pause / 2 + (pause / 2).mul_f64(f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use hive_in_process::{Broker, Reaction};
    use hive_proto::v1::inbox_service_client::InboxServiceClient;
    use hive_proto::v1::{ReceiveMessagesRequest, ReceiveMessagesResponse};
    use rmcp::model::RequestMetaObject;
    use tokio_util::sync::CancellationToken;

    use super::*;

    async fn receive(
        socket: &Path,
        wait: Duration,
    ) -> (Result<ReceiveMessagesResponse, Failure>, Duration) {
        let broker = Peer::broker(socket, None);
        let call = Call::new(None, &RequestMetaObject::default(), CancellationToken::new());
        let started = Instant::now();
        let rpc = |channel, request| async move {
            InboxServiceClient::new(channel).receive_messages(request).await
        };
        let outcome =
            broker.call_waiting(&call, wait, ReceiveMessagesRequest::default(), rpc).await;
        (outcome, started.elapsed())
    }

    #[tokio::test(start_paused = true)]
    async fn a_broker_that_is_away_is_waited_for_but_not_for_ever() {
        let never = Broker::stopped("[agents.alice]", "alice");
        let (outcome, took) = receive(&never.socket(), Duration::ZERO).await;
        assert!(matches!(outcome, Err(Failure::Away(PeerKind::Broker, _))), "{outcome:?}");
        let away_max = PeerKind::Broker.away_max();
        assert!(took >= away_max && took < away_max + Duration::from_secs(1), "{took:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_does_not_begin_again_after_an_outage() {
        let broker = Broker::start("[agents.alice]", "alice");
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
        let (outcome, took) =
            receive(Path::new(&format!("/{}", "a".repeat(200))), Duration::ZERO).await;
        assert!(matches!(outcome, Err(Failure::BadSocket(PeerKind::Broker, _))), "{outcome:?}");
        assert!(took.is_zero());
    }
}
