//! The tap: passes calls on to the broker, records them, and does with single ones what the test
//! asks for instead.
//!
//! Invariant: a call is recorded before anything is done with it, and its answer leaves as the
//! broker gave it, or as the test has edited it.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::body::{self, Body};
use axum::http::{HeaderMap, HeaderValue, Request, Response};
use hive_proto::{PROCESS_TOKEN_KEY, SESSION_TOKEN_KEY};
use hive_tests::rig::soon;
use tokio::net::UnixListener;
use tokio::sync::watch;
use tokio_stream::wrappers::UnixListenerStream;
use tokio_stream::{StreamExt as _, pending};
use tonic::Status;
use tonic::transport::{Channel, Server};
use tower::Service as _;

/// Methods whose requests are streams, which are passed on as they come.
const STREAMS: [&str; 3] = ["Login", "ReportTurnEvents", "ServeLogin"];
/// The method of the handshake.
const HANDSHAKE: &str = "GetServerInfo";
/// Bytes before each message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

/// A call as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// The method, such as `SendMessage`.
    pub method: String,
    /// The process token of the call.
    pub process_token: Option<String>,
    /// The session token of the call.
    pub session_token: Option<String>,
    /// The encoded request; empty for a stream.
    message: Vec<u8>,
}

impl Recorded {
    /// Returns the request, if the call is one of this method.
    pub fn request<M: prost::Message + Default>(&self, method: &str) -> Option<M> {
        (self.method == method)
            .then(|| M::decode(self.message.as_slice()).expect("a request of this method"))
    }
}

/// The tap's action on a call, in place of passing it on and answering it.
#[derive(Debug)]
pub enum Reaction {
    Refuse(Status),
    /// Passes it on, and never answers.
    ActAndHang,
    /// Passes it on, and refuses it then.
    ActAndRefuse(Status),
    /// Neither passes it on nor answers.
    Hang,
    /// Passes it on, and answers with the first bytes of the answer only.
    Stall,
}

/// Changes a message, and the metadata that goes with it.
type Edit = dyn Fn(&[u8], &mut HeaderMap) -> Vec<u8> + Send + Sync;

/// The calls that the tap has seen, and its next actions.
#[derive(Debug, Default)]
pub struct State {
    /// Every call, in the order of arrival.
    pub calls: Vec<Recorded>,
    /// The number of calls that ended without an answer because the caller disconnected.
    pub dropped_count: usize,
    /// The number of calls that the broker has answered to the tap only.
    pub withheld_count: usize,
    reactions: VecDeque<Reaction>,
    edits: Edits,
    passed_count: usize,
}

/// The changes to requests and answers, by method.
#[derive(Default)]
struct Edits(HashMap<(Side, String), Arc<Edit>>);

/// The messages of a method that are edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Request,
    Answer,
}

impl std::fmt::Debug for Edits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl State {
    pub(crate) fn react(&mut self, reaction: Reaction) {
        self.reactions.push_back(reaction);
    }

    pub(crate) fn edit<M: prost::Message + Default>(
        &mut self,
        side: Side,
        method: &str,
        edit: impl Fn(&mut tonic::Response<M>) + Send + Sync + 'static,
    ) {
        let edit = move |message: &[u8], headers: &mut HeaderMap| {
            let message = M::decode(message).expect("a message of this method");
            let mut answer = tonic::Response::new(message);
            edit(&mut answer);
            let (metadata, message, _) = answer.into_parts();
            headers.extend(metadata.into_headers());
            message.encode_to_vec()
        };
        self.edits.0.insert((side, method.to_owned()), Arc::new(edit));
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
        let (mut parts, mut body) = request.into_parts();
        let method = parts.uri.path().rsplit('/').next().unwrap_or_default().to_owned();
        let mut message = Vec::new();
        if !STREAMS.contains(&method.as_str()) {
            let bytes = body::to_bytes(body, usize::MAX).await;
            let bytes = bytes.map_err(|error| Status::unavailable(error.to_string()))?;
            message = bytes.get(PREFIX_BYTES..).unwrap_or_default().to_vec();
            let edit = self.state().edits.0.get(&(Side::Request, method.clone())).cloned();
            body = Body::from(match edit {
                Some(edit) => edited(&bytes, &mut parts.headers, &*edit),
                None => bytes.to_vec(),
            });
        }
        let token = |key| parts.headers.get(key).and_then(|token| token.to_str().ok());
        let [process_token, session_token] =
            [PROCESS_TOKEN_KEY, SESSION_TOKEN_KEY].map(|key| token(key).map(str::to_owned));
        let call = Recorded { method, process_token, session_token, message };
        let (reaction, edit) = self.change(|state| {
            let edit = state.edits.0.get(&(Side::Answer, call.method.clone())).cloned();
            // The handshake of a connection is none of the calls that a test is about.
            if call.method == HANDSHAKE {
                return (None, edit);
            }
            state.calls.push(call);
            (state.reactions.pop_front(), edit)
        });
        let mut unanswered = Unanswered { tap: Arc::clone(&self), answered: false };
        let withheld = matches!(reaction, Some(Reaction::ActAndHang));
        let stalls = matches!(reaction, Some(Reaction::Stall));
        let mut refusal = None;
        match reaction {
            Some(Reaction::Refuse(status)) => {
                unanswered.answered = true;
                return Err(status);
            }
            Some(Reaction::Hang) => std::future::pending().await,
            Some(Reaction::ActAndRefuse(status)) => refusal = Some(status),
            Some(Reaction::ActAndHang | Reaction::Stall) | None => {}
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
        if let Some(status) = refusal {
            return Err(status);
        }
        let answer = answer.map_err(|error| Status::unavailable(error.to_string()))?;
        match edit {
            _ if stalls => Ok(answer.map(first_bytes)),
            Some(edit) => edited_answer(answer, &*edit).await,
            None => Ok(answer),
        }
    }
}

/// Passes on the first bytes of a body, and never its end.
fn first_bytes(body: tonic::body::Body) -> tonic::body::Body {
    let frames = Body::new(body).into_data_stream();
    tonic::body::Body::new(Body::from_stream(frames.take(1).chain(pending())))
}

/// Reads an answer to its end, and edits its messages.
async fn edited_answer(
    answer: Response<tonic::body::Body>,
    edit: &Edit,
) -> Result<Response<tonic::body::Body>, Status> {
    let (mut parts, body) = answer.into_parts();
    let bytes = body::to_bytes(Body::new(body), usize::MAX).await;
    let bytes = bytes.map_err(|error| Status::unavailable(error.to_string()))?;
    let edited = edited(&bytes, &mut parts.headers, edit);
    // The trailers are gone; a refusal has its status here already.
    parts.headers.entry("grpc-status").or_insert(HeaderValue::from_static("0"));
    Ok(Response::from_parts(parts, tonic::body::Body::new(Body::from(edited))))
}

/// Edits the messages of a body.
fn edited(mut rest: &[u8], headers: &mut HeaderMap, edit: &Edit) -> Vec<u8> {
    let mut edited = Vec::new();
    while let Some((prefix, after)) = rest.split_first_chunk::<PREFIX_BYTES>() {
        let [_, length @ ..] = *prefix;
        let (message, after) = after.split_at(u32::from_be_bytes(length) as usize);
        let message = edit(message, headers);
        edited.push(0);
        edited.extend(u32::try_from(message.len()).expect("a short message").to_be_bytes());
        edited.extend(message);
        rest = after;
    }
    edited
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
