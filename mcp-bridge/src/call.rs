//! One tool call: its request id, its cancellation, and its wait.
//!
//! Invariant: the request id depends only on the process token and claude's tool-use id, so every
//! repeat of a call is one request. Tool-use ids alone repeat between turns. The token cannot be
//! derived from the request id.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hive_core::trace::TraceContext;
use rmcp::model::RequestMetaObject;
use sha2::{Digest as _, Sha256};
use tokio_util::sync::CancellationToken;

/// Key in `_meta` of the request under which claude writes the id of the tool use.
const TOOL_USE_ID_KEY: &str = "claudecode/toolUseId";
/// Key in `_meta` that MCP reserves for the W3C trace context of the call.
const TRACEPARENT_KEY: &str = "traceparent";

/// One tool call.
#[derive(Debug)]
pub struct Call {
    /// Idempotency key of the call's one request.
    pub request_id: String,
    /// Claude's id of the call; empty if the client sent none.
    pub tool_use_id: String,
    /// The span in which the client makes the call, if it states one.
    pub trace: Option<TraceContext>,
    /// Cancelled when no client can read the result any more: waits end.
    pub closing: CancellationToken,
    waiting_for: Mutex<&'static str>,
    away_ms: AtomicU64,
}

impl Call {
    /// Returns a call from the metadata of its request.
    #[must_use]
    pub fn new(
        process_token: Option<&str>,
        meta: &RequestMetaObject,
        closing: CancellationToken,
    ) -> Self {
        let tool_use_id = meta
            .get(TOOL_USE_ID_KEY)
            .and_then(serde_json::Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let trace = meta.get(TRACEPARENT_KEY).and_then(serde_json::Value::as_str);
        let request_id = if tool_use_id.is_empty() {
            random_id()
        } else {
            derived_id(process_token.unwrap_or(""), &tool_use_id)
        };
        Self {
            request_id,
            tool_use_id,
            trace: trace.and_then(TraceContext::parse),
            closing,
            waiting_for: Mutex::new("working"),
            away_ms: AtomicU64::new(0),
        }
    }

    /// Sets what the call waits for, for progress notifications.
    pub fn wait_for(&self, what: &'static str) {
        *self.waiting_for.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = what;
    }

    /// Returns what the call waits for.
    pub fn waiting_for(&self) -> &'static str {
        *self.waiting_for.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Records for how long the peer was away.
    pub fn note_away(&self, away: Duration) {
        self.away_ms.store(u64::try_from(away.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns for how long the peer was away; zero if it was not.
    pub fn away(&self) -> Duration {
        Duration::from_millis(self.away_ms.load(Ordering::Relaxed))
    }
}

fn derived_id(process_token: &str, tool_use_id: &str) -> String {
    let mut hash = Sha256::new();
    hash.update(process_token.len().to_be_bytes());
    hash.update(process_token);
    hash.update(tool_use_id);
    identified(&hash.finalize()[..16])
}

/// Returns a random id.
pub fn random_id() -> String {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the kernel gives random bytes");
    identified(&bytes)
}

fn identified(bytes: &[u8]) -> String {
    bytes.iter().fold(String::from("mcp-"), |mut id, byte| {
        write!(id, "{byte:02x}").expect("writing to a string never fails");
        id
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(token: &str, tool_use_id: Option<&str>) -> Call {
        let mut meta = RequestMetaObject::default();
        if let Some(id) = tool_use_id {
            meta.insert(TOOL_USE_ID_KEY.to_owned(), id.into());
        }
        Call::new(Some(token), &meta, CancellationToken::new())
    }

    #[test]
    fn the_request_id_names_the_call_within_its_turn() {
        let first = call("token-of-turn-1", Some("toolu_1"));
        assert_eq!(first.request_id, call("token-of-turn-1", Some("toolu_1")).request_id);
        assert_ne!(first.request_id, call("token-of-turn-1", Some("toolu_2")).request_id);
        assert_ne!(first.request_id, call("token-of-turn-2", Some("toolu_1")).request_id);
        assert_ne!(call("ab", Some("c")).request_id, call("a", Some("bc")).request_id);
        assert!(first.request_id.len() <= hive_core::limits::REQUEST_ID_CHARS_MAX);
        assert!(!first.request_id.contains("token"));
    }

    #[test]
    fn a_trace_context_of_the_client_is_read_and_anything_else_is_none() {
        let context = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let trace = |value: serde_json::Value| {
            let meta = serde_json::Map::from_iter([(TRACEPARENT_KEY.to_owned(), value)]);
            let meta = RequestMetaObject::from(meta);
            Call::new(None, &meta, CancellationToken::new()).trace
        };
        assert_eq!(trace(context.into()).map(|trace| trace.to_string()).as_deref(), Some(context));
        assert_eq!(trace("hello".into()), None);
        assert_eq!(trace(7.into()), None);
    }

    #[test]
    fn without_a_tool_use_id_every_call_is_its_own() {
        assert_ne!(call("t", None).request_id, call("t", None).request_id);
    }
}
