//! The tap: passes calls on to the broker, records them, and does with single ones what the test
//! asks for instead.
//!
//! Invariant: a call is recorded before anything is done with it, and its answer leaves as the
//! broker gave it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{self, Body};
use axum::http::{Request, Response};
use hive_proto::PROCESS_TOKEN_KEY;
use hive_tests::rig::soon;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::Status;
use tonic::transport::{Channel, Server};
use tower::Service as _;

/// Methods whose requests are streams, which are passed on as they come.
const STREAMS: [&str; 2] = ["ReportTurnEvents", "ServeLogin"];
/// Bytes before the message of a request.
const PREFIX_BYTES: usize = 5;

/// A call as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The method, such as `SendMessage`.
    pub method: String,
    /// The process token of the call.
    pub process_token: Option<String>,
    /// The encoded request; empty for a stream.
    message: Vec<u8>,
}

impl Recorded {
    /// Returns the request, if the call is one of this method.
    #[must_use]
    pub fn request<M: prost::Message + Default>(&self, method: &str) -> Option<M> {
        (self.method == method)
            .then(|| M::decode(self.message.as_slice()).expect("a request of this method"))
    }
}

/// What the tap does with a call instead of passing it on and answering it.
#[derive(Debug)]
pub enum Reaction {
    /// Refuses it.
    Refuse(Status),
    /// Passes it on, and never answers.
    ActAndHang,
    /// Neither passes it on nor answers.
    Hang,
}

/// What the tap has seen, and will do.
#[derive(Debug, Default)]
pub struct State {
    /// Every call, in the order of arrival.
    pub calls: Vec<Recorded>,
    /// How many calls ended without an answer because the caller went away.
    pub dropped_count: usize,
    /// How many calls the broker has answered to the tap only.
    pub withheld_count: usize,
    reactions: VecDeque<Reaction>,
    passed_count: usize,
}

impl State {
    pub(crate) fn react(&mut self, reaction: Reaction) {
        self.reactions.push_back(reaction);
    }

    pub(crate) fn next<T>(&mut self, pick: impl Fn(&Recorded) -> Option<T>) -> Option<T> {
        while let Some(call) = self.calls.get(self.passed_count) {
            self.passed_count += 1;
            if let Some(picked) = pick(call) {
                return Some(picked);
            }
        }
        None
    }
}

#[derive(Debug, Default)]
pub(crate) struct Tap {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl Tap {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state());
        self.changed.send_modify(|version| *version += 1);
        result
    }

    /// Waits until there is something to find.
    pub(crate) async fn find<T>(&self, what: &str, find: impl Fn(&mut State) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        soon(what, async {
            loop {
                if let Some(found) = find(&mut self.state()) {
                    return found;
                }
                changed.changed().await.expect("the sender is in the tap");
            }
        })
        .await
    }

    async fn pass(
        self: Arc<Self>,
        mut broker: Channel,
        request: Request<Body>,
    ) -> Result<Response<tonic::body::Body>, Status> {
        let (parts, mut body) = request.into_parts();
        let method = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let mut message = Vec::new();
        if !STREAMS.contains(&method.as_str()) {
            let bytes = body::to_bytes(body, usize::MAX).await;
            let bytes = bytes.map_err(|error| Status::unavailable(error.to_string()))?;
            message = bytes.get(PREFIX_BYTES..).unwrap_or_default().to_vec();
            body = Body::from(bytes);
        }
        let token = parts.headers.get(PROCESS_TOKEN_KEY).and_then(|token| token.to_str().ok());
        let call = Recorded { method, process_token: token.map(str::to_owned), message };
        let reaction = self.change(|state| {
            state.calls.push(call);
            state.reactions.pop_front()
        });
        let mut unanswered = Unanswered { tap: Arc::clone(&self), answered: false };
        let withheld = matches!(reaction, Some(Reaction::ActAndHang));
        match reaction {
            Some(Reaction::Refuse(status)) => {
                unanswered.answered = true;
                return Err(status);
            }
            Some(Reaction::Hang) => std::future::pending().await,
            Some(Reaction::ActAndHang) | None => {}
        }
        let request = Request::from_parts(parts, tonic::body::Body::new(body));
        let ready = std::future::poll_fn(|context| broker.poll_ready(context)).await;
        let answer = match ready {
            Ok(()) => broker.call(request).await,
            Err(error) => Err(error),
        };
        if withheld {
            self.change(|state| state.withheld_count += 1);
            return std::future::pending().await;
        }
        unanswered.answered = true;
        answer.map_err(|error| Status::unavailable(error.to_string()))
    }
}

/// Counts a call as dropped unless it was answered.
struct Unanswered {
    tap: Arc<Tap>,
    answered: bool,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if !self.answered {
            self.tap.change(|state| state.dropped_count += 1);
        }
    }
}

/// Serves the tap on a socket, in front of the broker's at `to`.
pub(crate) async fn serve(tap: Arc<Tap>, listener: UnixListener, to: PathBuf) {
    let broker = hive_proto::connect::connect_lazy(&to).expect("the path fits");
    let pass = move |request| {
        let (tap, broker) = (Arc::clone(&tap), broker.clone());
        async move { tap.pass(broker, request).await.unwrap_or_else(Status::into_http) }
    };
    let routes = tonic::service::Routes::from(axum::Router::new().fallback(pass));
    let served =
        Server::builder().add_routes(routes).serve_with_incoming(UnixListenerStream::new(listener));
    served.await.expect("the tap serves");
}
