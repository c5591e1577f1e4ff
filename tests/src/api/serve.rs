//! The HTTP side: routes, plain answers and streams.

use std::convert::Infallible;
use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::IncomingStream;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_stream::StreamExt as _;

use super::events::{events, identified, sse, start};
use super::reply::{Broken, Kind, Usage};
use super::{Gate, Recorded, Reply, Shared, conversation};
use crate::scripted::events::hex;

/// The words that come before an answer breaks.
const BEGUN: &str = "I was going to";
/// Number of events in an answer of one block before its words are complete.
const EVENTS_BEFORE_END: usize = 3;

/// The socket of a connection, to break it.
#[derive(Clone, Debug)]
struct Socket(Option<Arc<OwnedFd>>);

impl Connected<IncomingStream<'_, TcpListener>> for Socket {
    fn connect_info(stream: IncomingStream<'_, TcpListener>) -> Self {
        Self(stream.io().as_fd().try_clone_to_owned().ok().map(Arc::new))
    }
}

impl Socket {
    /// Resets the connection at once.
    fn reset(&self) {
        if let Some(socket) = &self.0 {
            // Dissolving a connection sends a reset. Where the client has gone already there is
            // nothing to dissolve.
            let _ = rustix::net::connect_unspec(socket);
        }
    }
}

pub(super) async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    let listener = TcpListener::from_std(listener).expect("the runtime is entered");
    let router = Router::new()
        .route("/", get(StatusCode::OK))
        .route("/v1/models", get(models))
        .route("/v1/messages", post(message))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared);
    axum::serve(listener, router.into_make_service_with_connect_info::<Socket>())
        .await
        .expect("serving never fails");
}

async fn models() -> Response {
    let model = |id: &str| json!({"type": "model", "id": id, "display_name": id, "created_at": "2025-01-01T00:00:00Z"});
    let models =
        ["claude-haiku-4-5", "claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"].map(model);
    json_response(StatusCode::OK, &json!({"data": models, "has_more": false}))
}

async fn count_tokens(State(shared): State<Arc<Shared>>, body: axum::body::Bytes) -> Response {
    shared.counted();
    json_response(StatusCode::OK, &json!({"input_tokens": body.len() / 4}))
}

async fn message(
    ConnectInfo(socket): ConnectInfo<Socket>,
    State(shared): State<Arc<Shared>>,
    body: axum::body::Bytes,
) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return answer(Reply::status(400, "the body is no JSON"), "", false);
    };
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let stream = body["stream"].as_bool().unwrap_or(false);
    let (prompt, step) = conversation::prompt_and_step(&body);
    let kind = conversation::kind(&body);
    let request = Recorded { kind, prompt, step, body, time: Instant::now() };
    let reply = shared.script().reply(&request).filled(&request.prompt);
    shared.record(request);
    if let Some(gate) = &reply.held {
        gate.passed().await;
    }
    match reply.kind {
        Kind::Broken(Broken::Reset) => {
            socket.reset();
            std::future::pending().await
        }
        Kind::Hang => std::future::pending().await,
        Kind::Message { .. } | Kind::Status { .. } | Kind::Broken(_) => {
            answer(reply, &model, stream)
        }
    }
}

fn answer(reply: Reply, model: &str, stream: bool) -> Response {
    let mut response = match reply.kind {
        Kind::Message { blocks, stop_reason, usage } => {
            let blocks: Vec<Value> = blocks.into_iter().map(identified).collect();
            if stream {
                let text: String =
                    events(&blocks, &stop_reason, usage, model).iter().map(sse).collect();
                streamed(Body::from_stream(tokio_stream::once(Ok::<_, Infallible>(text))))
            } else {
                plain(&blocks, &stop_reason, usage, model)
            }
        }
        Kind::Status { code, error, message } => {
            let body = json!({"type": "error", "error": {"type": error, "message": message}, "request_id": format!("req_{}", hex(8))});
            json_response(
                StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                &body,
            )
        }
        Kind::Broken(Broken::Pause { words, gate }) => paused(&words, gate, model),
        Kind::Broken(Broken::Error) => {
            let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
            let text = format!("{}{}", begun(BEGUN, model).0, sse(&error));
            streamed(Body::from_stream(tokio_stream::once(Ok::<_, Infallible>(text))))
        }
        Kind::Hang | Kind::Broken(Broken::Cut | Broken::Reset) => {
            let broken = std::io::Error::other("the script breaks the connection here");
            let stream = tokio_stream::once(Ok(begun(BEGUN, model).0))
                .chain(tokio_stream::once(Err(broken)));
            streamed(Body::from_stream(stream))
        }
    };
    for (name, value) in reply.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

fn plain(blocks: &[Value], stop_reason: &str, usage: Usage, model: &str) -> Response {
    let mut message = start(model, usage, usage.output);
    message["content"] = json!(blocks);
    message["stop_reason"] = json!(stop_reason);
    json_response(StatusCode::OK, &message)
}

fn streamed(body: Body) -> Response {
    ([("content-type", "text/event-stream")], body).into_response()
}

/// The beginning of an answer with all its words, and its end.
fn begun(words: &str, model: &str) -> (String, String) {
    let events =
        events(&[json!({"type": "text", "text": words})], "end_turn", Usage::default(), model);
    let text = |events: &[Value]| events.iter().map(sse).collect();
    (text(&events[..EVENTS_BEFORE_END]), text(&events[EVENTS_BEFORE_END..]))
}

/// The beginning of an answer, and its end when the gate is opened.
fn paused(words: &str, gate: Gate, model: &str) -> Response {
    let (begun, end) = begun(words, model);
    let (parts, stream) = tokio::sync::mpsc::channel::<Result<String, Infallible>>(2);
    tokio::spawn(async move {
        // A client that closed the connection does not get the rest.
        if parts.send(Ok(begun)).await.is_ok() {
            gate.passed().await;
            let _ = parts.send(Ok(end)).await;
        }
    });
    streamed(Body::from_stream(tokio_stream::wrappers::ReceiverStream::new(stream)))
}
