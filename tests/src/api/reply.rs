//! Answers of the stand-in.

use serde_json::{Value, json};

use super::Gate;
use crate::scripted::fill::fill;

/// The token usage that an inference reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// Sent uncached.
    pub input: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_creation: u64,
    /// Produced.
    pub output: u64,
}

impl Usage {
    /// Returns the usage for a context of this many tokens, nearly all of it from the cache.
    pub fn context(tokens: u64) -> Self {
        let input = tokens.min(3);
        let cache_creation = (tokens - input).min(100);
        Self { input, cache_creation, cache_read: tokens - input - cache_creation, output: 20 }
    }
}

impl Default for Usage {
    fn default() -> Self {
        Self { input: 3, cache_read: 0, cache_creation: 100, output: 20 }
    }
}

#[derive(Clone, Debug)]
pub struct Reply {
    pub(super) kind: Kind,
    pub(super) times: Option<u32>,
    pub(super) headers: Vec<(String, String)>,
    pub(super) held: Option<Gate>,
}

#[derive(Clone, Debug)]
pub(super) enum Kind {
    Message { blocks: Vec<Value>, stop_reason: String, usage: Usage },
    Status { code: u16, error: String, message: String },
    Broken(Broken),
    Hang,
}

/// The kinds of broken answer.
#[derive(Clone, Debug)]
pub(super) enum Broken {
    /// The connection is reset before anything was answered.
    Reset,
    /// Some words come, and then the connection ends.
    Cut,
    /// Some words come, and then an error.
    Error,
    /// Some words come; the rest only when the gate is opened.
    Pause { words: String, gate: Gate },
}

impl Reply {
    fn of(kind: Kind) -> Self {
        Self { kind, times: None, headers: Vec::new(), held: None }
    }

    fn message(blocks: Vec<Value>, stop_reason: &str) -> Self {
        Self::of(Kind::Message {
            blocks,
            stop_reason: stop_reason.to_owned(),
            usage: Usage::default(),
        })
    }

    /// Says something and ends the turn.
    pub fn text(text: &str) -> Self {
        Self::message(vec![json!({"type": "text", "text": text})], "end_turn")
    }

    /// Calls a tool. Text of the prompt can be inserted into the input: see
    /// [`crate::scripted::fill`].
    pub fn tool(name: &str, input: Value) -> Self {
        Self::tools([(name, input)])
    }

    /// Calls several tools at once.
    pub fn tools<'a>(calls: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        // Ids are made when the answer is given, so that they differ between turns.
        let blocks = calls
            .into_iter()
            .map(|(name, input)| json!({"type": "tool_use", "name": name, "input": input}));
        Self::message(blocks.collect(), "tool_use")
    }

    /// Refuses with a status; the error's type is the one that goes with it.
    pub fn status(code: u16, message: &str) -> Self {
        let error = match code {
            400 => "invalid_request_error",
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            529 => "overloaded_error",
            _ => "api_error",
        };
        Self::of(Kind::Status { code, error: error.to_owned(), message: message.to_owned() })
    }

    /// No valid key.
    pub fn unauthorized() -> Self {
        Self::status(401, "invalid x-api-key")
    }

    /// Too many requests; says when to come back if that is known.
    pub fn rate_limited(retry_after_seconds: Option<u32>) -> Self {
        let reply = Self::status(429, "This request would exceed your account's rate limit.");
        match retry_after_seconds {
            Some(seconds) => reply.header("retry-after", &seconds.to_string()),
            None => reply,
        }
    }

    /// A subscription's limit is reached until then, in seconds since 1970.
    pub fn usage_limit(resets_at: i64) -> Self {
        let resets_at = resets_at.to_string();
        Self::status(429, "usage limit reached")
            .header("anthropic-ratelimit-unified-status", "rejected")
            .header("anthropic-ratelimit-unified-reset", &resets_at)
            .header("anthropic-ratelimit-unified-representative-claim", "five_hour")
            .header("anthropic-ratelimit-unified-5h-status", "rejected")
            .header("anthropic-ratelimit-unified-5h-reset", &resets_at)
    }

    pub fn overloaded() -> Self {
        Self::status(529, "Overloaded")
    }

    pub fn fault() -> Self {
        Self::status(500, "Internal server error")
    }

    /// The context is larger than the window of the smallest model.
    pub fn too_long() -> Self {
        Self::too_long_for(210_000, 200_000)
    }

    /// The context is larger than the window.
    pub fn too_long_for(tokens: u64, window: u64) -> Self {
        Self::status(400, &format!("prompt is too long: {tokens} tokens > {window} maximum"))
    }

    /// Nothing is paid for.
    pub fn no_credit() -> Self {
        Self::status(
            400,
            "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits.",
        )
    }

    /// There is no such model.
    pub fn no_such_model() -> Self {
        Self::status(404, "model: no-such-model")
    }

    /// Takes the request and never answers.
    pub fn hang() -> Self {
        Self::of(Kind::Hang)
    }

    /// Resets the connection before anything was answered.
    pub fn reset() -> Self {
        Self::of(Kind::Broken(Broken::Reset))
    }

    /// Begins to stream and breaks the connection.
    pub fn cut() -> Self {
        Self::of(Kind::Broken(Broken::Cut))
    }

    /// Begins to stream and then reports an error in the stream.
    pub fn stream_error() -> Self {
        Self::of(Kind::Broken(Broken::Error))
    }

    /// Streams these words, and the end of the answer only when the gate is opened.
    pub fn pause(words: &str, gate: &Gate) -> Self {
        Self::of(Kind::Broken(Broken::Pause { words: words.to_owned(), gate: gate.clone() }))
    }

    /// Sends this answer only when the gate is opened. The request is recorded before.
    #[must_use]
    pub fn held(mut self, gate: &Gate) -> Self {
        self.held = Some(gate.clone());
        self
    }

    /// Adds a header to an answer or a refusal.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Sets what the answer says that it used.
    #[must_use]
    pub fn using(mut self, used: Usage) -> Self {
        if let Kind::Message { usage, .. } = &mut self.kind {
            *usage = used;
        }
        self
    }

    /// Sets why the answer stops.
    #[must_use]
    pub fn stopping(mut self, reason: &str) -> Self {
        if let Kind::Message { stop_reason, .. } = &mut self.kind {
            reason.clone_into(stop_reason);
        }
        self
    }

    /// Uses this reply only `times` times; after that it is skipped. Use it for refusals and
    /// broken connections: the model did not answer, so they do not count as steps of a turn. The
    /// rule that has this reply counts the times for all agents together.
    #[must_use]
    pub fn times(mut self, times: u32) -> Self {
        self.times = Some(times);
        self
    }

    /// The answer to this prompt: what it says is put into the inputs of tools.
    pub(super) fn filled(mut self, prompt: &str) -> Self {
        if let Kind::Message { blocks, .. } = &mut self.kind {
            for input in blocks.iter_mut().filter_map(|block| block.get_mut("input")) {
                *input = fill(input.take(), prompt);
            }
        }
        self
    }
}
