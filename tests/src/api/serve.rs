//! The HTTP side: routes, plain answers and streams.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;

use super::reply::{Kind, Usage};
use super::{Recorded, Reply, Shared, conversation};
use crate::scripted::events::hex;

pub(super) async fn serve(listener: std::net::TcpListener, shared: Arc<Shared>) {
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    let listener = tokio::net::TcpListener::from_std(listener).expect("the runtime is entered");
    let router = Router::new()
        .route("/", get(StatusCode::OK))
        .route("/v1/models", get(models))
        .route("/v1/messages", post(message))
        .route("/v1/messages/count_tokens", post(count_tokens))
        .layer(DefaultBodyLimit::disable())
        .with_state(shared);
    axum::serve(listener, router).await.expect("serving never fails");
}

async fn models() -> Response {
    let model = |id: &str| json!({"type": "model", "id": id, "display_name": id, "created_at": "2025-01-01T00:00:00Z"});
    let models = ["claude-haiku-4-5", "claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5"].map(model);
    json_response(StatusCode::OK, &json!({"data": models, "has_more": false}))
}

async fn count_tokens(body: axum::body::Bytes) -> Response {
    json_response(StatusCode::OK, &json!({"input_tokens": body.len() / 4}))
}

async fn message(State(shared): State<Arc<Shared>>, body: axum::body::Bytes) -> Response {
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return answer(Reply::status(400, "the body is no JSON"), "", false);
    };
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let stream = body["stream"].as_bool().unwrap_or(false);
    let (prompt, step) = conversation::prompt_and_step(&body);
    let reply = if conversation::is_compaction(&body) {
        Reply::text("<summary>What was said so far.</summary>")
    } else {
        shared.script().reply(&prompt, step).filled(&prompt)
    };
    let count = {
        let mut recorded = shared.recorded();
        recorded.push(Recorded { prompt, step, body, time: Instant::now() });
        recorded.len()
    };
    shared.count.send_replace(count);
    if matches!(reply.kind, Kind::Hang) {
        std::future::pending::<()>().await;
    }
    answer(reply, &model, stream)
}

fn answer(reply: Reply, model: &str, stream: bool) -> Response {
    match reply.kind {
        Kind::Message { blocks, stop_reason, usage } => {
            let blocks: Vec<Value> = blocks.into_iter().map(identified).collect();
            if stream {
                streamed(&events(&blocks, &stop_reason, usage, model))
            } else {
                plain(&blocks, &stop_reason, usage, model)
            }
        }
        Kind::Status { code, error, message, headers } => {
            let body =
                json!({"type": "error", "error": {"type": error, "message": message}, "request_id": format!("req_{}", hex(8))});
            let mut response = json_response(StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), &body);
            for (name, value) in headers {
                if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                    response.headers_mut().insert(name, value);
                }
            }
            response
        }
        Kind::Hang | Kind::Cut => cut(model),
    }
}

/// A tool call gets an id that no other has.
fn identified(mut block: Value) -> Value {
    if block["type"] == "tool_use" {
        block["id"] = json!(format!("toolu_{}", hex(12)));
    }
    block
}

fn json_response(status: StatusCode, body: &Value) -> Response {
    (status, [("content-type", "application/json")], body.to_string()).into_response()
}

fn start(model: &str, usage: Usage, output: u64) -> Value {
    let usage = json!({
        "input_tokens": usage.input, "cache_read_input_tokens": usage.cache_read, "cache_creation_input_tokens": usage.cache_creation,
        "output_tokens": output,
    });
    json!({"id": format!("msg_{}", hex(12)), "type": "message", "role": "assistant", "model": model, "content": [], "stop_reason": null,
        "stop_sequence": null, "usage": usage})
}

fn plain(blocks: &[Value], stop_reason: &str, usage: Usage, model: &str) -> Response {
    let mut message = start(model, usage, usage.output);
    message["content"] = json!(blocks);
    message["stop_reason"] = json!(stop_reason);
    json_response(StatusCode::OK, &message)
}

fn events(blocks: &[Value], stop_reason: &str, usage: Usage, model: &str) -> Vec<Value> {
    let mut events = vec![json!({"type": "message_start", "message": start(model, usage, 1)})];
    for (index, block) in blocks.iter().enumerate() {
        let mut begun = block.clone();
        let delta = if block["type"] == "tool_use" {
            begun["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        } else {
            begun["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let used = json!({"output_tokens": usage.output});
    events.push(json!({"type": "message_delta", "delta": {"stop_reason": stop_reason, "stop_sequence": null}, "usage": used}));
    events.push(json!({"type": "message_stop"}));
    events
}

fn sse(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
}

fn streamed(events: &[Value]) -> Response {
    let text: String = events.iter().map(sse).collect();
    ([("content-type", "text/event-stream")], Body::from_stream(tokio_stream::once(Ok::<_, Infallible>(text)))).into_response()
}

/// The beginning of an answer, and then the connection breaks.
fn cut(model: &str) -> Response {
    let mut begun = events(&[json!({"type": "text", "text": "I was going to"})], "end_turn", Usage::default(), model);
    begun.truncate(3);
    let text: String = begun.iter().map(sse).collect();
    let broken = std::io::Error::other("the script breaks the connection here");
    let stream = tokio_stream::once(Ok(text)).chain(tokio_stream::once(Err(broken)));
    ([("content-type", "text/event-stream")], Body::from_stream(stream)).into_response()
}
