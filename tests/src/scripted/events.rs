//! The lines that claude writes to stdout, in the shapes that were measured of the real one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};

use serde_json::{Map, Value, json};

/// What the scripted inferences say that they used, unless a script says otherwise.
const USAGE: [(&str, u64); 4] =
    [("input_tokens", 10), ("output_tokens", 20), ("cache_read_input_tokens", 1_000), ("cache_creation_input_tokens", 100)];
/// Dollars that an inference costs here.
const INFERENCE_COST: f64 = 0.001;

/// Writes the events of one process.
#[derive(Debug)]
pub struct Events {
    session_id: String,
    model: String,
    usage: BTreeMap<String, u64>,
    total: BTreeMap<String, u64>,
    inferences: u32,
    started: std::time::Instant,
}

impl Events {
    /// For this conversation and model.
    #[must_use]
    pub fn new(session_id: &str, model: &str) -> Self {
        let usage = USAGE.into_iter().map(|(name, tokens)| (name.to_owned(), tokens)).collect();
        let model = full_name(model);
        Self {
            session_id: session_id.to_owned(),
            model,
            usage,
            total: BTreeMap::new(),
            inferences: 0,
            started: std::time::Instant::now(),
        }
    }

    /// Sets what further inferences say that they used.
    pub fn set_usage(&mut self, usage: &BTreeMap<String, u64>) {
        self.usage.extend(usage.clone());
    }

    /// The first line: how the process is set up.
    pub fn init(&self, tools: &[String], servers: &[(String, bool)]) -> io::Result<()> {
        let status = |connected: bool| if connected { "connected" } else { "failed" };
        let servers: Vec<Value> = servers
            .iter()
            .map(|(name, connected)| json!({"name": name, "status": status(*connected), "source": "dynamic"}))
            .collect();
        self.line(json!({
            "type": "system", "subtype": "init", "cwd": std::env::current_dir()?, "tools": tools, "mcp_servers": servers,
            "model": self.model, "permissionMode": "default", "apiKeySource": "none", "slash_commands": [],
            "claude_code_version": crate::claude::VERSION,
        }))
    }

    /// An inference that gave these blocks; one event a block, all with the same id and usage.
    pub fn assistant(&mut self, blocks: &[Value]) -> io::Result<()> {
        self.inferences += 1;
        for (name, tokens) in &self.usage {
            *self.total.entry(name.clone()).or_default() += tokens;
        }
        let mut usage = self.usage.clone();
        // The real one tells the start of the message, before anything was put out.
        usage.insert("output_tokens".to_owned(), 1);
        let id = format!("msg_{}", hex(12));
        for block in blocks {
            self.line(json!({
                "type": "assistant", "parent_tool_use_id": null,
                "message": {"id": id, "type": "message", "role": "assistant", "model": self.model, "content": [block], "stop_reason": null, "usage": usage},
            }))?;
        }
        Ok(())
    }

    /// The results of tool calls, as the model gets them.
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

    /// A tool call that nobody has allowed.
    pub fn permission_denied(&self, tool: &str, tool_use_id: &str, message: &str) -> io::Result<()> {
        self.line(json!({"type": "system", "subtype": "permission_denied", "tool_name": tool, "tool_use_id": tool_use_id, "message": message}))
    }

    /// The last line. `text` is the last that was said, `cost_before` what the conversation cost before this process, `fields` what a script
    /// wants said.
    pub fn result(&self, text: &str, cost_before: f64, fields: &Map<String, Value>) -> io::Result<()> {
        let cost = self.cost();
        let of_model = |cost: f64| {
            let tokens = |name: &str| self.total.get(name).copied().unwrap_or(0);
            json!({self.model.clone(): {
                "inputTokens": tokens("input_tokens"), "outputTokens": tokens("output_tokens"),
                "cacheReadInputTokens": tokens("cache_read_input_tokens"), "cacheCreationInputTokens": tokens("cache_creation_input_tokens"),
                "webSearchRequests": 0, "costUSD": cost, "contextWindow": window(&self.model), "maxOutputTokens": 32_000,
            }})
        };
        let milliseconds = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let mut event = json!({
            "type": "result", "subtype": "success", "is_error": false, "api_error_status": null, "result": text,
            "num_turns": self.inferences, "stop_reason": "end_turn", "terminal_reason": "completed", "duration_ms": milliseconds,
            "duration_api_ms": 0, "total_cost_usd": cost_before + cost, "usage": self.total, "modelUsage": of_model(cost_before + cost),
            "model_usage_since_last_result": of_model(cost), "permission_denials": [],
        });
        for (name, value) in fields {
            event[name] = value.clone();
        }
        self.line(event)
    }

    /// What this process cost so far.
    #[must_use]
    pub fn cost(&self) -> f64 {
        f64::from(self.inferences) * INFERENCE_COST
    }

    /// Writes any event, with what all of them carry.
    pub fn line(&self, mut event: Value) -> io::Result<()> {
        event["session_id"] = json!(self.session_id);
        event["uuid"] = json!(uuid());
        raw(&event.to_string())
    }
}

/// Writes a line to stdout.
pub fn raw(line: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    stdout.flush()
}

/// A random id in the usual shape.
#[must_use]
pub fn uuid() -> String {
    let hex = hex(16);
    format!("{}-{}-4{}-8{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
}

/// Random bytes as text.
#[must_use]
pub fn hex(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).expect("the kernel gives random bytes");
    random.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string never fails");
        text
    })
}

/// The model behind an alias.
fn full_name(model: &str) -> String {
    match model {
        "haiku" | "sonnet" | "opus" => format!("claude-{model}-5-5"),
        name => name.to_owned(),
    }
}

fn window(model: &str) -> u64 {
    if model.contains("haiku-4") { 200_000 } else { 1_000_000 }
}
