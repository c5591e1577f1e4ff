//! One line of claude's `stream-json` output, read tolerantly.
//!
//! The parser reads only the fields that the harness uses. Unknown types are [`Event::Other`],
//! fields of a wrong type count as absent: another version of the CLI may add any. Invariant: no
//! line causes an error.

use serde_json::Value;

/// The content of a line.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// The setup of the process.
    Init(Init),
    /// A block of an answer of the model.
    Assistant(Assistant),
    /// Results of tool calls, as the model gets them.
    ToolResults(Vec<ToolResult>),
    /// The state of the subscription's limits.
    RateLimit(RateLimit),
    /// The end of the turn.
    Result(Box<TurnResult>),
    /// An error event of other versions of the CLI; its whole text.
    Error(String),
    /// The conversation was compacted.
    Compacted {
        /// Its new size in tokens, if the line states it.
        post_tokens: Option<u64>,
    },
    /// The result of `/compact`; the error is its text.
    CompactResult(Result<(), String>),
    /// A sign of life of a running tool; no sign of progress.
    ToolHeartbeat,
    /// Any other line.
    Other,
}

/// The setup of the process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Init {
    /// Names of the tools that the model is offered.
    pub tools: Vec<String>,
    /// MCP servers and their states.
    pub mcp_servers: Vec<(String, String)>,
    pub model: String,
    pub session_id: String,
}

/// A block of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assistant {
    /// The inference that it belongs to.
    pub message_id: String,
    /// Tokens of the inference.
    pub usage: Usage,
    pub text: String,
    /// Tool calls in it: id and name.
    pub tool_uses: Vec<(String, String)>,
    /// The kind of error, if the CLI wrote the block itself to report one.
    pub error: Option<String>,
    /// The API's status for this error.
    pub api_status: Option<u16>,
    /// Whether it belongs to a sub-agent.
    pub nested: bool,
}

/// Tokens of one inference or turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Sent uncached.
    pub input: u64,
    pub cache_read: u64,
    /// Written to the cache.
    pub cache_creation: u64,
    pub output: u64,
}

impl Usage {
    /// Returns the size of the context that was sent.
    pub fn context_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_creation)
    }

    /// Adds further tokens. The sums saturate, because a line may contain any number.
    pub fn add(&mut self, more: Self) {
        let Self { input, cache_read, cache_creation, output } = self;
        let sums = [
            (input, more.input),
            (cache_read, more.cache_read),
            (cache_creation, more.cache_creation),
            (output, more.output),
        ];
        for (sum, tokens) in sums {
            *sum = sum.saturating_add(tokens);
        }
    }
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    pub tool_use_id: String,
    /// Whether the model got an error.
    pub is_error: bool,
}

/// The state of the subscription's limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RateLimit {
    /// Whether requests are refused now.
    pub rejected: bool,
    /// When the limit ends, in seconds since 1970.
    pub resets_at: Option<i64>,
}

/// The end of a turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnResult {
    pub subtype: String,
    pub is_error: bool,
    pub text: String,
    /// Why the turn ended.
    pub terminal_reason: String,
    /// The API's status, if it refused.
    pub api_status: Option<u16>,
    /// The sum over the turn's inferences.
    pub usage: Usage,
    /// The model's window.
    pub context_window: Option<u64>,
    /// Cost of this turn in US dollars, if the line states it.
    pub cost_of_turn: Option<f64>,
    /// Cost of the whole conversation in US dollars.
    pub cost_of_session: Option<f64>,
}

/// Parses a line; `None` if it is not a JSON object.
pub fn parse(line: &str) -> Option<Event> {
    let value: Value = serde_json::from_str(line).ok()?;
    value.is_object().then(|| read(&value, line))
}

fn read(value: &Value, line: &str) -> Event {
    match (text(value, "type"), text(value, "subtype")) {
        ("system", "init") => Event::Init(init(value)),
        ("system", "compact_boundary") => {
            Event::Compacted { post_tokens: value["compact_metadata"]["post_tokens"].as_u64() }
        }
        ("system", "status") => compact_result(value),
        ("assistant", _) => Event::Assistant(assistant(value)),
        ("user", _) => Event::ToolResults(tool_results(value)),
        ("rate_limit_event", _) => Event::RateLimit(rate_limit(&value["rate_limit_info"])),
        ("result", _) => Event::Result(Box::new(result(value))),
        ("error", _) => Event::Error(line.to_owned()),
        ("tool_progress", _) => Event::ToolHeartbeat,
        _ => Event::Other,
    }
}

