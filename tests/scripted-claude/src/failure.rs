//! The failure of a turn if the API refuses: the text and fields recorded from the real claude.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A refusal. In a script: `{"fail": "overloaded"}`, `{"fail": {"usage_limit": 4102444800}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Failure {
    /// 429 without further text.
    RateLimit,
    /// A subscription's limit is reached until this time, in seconds since 1970.
    UsageLimit(i64),
    /// 529.
    Overloaded,
    /// 500.
    Fault,
    /// 401 for a key.
    InvalidKey,
    /// There is no login; the API is not asked.
    NotLoggedIn,
    /// No credit is left.
    NoCredit,
    /// The API finds the prompt too long.
    PromptTooLong,
    /// Claude itself finds the prompt too long; the API is not asked.
    BlockingLimit,
}

/// The events that report a refusal.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) text: String,
    /// Fields of the `assistant` event.
    pub(super) assistant: Map<String, Value>,
    /// Fields of the result.
    pub(super) result: Map<String, Value>,
    /// The event that precedes them.
    pub(super) before: Option<Value>,
}

const OVERLOADED: &str = "API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment.";
const FAULT: &str = "API Error: 500 Internal server error. This is a server-side issue, usually temporary — try again in a moment.";
const LIMITED: &str =
    "API Error: Request rejected (429) · This request would exceed your account's rate limit.";
const LIMIT_REACHED: &str = "You've hit your 5-hour limit · resets 9:40pm (UTC)";

impl Failure {
    pub(super) fn report(self) -> Told {
        let (text, error, status, kind) = match self {
            Self::RateLimit => (LIMITED, "rate_limit", Some(429), "rate_limit_error"),
            Self::UsageLimit(_) => (LIMIT_REACHED, "rate_limit", Some(429), "rate_limit_error"),
            Self::Overloaded => (OVERLOADED, "server_error", Some(529), "overloaded_error"),
            Self::Fault => (FAULT, "server_error", Some(500), "api_error"),
            Self::InvalidKey => (
                "Invalid API key · Fix external API key",
                "authentication_failed",
                Some(401),
                "authentication_error",
            ),
            Self::NotLoggedIn => {
                ("Not logged in · Please run /login", "authentication_failed", None, "")
            }
            Self::NoCredit => {
                ("Credit balance is too low", "billing_error", Some(400), "invalid_request_error")
            }
            Self::PromptTooLong => {
                ("Prompt is too long", "invalid_request", Some(400), "invalid_request_error")
            }
            Self::BlockingLimit => ("Prompt is too long", "invalid_request", None, ""),
        };
        let mut assistant = Map::from_iter([
            ("error".to_owned(), json!(error)),
            ("is_api_error_message".to_owned(), json!(true)),
        ]);
        let mut result = Map::from_iter([
            ("is_error".to_owned(), json!(true)),
            ("result".to_owned(), json!(text)),
            ("terminal_reason".to_owned(), json!(self.terminal_reason())),
            ("stop_reason".to_owned(), json!("stop_sequence")),
            ("api_error_status".to_owned(), json!(status)),
        ]);
        if status.is_some() {
            assistant.insert("api_error_status".to_owned(), json!(status));
            assistant.insert("api_error_type".to_owned(), json!(kind));
            assistant.insert("request_id".to_owned(), json!("req_scripted"));
            result.insert("api_error_type".to_owned(), json!(kind));
        }
        let mut before = None;
        if let Self::UsageLimit(resets_at) = self {
            let info = json!({"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour", "isUsingOverage": false});
            for fields in [&mut assistant, &mut result] {
                fields.insert("api_error".to_owned(), json!("usage_limit_reached"));
            }
            assistant.insert("api_error_params".to_owned(), json!({"rate_limit_info": info}));
            before = Some(json!({"type": "rate_limit_event", "rate_limit_info": info}));
        }
        Told { text: text.to_owned(), assistant, result, before }
    }

    fn terminal_reason(self) -> &'static str {
        match self {
            Self::PromptTooLong => "prompt_too_long",
            Self::BlockingLimit => "blocking_limit",
            Self::RateLimit
            | Self::UsageLimit(_)
            | Self::Overloaded
            | Self::Fault
            | Self::InvalidKey
            | Self::NotLoggedIn
            | Self::NoCredit => "api_error",
        }
    }
}
