//! The lines that claude writes to stdout, in the shapes recorded from the real one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

/// The usage of each scripted inference, unless a script sets another.
const USAGE: [(&str, u64); 4] = [
    ("input_tokens", 10),
    ("output_tokens", 20),
    ("cache_read_input_tokens", 1_000),
    ("cache_creation_input_tokens", 100),
];
/// The cost of an inference, in dollars.
const INFERENCE_COST: f64 = 0.001;

/// The variable with the version that claude reports, if it must differ from the version that the
/// tests are written for.
pub const VERSION_ENV: &str = "SCRIPTED_CLAUDE_VERSION";

/// The writer of one process's events.
#[derive(Debug)]
pub struct Events {
    session_id: String,
    model: String,
    version: String,
    usage: BTreeMap<String, u64>,
    total: BTreeMap<String, u64>,
    inferences: u32,
    results: u32,
    /// The cost of the conversation, before this process and in it.
    cost: f64,
    started: std::time::Instant,
}

impl Events {
    /// Creates the writer for this conversation, with its cost so far, and this model.
    pub fn new(session_id: &str, model: &str, cost: f64) -> Self {
        let usage = USAGE.into_iter().map(|(name, tokens)| (name.to_owned(), tokens)).collect();
        Self {
            session_id: session_id.to_owned(),
            model: full_name(model),
            version: version(),
            usage,
            total: BTreeMap::new(),
            inferences: 0,
            results: 0,
            cost,
            started: std::time::Instant::now(),
        }
    }

    /// Begins a turn: usage and duration are counted from here.
    pub fn begin(&mut self) {
        self.total.clear();
        self.inferences = 0;
        self.started = std::time::Instant::now();
    }

    /// Continues in another conversation, with no cost yet.
    pub fn set_session(&mut self, session_id: &str) {
        session_id.clone_into(&mut self.session_id);
        self.cost = 0.0;
    }

    /// Uses another model from now on.
    pub fn set_model(&mut self, model: &str) {
        self.model = full_name(model);
    }

    /// Returns the model's full name.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Returns the model's context window, in tokens.
    pub fn window(&self) -> u64 {
        window(&self.model)
    }

    /// Sets the usage of further inferences.
    pub fn set_usage(&mut self, usage: &BTreeMap<String, u64>) {
        self.usage.extend(usage.clone());
    }

    /// Writes the first line: the set-up of the process.
    pub fn init(&self, tools: &[String], servers: &[(String, bool)]) -> io::Result<()> {
        let status = |connected: bool| if connected { "connected" } else { "failed" };
        let servers: Vec<Value> = servers
            .iter()
            .map(|(name, connected)| json!({"name": name, "status": status(*connected), "source": "dynamic"}))
            .collect();
        self.line(json!({
            "type": "system", "subtype": "init", "cwd": std::env::current_dir()?, "tools": tools, "mcp_servers": servers,
            "model": self.model, "permissionMode": "default", "apiKeySource": "none", "slash_commands": [],
            "claude_code_version": self.version, "plugins": [], "skills": [], "agents": [],
        }))
    }

    /// Writes an inference with these blocks: one event per block, all with the same id and usage.
    /// Returns the usage.
    pub fn assistant(&mut self, blocks: &[Value]) -> io::Result<Value> {
        self.infer();
        let mut usage = self.usage.clone();
        // The real one reports the start of the message, before any output.
        usage.insert("output_tokens".to_owned(), 1);
        let id = format!("msg_{}", hex(12));
        for block in blocks {
            self.line(json!({
                "type": "assistant", "parent_tool_use_id": null,
                "message": {"id": id, "type": "message", "role": "assistant", "model": self.model, "content": [block], "stop_reason": null, "usage": usage},
            }))?;
        }
        Ok(json!(self.usage))
    }

    /// Counts an inference.
    pub fn infer(&mut self) {
        self.inferences += 1;
        self.cost += INFERENCE_COST;
        for (name, tokens) in &self.usage {
            *self.total.entry(name.clone()).or_default() += tokens;
        }
    }

    /// Writes text that claude itself puts into the model's mouth.
    pub fn synthetic(
        &self,
        text: &str,
        stop_reason: &str,
        fields: &Map<String, Value>,
    ) -> io::Result<()> {
        let usage = USAGE.map(|(name, _)| (name.to_owned(), json!(0)));
        let mut event = json!({
            "type": "assistant", "parent_tool_use_id": null,
            "message": {
                "id": uuid(), "type": "message", "role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}],
                "stop_reason": stop_reason, "usage": Map::from_iter(usage),
            },
        });
        for (name, value) in fields {
            event[name] = value.clone();
        }
        self.line(event)
    }