/// Reads the result of `/compact`: the process exits successfully even if it failed, so only this
/// field counts.
fn compact_result(value: &Value) -> Event {
    match text(value, "compact_result") {
        "" => Event::Other,
        "success" => Event::CompactResult(Ok(())),
        other => {
            let error = text(value, "compact_error");
            Event::CompactResult(Err(if error.is_empty() { other } else { error }.to_owned()))
        }
    }
}

fn init(value: &Value) -> Init {
    Init {
        tools: items(&value["tools"]).filter_map(Value::as_str).map(str::to_owned).collect(),
        mcp_servers: items(&value["mcp_servers"])
            .map(|server| (text(server, "name").to_owned(), text(server, "status").to_owned()))
            .collect(),
        model: text(value, "model").to_owned(),
        session_id: text(value, "session_id").to_owned(),
    }
}

fn assistant(value: &Value) -> Assistant {
    let message = &value["message"];
    let blocks = || items(&message["content"]);
    Assistant {
        message_id: text(message, "id").to_owned(),
        usage: usage(&message["usage"]),
        text: blocks()
            .filter(|block| text(block, "type") == "text")
            .map(|block| text(block, "text"))
            .collect::<Vec<_>>()
            .join("\n"),
        tool_uses: blocks()
            .filter(|block| text(block, "type") == "tool_use")
            .map(|block| (text(block, "id").to_owned(), text(block, "name").to_owned()))
            .collect(),
        error: value["error"].as_str().map(str::to_owned),
        api_status: status(value),
        nested: value["parent_tool_use_id"].is_string(),
    }
}

fn tool_results(value: &Value) -> Vec<ToolResult> {
    items(&value["message"]["content"])
        .filter(|block| text(block, "type") == "tool_result")
        .map(|block| ToolResult {
            tool_use_id: text(block, "tool_use_id").to_owned(),
            is_error: block["is_error"].as_bool().unwrap_or(false),
        })
        .collect()
}

fn rate_limit(info: &Value) -> RateLimit {
    RateLimit { rejected: text(info, "status") == "rejected", resets_at: info["resetsAt"].as_i64() }
}

fn result(value: &Value) -> TurnResult {
    let models = || value["modelUsage"].as_object().into_iter().flat_map(|models| models.values());
    let since_last = value["model_usage_since_last_result"].as_object();
    TurnResult {
        subtype: text(value, "subtype").to_owned(),
        is_error: value["is_error"].as_bool().unwrap_or(false),
        text: text(value, "result").to_owned(),
        terminal_reason: text(value, "terminal_reason").to_owned(),
        api_status: status(value),
        usage: Some(usage(&value["usage"]))
            .filter(|sum| *sum != Usage::default())
            .unwrap_or_else(|| usage_of_models(since_last)),
        context_window: models().filter_map(|model| model["contextWindow"].as_u64()).max(),
        cost_of_turn: since_last
            .map(|models| models.values().filter_map(|model| model["costUSD"].as_f64()).sum()),
        cost_of_session: value["total_cost_usd"].as_f64(),
    }
}

/// Sums the usage by model: a command such as `/compact` reports no other.
fn usage_of_models(models: Option<&serde_json::Map<String, Value>>) -> Usage {
    let mut sum = Usage::default();
    for model in models.into_iter().flat_map(|models| models.values()) {
        let names =
            ["inputTokens", "cacheReadInputTokens", "cacheCreationInputTokens", "outputTokens"];
        sum.add(tokens(model, names));
    }
    sum
}

fn usage(value: &Value) -> Usage {
    let [cache_read, cache_creation] = ["cache_read_input_tokens", "cache_creation_input_tokens"];
    tokens(value, ["input_tokens", cache_read, cache_creation, "output_tokens"])
}

fn tokens(value: &Value, names: [&str; 4]) -> Usage {
    let [input, cache_read, cache_creation, output] =
        names.map(|name| value[name].as_u64().unwrap_or(0));
    Usage { input, cache_read, cache_creation, output }
}

fn status(value: &Value) -> Option<u16> {
    value["api_error_status"].as_u64().and_then(|status| u16::try_from(status).ok())
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or("")
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
