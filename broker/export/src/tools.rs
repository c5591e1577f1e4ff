//! The tool calls of a turn, from the lines that its harness has reported.
//!
//! The harness reports the lines that claude prints, the long ones only up to a limit. Invariant:
//! nothing of the input and of the result of a call is kept.

use std::collections::BTreeMap;

use hive_core::time::WallTime;
use serde_json::Value;

/// Maximum tool calls of a turn that are exported.
pub(crate) const CALLS_MAX: usize = 1000;
/// Longest name or id of a call that is exported, in bytes.
const WORD_BYTES_MAX: usize = 256;

/// A tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ToolCall {
    pub(crate) name: String,
    pub(crate) start: WallTime,
    /// `None` if no result was reported.
    pub(crate) end: Option<WallTime>,
    pub(crate) is_error: bool,
}

/// The tool calls of a turn so far, by the ids of their tool uses.
#[derive(Debug, Default)]
pub(crate) struct Tools {
    calls: BTreeMap<String, ToolCall>,
    /// Calls beyond the limit.
    left_out: usize,
}

impl Tools {
    /// Reads a line that claude has printed.
    pub(crate) fn read(&mut self, line: &str, time: WallTime) {
        // Most lines are others, and long.
        if !line.contains("\"tool_use") && !line.contains("\"tool_result\"") {
            return;
        }
        match serde_json::from_str::<Value>(line) {
            Ok(line) => {
                let blocks = line["message"]["content"].as_array().into_iter().flatten();
                blocks.for_each(|block| self.block(block, time));
            }
            Err(_) => self.cut(line, time),
        }
    }

    fn block(&mut self, block: &Value, time: WallTime) {
        let text = |key: &str| block[key].as_str();
        match text("type") {
            Some("tool_use") => {
                if let (Some(id), Some(name)) = (text("id"), text("name")) {
                    self.begin(id, name, time);
                }
            }
            Some("tool_result") => {
                if let Some(id) = text("tool_use_id") {
                    self.end(id, block["is_error"] == true, time);
                }
            }
            Some(_) | None => {}
        }
    }

    /// Reads a line without its end. Quotation marks in texts are escaped, so these words are keys.
    fn cut(&mut self, line: &str, time: WallTime) {
        if let Some((_, block)) = line.split_once(r#""type":"tool_use""#)
            && let (Some(id), Some(name)) = (word(block, r#""id":""#), word(block, r#""name":""#))
        {
            self.begin(id, name, time);
        } else if line.contains(r#""type":"tool_result""#)
            && let Some(id) = word(line, r#""tool_use_id":""#)
        {
            self.end(id, false, time);
        }
    }

    fn begin(&mut self, id: &str, name: &str, time: WallTime) {
        if id.len() > WORD_BYTES_MAX || self.calls.contains_key(id) {
            return;
        }
        if self.calls.len() == CALLS_MAX {
            self.left_out += 1;
            return;
        }
        let mut name = name.to_owned();
        name.truncate(name.floor_char_boundary(WORD_BYTES_MAX));
        let call = ToolCall { name, start: time, end: None, is_error: false };
        self.calls.insert(id.to_owned(), call);
    }

    fn end(&mut self, id: &str, is_error: bool, time: WallTime) {
        if let Some(call) = self.calls.get_mut(id) {
            call.end = Some(time);
            call.is_error = is_error;
        }
    }

    /// Returns the calls by their ids, and how many were left out.
    pub(crate) fn into_calls(self) -> (BTreeMap<String, ToolCall>, usize) {
        (self.calls, self.left_out)
    }
}

/// Returns the text behind a key.
fn word<'l>(line: &'l str, key: &str) -> Option<&'l str> {
    Some(line.split_once(key)?.1.split_once('"')?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const USE: &str = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I will."},{"type":"tool_use","id":"toolu_1","name":"mcp__hive__send","input":{"body":"secret"}}]}}"#;
    const RESULT: &str = r#"{"type":"user","message":{"role":"user","content":[{"tool_use_id":"toolu_1","type":"tool_result","is_error":true,"content":"secret"}]}}"#;

    fn read(lines: &[&str]) -> BTreeMap<String, ToolCall> {
        let mut tools = Tools::default();
        for (line, time) in lines.iter().zip(1..) {
            tools.read(line, WallTime(time));
        }
        tools.into_calls().0
    }

    #[test]
    fn a_call_has_its_name_its_times_and_no_content() {
        let name = "mcp__hive__send".to_owned();
        let call = ToolCall { name, start: WallTime(1), end: Some(WallTime(2)), is_error: true };
        let calls = read(&[USE, RESULT]);
        assert_eq!(calls, [("toolu_1".to_owned(), call)].into());
        assert!(!format!("{calls:?}").contains("secret"));
    }

    #[test]
    fn a_call_of_lines_that_were_cut_is_found_too() {
        let (start, end) = (&USE[..USE.len() - 9], &RESULT[..RESULT.len() - 9]);
        let call = &read(&[start, end])["toolu_1"];
        assert_eq!((call.name.as_str(), call.end), ("mcp__hive__send", Some(WallTime(2))));
        let quoted = serde_json::json!({"type": "assistant", "message": USE}).to_string();
        assert!(read(&[&quoted, &quoted[..quoted.len() - 9]]).is_empty());
    }

    #[test]
    fn other_lines_and_results_of_unknown_calls_are_passed_over() {
        assert!(read(&[RESULT, "\"tool_use", "{\"tool_use\":1}", "no json"]).is_empty());
        let unended = &read(&[USE, USE])["toolu_1"];
        assert_eq!((unended.start, unended.end), (WallTime(1), None));
    }

    #[test]
    fn calls_are_bounded() {
        let mut tools = Tools::default();
        for number in 0..CALLS_MAX + 2 {
            tools.read(&USE.replace("toolu_1", &format!("toolu_{number}")), WallTime(1));
        }
        let (calls, left_out) = tools.into_calls();
        assert_eq!((calls.len(), left_out), (CALLS_MAX, 2));
    }
}
