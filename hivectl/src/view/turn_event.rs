//! One line of a turn's output. Claude's JSON lines are told in words for people; programs get the line as it was.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{Iso, Word, word};
use crate::output::style::Style;
use crate::output::text::{visible_block, visible_line};
use crate::output::{Text, View, time};

/// Characters of a tool's input or result that are shown.
const TOOL_TEXT_CHARS: usize = 200;

/// One line.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct TurnEvent {
    /// Its number within the turn.
    sequence: u64,
    /// Where it was written.
    #[schemars(with = "Word<v1::TurnEventStream>")]
    stream: Option<String>,
    /// The line as it was.
    line: String,
    /// When it was written.
    #[serde(with = "Iso")]
    time: Option<WallTime>,
}

impl From<v1::TurnEvent> for TurnEvent {
    fn from(event: v1::TurnEvent) -> Self {
        let v1::TurnEvent { sequence, stream, line, time } = event;
        Self { sequence, stream: word::<v1::TurnEventStream>(stream), line, time: time::of_wire(time) }
    }
}

impl View for TurnEvent {
    const SCHEMA: &'static str = "hive.turn_event.v1";
}

impl Text for TurnEvent {
    fn text(&self, style: &Style) -> String {
        let time = style.faint(&style.time(self.time));
        match self.stream.as_deref() {
            Some("stdout") => format!("{time}  {}", spoken(&self.line).unwrap_or_else(|| visible_line(&self.line))),
            Some("stderr") => format!("{time}  {}", style.bad(&visible_line(&self.line))),
            Some(_) | None => format!("{time}  {}", style.faint(&format!("({})", visible_line(&self.line)))),
        }
    }
}

/// What a JSON line of claude says; `None` if it is none.
fn spoken(line: &str) -> Option<String> {
    let value: Value = serde_json::from_str(line).ok()?;
    let kind = value.get("type")?.as_str()?;
    let parts = || value.pointer("/message/content").and_then(Value::as_array).into_iter().flatten();
    let words = match kind {
        "assistant" => parts().map(of_assistant).collect::<Vec<_>>().join("\n"),
        "user" => parts().map(of_tool).collect::<Vec<_>>().join("\n"),
        "result" => {
            let text = value.get("result").and_then(Value::as_str).unwrap_or_default();
            let well = if value.get("is_error").and_then(Value::as_bool) == Some(true) { "error" } else { "result" };
            format!("[{well}] {}", visible_block(text))
        }
        other => {
            let subtype = value.get("subtype").and_then(Value::as_str).map(|subtype| format!(" {subtype}")).unwrap_or_default();
            format!("[{other}{subtype}]").chars().flat_map(|c| if c.is_control() { ' ' } else { c }.to_lowercase()).collect()
        }
    };
    Some(words)
}

fn of_assistant(part: &Value) -> String {
    match part.get("type").and_then(Value::as_str) {
        Some("text") => visible_block(part.get("text").and_then(Value::as_str).unwrap_or_default()),
        Some("tool_use") => {
            let name = part.get("name").and_then(Value::as_str).unwrap_or("?");
            let input = part.get("input").map(Value::to_string).unwrap_or_default();
            format!("-> {} {}", visible_line(name), short(&input))
        }
        other => format!("[{}]", visible_line(other.unwrap_or("?"))),
    }
}

fn of_tool(part: &Value) -> String {
    let content = match part.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect::<Vec<_>>().join(" ")
        }
        _ => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
    };
    format!("<- {}", short(&content))
}

fn short(text: &str) -> String {
    let line = visible_line(text.trim_end());
    if line.chars().count() <= TOOL_TEXT_CHARS {
        return line;
    }
    let mut cut: String = line.chars().take(TOOL_TEXT_CHARS).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claudes_lines_are_told_in_words() {
        let said = [
            r#"{"type":"system","subtype":"init","cwd":"/x"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"Hello\u001b[2J"},{"type":"tool_use","name":"mcp__hive__send","input":{"to":"bob"}}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","content":[{"type":"text","text":"sent as 14"}]}]}}"#,
            r#"{"type":"result","is_error":false,"result":"done"}"#,
        ]
        .map(|line| spoken(line).expect("a JSON line"));
        insta::assert_snapshot!(said.join("\n"), @r#"
        [system init]
        Hello\u{1b}[2J
        -> mcp__hive__send {"to":"bob"}
        <- sent as 14
        [result] done
        "#);
        assert_eq!(spoken("no JSON"), None);
    }
}
