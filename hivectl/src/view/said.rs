//! Lines of claude's stream as text for a person.
//!
//! What it is not: a check of the stream. A line may have any shape and any field may be missing.
//! An unknown event is shown by its type, and a line that is no event of claude is rejected.
//!
//! Invariant: a cut text is followed by its size.

use hive_core::time::WallTime;
use serde_json::Value;

use crate::output::style::Style;
use crate::output::text::visible_line;

/// Lines that are shown of a tool's result, and of other input of the model.
const RESULT_LINES: usize = 3;
/// A larger result is shown with its size.
const RESULT_BYTES: usize = 200;
/// Characters of one argument of a tool.
const ARGUMENT_CHARS: usize = 60;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tone {
    Plain,
    Faint,
    Busy,
    Bad,
}

#[derive(Debug)]
pub(super) struct Said {
    pub(super) tone: Tone,
    pub(super) mark: &'static str,
    pub(super) text: String,
    /// Whether all of it is shown; otherwise each of its lines is cut to the room there is.
    pub(super) whole: bool,
}

impl Said {
    pub(super) fn whole(tone: Tone, text: String) -> Self {
        Self { tone, mark: "", text, whole: true }
    }

    pub(super) fn cut(tone: Tone, text: String) -> Self {
        Self { tone, mark: "", text, whole: false }
    }

    fn remark(tone: Tone, text: &str) -> Self {
        Self::cut(tone, format!("[{}]", visible_line(text)))
    }
}

/// Returns the pieces of a line; `None` if it is no event of claude, and none if it is not for
/// people.
pub(super) fn said(line: &str, style: &Style) -> Option<Vec<Said>> {
    let event: Value = serde_json::from_str(line).ok()?;
    let kind = event.get("type")?.as_str()?;
    let said = match kind {
        "assistant" => of_assistant(&event),
        "user" => of_user(&event),
        "system" => of_system(&event, style),
        "result" => vec![of_result(&event)],
        "rate_limit_event" => of_rate_limit(&event["rate_limit_info"], style),
        "tool_progress" => {
            let seconds = event["elapsed_time_seconds"].as_f64().unwrap_or_default();
            vec![Said::remark(
                Tone::Faint,
                &format!("{} runs for {seconds:.0} s", text(&event, "tool_name")),
            )]
        }
        other => vec![Said::remark(Tone::Faint, &named(other, &event))],
    };
    Some(said)
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn named(kind: &str, event: &Value) -> String {
    format!("{kind} {}", text(event, "subtype")).trim_end().to_owned()
}

fn of_assistant(event: &Value) -> Vec<Said> {
    // An error of the API replaces the model's text.
    let failed = event["is_api_error_message"].as_bool() == Some(true)
        || event.get("error").is_some_and(Value::is_string);
    let parts = event.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    let of_part = |part: &Value| match text(part, "type") {
        "text" if text(part, "text").trim().is_empty() => None,
        "text" => Some(Said::whole(
            if failed { Tone::Bad } else { Tone::Plain },
            text(part, "text").trim().to_owned(),
        )),
        "thinking" => {
            let thought = shortened(text(part, "thinking"));
            Some(if thought.is_empty() {
                Said::remark(Tone::Faint, "thinking")
            } else {
                Said::cut(Tone::Faint, thought)
            })
        }
        "tool_use" => {
            let call =
                format!("{} {}", visible_line(text(part, "name")), arguments(&part["input"]));
            Some(Said { mark: "-> ", ..Said::cut(Tone::Plain, call.trim_end().to_owned()) })
        }
        other => Some(Said::remark(Tone::Faint, other)),
    };
    parts.filter_map(of_part).collect()
}

/// Returns the arguments of a tool in one line.
fn arguments(input: &Value) -> String {
    let short = |value: &Value| {
        let text = visible_line(&value.to_string());
        let mut kept: String = text.chars().take(ARGUMENT_CHARS).collect();
        if kept.len() < text.len() {
            kept.push('…');
        }
        kept
    };
    match input {
        Value::Null => String::new(),
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, value)| format!("{}={}", visible_line(name), short(value)))
                .collect();
            fields.join(" ")
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => short(input),
    }
}