    /// Writes the results of tool calls, as the model gets them.
    pub fn tool_result(&self, tool_use_id: &str, text: &str, is_error: bool) -> io::Result<()> {
        let mut block = json!({"tool_use_id": tool_use_id, "type": "tool_result", "content": [{"type": "text", "text": text}]});
        if is_error {
            block["is_error"] = json!(true);
        }
        self.line(json!({
            "type": "user", "parent_tool_use_id": null, "message": {"role": "user", "content": [block]},
            "tool_use_result": [{"type": "text", "text": text}],
        }))
    }

    /// Reports a tool call without permission.
    pub fn permission_denied(
        &self,
        tool: &str,
        tool_use_id: &str,
        message: &str,
    ) -> io::Result<()> {
        self.line(json!({"type": "system", "subtype": "permission_denied", "tool_name": tool, "tool_use_id": tool_use_id, "message": message}))
    }

    /// Writes the last line of a turn. `text` is the last text of the model, `fields` the fields
    /// that differ.
    pub fn result(&mut self, text: &str, fields: &Map<String, Value>) -> io::Result<()> {
        let mut event = self.sum();
        let told = json!({
            "num_turns": self.inferences.max(1), "stop_reason": "end_turn", "terminal_reason": "completed", "api_error_status": null, "result": text,
        });
        for (name, value) in told.as_object().into_iter().flatten().chain(fields) {
            event[name] = value.clone();
        }
        self.end(event)
    }

    /// Writes the last line of an aborted turn, which has no text.
    pub fn aborted(&mut self, terminal_reason: &str) -> io::Result<()> {
        let mut event = self.sum();
        event["num_turns"] = json!(self.inferences + 1);
        event["subtype"] = json!("error_during_execution");
        event["is_error"] = json!(true);
        event["stop_reason"] = Value::Null;
        event["terminal_reason"] = json!(terminal_reason);
        event["errors"] =
            json!(["[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=null"]);
        self.end(event)
    }

    /// Writes the last line of a command such as `/compact`, which is not a turn of the model.
    pub fn command_result(&mut self, command: &str, text: &str) -> io::Result<()> {
        let mut event = self.sum();
        event["num_turns"] = json!(0);
        event["stop_reason"] = Value::Null;
        event["usage"] = Map::from_iter(USAGE.map(|(name, _)| (name.to_owned(), json!(0)))).into();
        event["result"] = json!(text);
        event["local_command"] = json!(command);
        self.end(event)
    }

    /// Returns the fields that every result has.
    fn sum(&self) -> Value {
        let of_model = |cost: f64| {
            // A model that was never used is not reported, and neither is its window.
            if cost <= 0.0 {
                return json!({});
            }
            let tokens = |name: &str| self.total.get(name).copied().unwrap_or(0);
            json!({self.model.clone(): {
                "inputTokens": tokens("input_tokens"), "outputTokens": tokens("output_tokens"),
                "cacheReadInputTokens": tokens("cache_read_input_tokens"), "cacheCreationInputTokens": tokens("cache_creation_input_tokens"),
                "webSearchRequests": 0, "costUSD": cost, "contextWindow": self.window(), "maxOutputTokens": 32_000,
            }})
        };
        let milliseconds = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        json!({
            "type": "result", "subtype": "success", "is_error": false, "duration_ms": milliseconds, "duration_api_ms": 0,
            "total_cost_usd": self.cost, "usage": self.total, "modelUsage": of_model(self.cost),
            "model_usage_since_last_result": of_model(f64::from(self.inferences) * INFERENCE_COST), "permission_denials": [],
            "queued_turn_count": 0, "result_index": self.results,
        })
    }

    fn end(&mut self, event: Value) -> io::Result<()> {
        self.results += 1;
        self.line(event)
    }

    /// Returns the cost of the conversation.
    pub fn cost(&self) -> f64 {
        self.cost
    }

    /// Writes an event, with the fields that every event has.
    pub fn line(&self, mut event: Value) -> io::Result<()> {
        event["session_id"] = json!(self.session_id);
        if event["uuid"].is_null() {
            event["uuid"] = json!(uuid());
        }
        raw(&event.to_string())
    }
}

/// Returns the version that claude reports.
pub fn version() -> String {
    std::env::var(VERSION_ENV).unwrap_or_else(|_| crate::VERSION.to_owned())
}

/// Writes a line to stdout.
pub fn raw(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// Returns a random id in the usual shape.
pub fn uuid() -> String {
    let hex = hex(16);
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// Returns random bytes as text.
pub fn hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).expect("the kernel gives random bytes");
    random.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string never fails");
        text
    })
}

/// Returns the model of an alias.
fn full_name(model: &str) -> String {
    match model {
        "haiku" | "sonnet" | "opus" => format!("claude-{model}-5-5"),
        name => name.to_owned(),
    }
}

fn window(model: &str) -> u64 {
    if model.contains("haiku-4") { 200_000 } else { 1_000_000 }
}