/// Returns input of the model: results of tools, and notes of claude or the harness.
fn of_user(event: &Value) -> Vec<Said> {
    let rendered = |text: &str| {
        let rendered = shortened(text);
        (!rendered.is_empty()).then(|| Said { mark: "   ", ..Said::cut(Tone::Faint, rendered) })
    };
    match event.pointer("/message/content") {
        Some(Value::String(text)) => rendered(text).into_iter().collect(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| {
                if text(part, "type") == "tool_result" {
                    Some(result(part))
                } else {
                    rendered(text(part, "text"))
                }
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn result(part: &Value) -> Said {
    let content = match &part["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let of_part = |part: &Value| match part.get("text").and_then(Value::as_str) {
                Some(text) => text.to_owned(),
                None => format!("[{}]", text(part, "type")),
            };
            parts.iter().map(of_part).collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    };
    let failed = part["is_error"].as_bool() == Some(true);
    let shown = shortened(&content);
    let shown = if shown.is_empty() { "(nothing)".to_owned() } else { shown };
    Said { mark: "<- ", ..Said::cut(if failed { Tone::Bad } else { Tone::Faint }, shown) }
}

/// Returns the first lines of a text, and its size if that is not all.
fn shortened(text: &str) -> String {
    let text = text.trim();
    let count = text.lines().count();
    let mut shown = text.lines().take(RESULT_LINES).collect::<Vec<_>>().join("\n");
    if count > RESULT_LINES || text.len() > RESULT_BYTES {
        let lines = if count == 1 { "1 line".to_owned() } else { format!("{count} lines") };
        shown.push_str(&format!("\n({lines}, {})", size(text.len())));
    }
    shown
}

fn size(bytes: usize) -> String {
    if bytes < 1024 {
        format!("{bytes} bytes")
    } else {
        format!("{}.{} KiB", bytes / 1024, bytes % 1024 * 10 / 1024)
    }
}

fn of_system(event: &Value, style: &Style) -> Vec<Said> {
    let number =
        |value: &Value| value.as_u64().map_or_else(|| "?".to_owned(), |number| number.to_string());
    match text(event, "subtype") {
        "init" => init(event),
        // Tokens of thoughts are counted several times a second.
        "thinking_tokens" => Vec::new(),
        "status" => match (event["status"].as_str(), event["compact_result"].as_str()) {
            (_, Some(result)) => vec![Said::remark(Tone::Busy, &format!("compaction: {result}"))],
            (Some(status), None) => vec![Said::remark(Tone::Busy, status)],
            (None, None) => Vec::new(),
        },
        "compact_boundary" => {
            let about = &event["compact_metadata"];
            let (before, after) = (number(&about["pre_tokens"]), number(&about["post_tokens"]));
            let trigger = text(about, "trigger");
            let words = format!("compacted ({trigger}): {before} tokens before, {after} after");
            vec![Said::remark(Tone::Busy, &words)]
        }
        "api_retry" => {
            let delay = event["retry_delay_ms"].as_f64().unwrap_or_default() / 1000.0;
            let status = event["error_status"]
                .as_u64()
                .map(|status| format!(" ({status})"))
                .unwrap_or_default();
            let (attempt, most) = (number(&event["attempt"]), number(&event["max_retries"]));
            let words = format!(
                "retry {attempt} of {most} in {delay:.1} s: {}{status}",
                text(event, "error")
            );
            vec![Said::remark(Tone::Busy, &words)]
        }
        "permission_denied" => {
            let words = format!(
                "permission denied: {}: {}",
                text(event, "tool_name"),
                text(event, "message")
            );
            vec![Said::remark(Tone::Bad, &words)]
        }
        _ if event.get("rate_limit_info").is_some() => {
            of_rate_limit(&event["rate_limit_info"], style)
        }
        _ => vec![Said::remark(Tone::Faint, &named("system", event))],
    }
}

/// Returns the pieces of a process's first event. A missing server is marked.
fn init(event: &Value) -> Vec<Said> {
    let tools = event["tools"].as_array().map_or(0, Vec::len);
    let model = text(event, "model");
    let mut said = vec![Said::remark(
        Tone::Faint,
        &format!("{model}, {tools} tools, session {}", text(event, "session_id")),
    )];
    let servers = event["mcp_servers"].as_array().into_iter().flatten();
    let away = servers.filter(|server| text(server, "status") != "connected");
    said.extend(away.map(|server| {
        Said::remark(
            Tone::Bad,
            &format!("MCP server {}: {}", text(server, "name"), text(server, "status")),
        )
    }));
    said
}

fn of_result(event: &Value) -> Said {
    let words = text(event, "result").trim();
    let subtype = text(event, "subtype");
    if event["is_error"].as_bool() == Some(true) {
        let words = if words.is_empty() { subtype } else { words };
        return Said::whole(Tone::Bad, format!("error: {words}"));
    }
    let subtype = if subtype.is_empty() { "result" } else { subtype };
    Said::cut(Tone::Faint, visible_line(format!("[{subtype}] {words}").trim_end()))
}

fn of_rate_limit(about: &Value, style: &Style) -> Vec<Said> {
    let status = text(about, "status");
    let tone = match status {
        "allowed" => Tone::Faint,
        "allowed_warning" => Tone::Busy,
        _ => Tone::Bad,
    };
    let kind = about
        .get("rateLimitType")
        .and_then(Value::as_str)
        .map(|kind| format!(" ({kind})"))
        .unwrap_or_default();
    let resets = about["resetsAt"].as_i64().map(|seconds| WallTime(seconds.saturating_mul(1000)));
    let resets =
        resets.map(|time| format!(", resets {}", style.time(Some(time)))).unwrap_or_default();
    vec![Said::remark(tone, &format!("rate limit: {status}{kind}{resets}"))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_claude_are_rendered_as_text() {
        let long = (1..=200).map(|number| format!("line {number}")).collect::<Vec<_>>().join("\\n");
        let lines = [
            r#"{"type":"system","subtype":"init","model":"opus","session_id":"b1d8","tools":["Read","Edit"],"mcp_servers":[{"name":"hive","status":"connected"},{"name":"tracker","status":"failed"}]}"#.to_owned(),
            r#"{"type":"system","subtype":"thinking_tokens","estimated_tokens":2}"#.to_owned(),
            r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"thinking","thinking":""},{"type":"text","text":"Hello\n\nyou\n"}]}}"#.to_owned(),
            r#"{"type":"assistant","message":{"content":[{"type":"tool_use","name":"mcp__hive__send","input":{"body":"two\nlines","cc":[1,null],"to":"bob"}},{"type":"tool_use","name":"Read","input":null}]}}"#.to_owned(),
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"sent as 14"},{"type":"image"}]},{"type":"tool_result","content":""}]}}"#.to_owned(),
            format!(r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","content":"{long}"}}]}}}}"#),
            r#"{"type":"user","message":{"content":[{"type":"tool_result","is_error":true,"content":"<tool_use_error>No such tool</tool_use_error>"}]}}"#.to_owned(),
            r#"{"type":"user","isSynthetic":true,"message":{"content":"This session is being continued."}}"#.to_owned(),
            r#"{"type":"tool_progress","tool_name":"mcp__hive__recv","elapsed_time_seconds":30}"#.to_owned(),
            r#"{"type":"system","subtype":"status","status":"compacting"}"#.to_owned(),
            r#"{"type":"system","subtype":"status","status":null,"compact_result":"success"}"#.to_owned(),
            r#"{"type":"system","subtype":"compact_boundary","compact_metadata":{"trigger":"manual","pre_tokens":3832,"post_tokens":527}}"#.to_owned(),
            r#"{"type":"system","subtype":"api_retry","attempt":1,"max_retries":10,"retry_delay_ms":545,"error_status":401,"error":"authentication_failed"}"#.to_owned(),
            r#"{"type":"system","subtype":"permission_denied","tool_name":"Write","message":"You haven't granted it yet."}"#.to_owned(),
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1583067600,"rateLimitType":"five_hour"}}"#.to_owned(),
            r#"{"type":"rate_limit_event","rate_limit_info":{"status":"allowed"}}"#.to_owned(),
            r#"{"type":"assistant","error":"rate_limit","message":{"content":[{"type":"text","text":"You've hit your limit"}]}}"#.to_owned(),
            r#"{"type":"result","subtype":"success","is_error":true,"result":"You've hit your limit"}"#.to_owned(),
            r#"{"type":"result","subtype":"success","is_error":false,"result":"Done\nand gone"}"#.to_owned(),
            r#"{"type":"novelty","subtype":"blue"}"#.to_owned(),
        ];
        let mut rendered = Vec::new();
        for line in &lines {
            for Said { tone, mark, text, whole: _ } in
                said(line, &Style::plain()).expect("an event")
            {
                rendered.push(format!("{:6}{mark}{text}", format!("{tone:?}").to_lowercase()));
            }
        }
        let rendered = rendered
            .join("\n")
            .replace(&Style::plain().time(Some(WallTime(1_583_067_600_000))), "TIME");
        insta::assert_snapshot!(rendered);
    }

    #[test]
    fn an_input_that_is_no_event_is_ignored() {
        for line in ["no JSON", "", "7", "[]", "{}", r#"{"type":7}"#] {
            assert!(said(line, &Style::plain()).is_none(), "{line}");
        }
    }
}
