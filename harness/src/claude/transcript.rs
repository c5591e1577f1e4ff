//! The output of one claude process so far.
//!
//! Invariant: it only grows, takes limited memory for any output, and contains nothing that claude
//! did not print.

use std::collections::{BTreeMap, HashSet, VecDeque};

use hive_core::limits::{ERROR_BYTES_MAX, OUTPUT_TAIL_BYTES_MAX};

use crate::claude::event::{Assistant, Event, Init, RateLimit, TurnResult, Usage};
use crate::claude::line;

/// Maximum ids that are remembered of a turn; far above the number in a real one.
const IDS_MAX: usize = 10_000;
/// Maximum tools that are counted by name; the broker takes no more.
pub const TOOL_NAMES_MAX: usize = 64;
/// Longest name of a tool that is kept, in bytes.
const TOOL_NAME_BYTES_MAX: usize = 128;
/// Texts that other versions of the CLI print on a rate limit.
const RATE_LIMIT_MARKERS: [&str; 2] = ["429", "rate_limit"];
/// Texts that other versions of the CLI print on a missing login.
const AUTH_MARKERS: [&str; 3] = ["authentication_failed", "authentication_error", "401"];

/// An error that the CLI reported in place of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiError {
    pub kind: String,
    pub status: Option<u16>,
}

/// Marker texts without better evidence: on raw stderr and in error events, never in the words of a
/// model or a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Markers {
    /// Whether one of a rate limit was seen.
    pub rate_limited: bool,
    /// Whether one of a missing login was seen.
    pub auth_failed: bool,
}

/// The output of one claude process so far.
#[derive(Clone, Debug, Default)]
pub struct Transcript {
    /// The setup, once claude reported it.
    pub init: Option<Init>,
    /// The last error in place of an answer, unless an answer followed.
    pub api_error: Option<ApiError>,
    /// The limits, as last reported.
    pub rate_limit: RateLimit,
    /// The last end of a turn.
    pub result: Option<TurnResult>,
    /// Marker texts.
    pub markers: Markers,
    /// Size of the context at the last inference.
    pub context_tokens: u64,
    pub compacted: bool,
    /// Its size after that, if claude reported it.
    pub post_tokens: Option<u64>,
    /// The result of `/compact`.
    pub compact_result: Option<Result<(), String>>,
    /// The last text of the CLI itself, in place of a model.
    pub remark: String,
    /// The number of calls of each tool.
    pub tools: BTreeMap<String, u32>,
    /// Tool calls whose result the model has seen.
    returned: Vec<String>,
    /// Tool calls whose result returned without an error, each with the inference that made it. The
    /// next inference sees them.
    unseen: Vec<(String, String)>,
    /// The last inference.
    inference: String,
    open_tools: HashSet<String>,
    tool_calls: u32,
    inferences: HashSet<String>,
    spent: Usage,
    tail: VecDeque<String>,
    tail_bytes: usize,
    stderr: String,
}

impl Transcript {
    /// Adds an event.
    pub fn absorb(&mut self, event: &Event) {
        match event {
            Event::Init(init) => self.init = Some(init.clone()),
            Event::Assistant(assistant) => self.absorb_assistant(assistant),
            Event::ToolResults(results) => {
                for result in results {
                    self.open_tools.remove(&result.tool_use_id);
                    if !result.is_error && self.unseen.len() < IDS_MAX {
                        self.unseen.push((self.inference.clone(), result.tool_use_id.clone()));
                    }
                }
            }
            Event::RateLimit(limit) => self.rate_limit = limit.clone(),
            Event::Result(result) => {
                self.note(format!("result: {}", result.text));
                if !result.is_error && result.subtype == "success" {
                    self.see(None);
                }
                self.result = Some((**result).clone());
            }
            Event::Error(text) => {
                self.mark(text);
                self.note(text.clone());
            }
            Event::Compacted { post_tokens } => {
                self.compacted = true;
                self.post_tokens = *post_tokens;
                self.context_tokens = post_tokens.unwrap_or(0);
            }
            Event::CompactResult(result) => {
                if let Err(error) = result {
                    self.note(format!("compaction failed: {error}"));
                }
                self.compact_result = Some(result.clone());
            }
            Event::ToolHeartbeat | Event::Other => {}
        }
    }

    fn absorb_assistant(&mut self, assistant: &Assistant) {
        if let Some(kind) = &assistant.error {
            self.api_error = Some(ApiError { kind: kind.clone(), status: assistant.api_status });
        } else {
            self.api_error = None;
            self.count(assistant);
        }
        for (id, name) in &assistant.tool_uses {
            self.tool_calls = self.tool_calls.saturating_add(1);
            self.note(format!("tool: {name}"));
            if self.tools.len() < TOOL_NAMES_MAX || self.tools.contains_key(name) {
                let count = self
                    .tools
                    .entry(line::beginning(name, TOOL_NAME_BYTES_MAX).to_owned())
                    .or_default();
                *count = count.saturating_add(1);
            }
            if self.open_tools.len() < IDS_MAX {
                self.open_tools.insert(id.clone());
            }
        }
        if !assistant.text.is_empty() {
            self.note(assistant.text.clone());
            if assistant.usage == Usage::default() {
                line::beginning(&assistant.text, ERROR_BYTES_MAX).clone_into(&mut self.remark);
            }
        }
    }

    /// Counts an inference once: each of its blocks arrives as an event with the same id and usage.
    fn count(&mut self, assistant: &Assistant) {
        // A sub-agent has its own context.
        if !assistant.nested && assistant.usage.context_tokens() > 0 {
            self.context_tokens = assistant.usage.context_tokens();
        }
        // A text of the CLI itself is no inference.
        let is_inference = assistant.usage != Usage::default();
        if is_inference && !assistant.nested {
            self.see(Some(&assistant.message_id));
            self.inference.clone_from(&assistant.message_id);
        }
        if is_inference
            && self.inferences.len() < IDS_MAX
            && self.inferences.insert(assistant.message_id.clone())
        {
            self.spent.add(assistant.usage);
        }
    }

    /// Marks results as seen: an inference sees the results of all calls of earlier ones, and the
    /// successful end of a turn comes after the last inference.
    fn see(&mut self, inference: Option<&str>) {
        let (seen, unseen) = std::mem::take(&mut self.unseen)
            .into_iter()
            .partition(|(made_by, _)| Some(made_by.as_str()) != inference);
        self.unseen = unseen;
        let seen: Vec<(String, String)> = seen;
        let room = IDS_MAX.saturating_sub(self.returned.len());
        self.returned.extend(seen.into_iter().map(|(_, id)| id).take(room));
    }

    /// Adds a line of stderr.
    pub fn absorb_stderr(&mut self, text: &str) {
        self.mark(text);
        if !text.trim().is_empty() {
            if !self.stderr.is_empty() {
                self.stderr.push('\n');
            }
            self.stderr.push_str(text.trim_end());
            self.stderr = line::ending(&self.stderr, OUTPUT_TAIL_BYTES_MAX).to_owned();
            self.note(format!("stderr: {text}"));
        }
    }

    fn mark(&mut self, text: &str) {
        self.markers.rate_limited |= RATE_LIMIT_MARKERS.iter().any(|marker| text.contains(marker));
        self.markers.auth_failed |= AUTH_MARKERS.iter().any(|marker| text.contains(marker));
    }

    fn note(&mut self, text: String) {
        let text = line::ending(&text, OUTPUT_TAIL_BYTES_MAX - 1).to_owned();
        self.tail_bytes += text.len() + 1;
        self.tail.push_back(text);
        while self.tail_bytes > OUTPUT_TAIL_BYTES_MAX {
            let Some(oldest) = self.tail.pop_front() else { break };
            self.tail_bytes -= oldest.len() + 1;
        }
    }

    /// Returns the end of the output, for people.
    pub fn tail(&self) -> String {
        self.tail.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }

    /// Returns the end of stderr.
    pub fn stderr(&self) -> &str {
        &self.stderr
    }

    /// Returns the tool calls whose result the model has seen.
    pub fn returned_tool_use_ids(&self) -> &[String] {
        &self.returned
    }

    /// Returns whether a tool runs whose result is missing.
    pub fn waits_for_a_tool(&self) -> bool {
        !self.open_tools.is_empty()
    }

    /// Returns the usage of the turn: the CLI's own sum, or the observed one if there is none. The
    /// cost is that of this turn alone.
    pub fn usage(&self, cost_before: Option<f64>) -> hive_core::turn::Usage {
        let reported =
            self.result.as_ref().map(|result| result.usage).filter(|sum| *sum != Usage::default());
        let spent = reported.unwrap_or(self.spent);
        hive_core::turn::Usage {
            input_tokens: spent.input,
            cache_read_tokens: spent.cache_read,
            cache_creation_tokens: spent.cache_creation,
            output_tokens: spent.output,
            cost_micro_usd: self
                .result
                .as_ref()
                .map_or(0, |result| micro_usd(cost(result, cost_before))),
            inference_count: u32::try_from(self.inferences.len()).unwrap_or(u32::MAX),
            tool_call_count: self.tool_calls,
        }
    }
}

/// Returns the cost of the turn. If the CLI does not report it, this is the conversation's sum
/// minus the previous sum.
fn cost(result: &TurnResult, before: Option<f64>) -> f64 {
    match (result.cost_of_turn, result.cost_of_session, before) {
        (Some(cost), _, _) => cost,
        // A smaller sum than before belongs to another conversation.
        (None, Some(sum), Some(before)) if sum >= before => sum - before,
        (None, _, _) => 0.0,
    }
}

fn micro_usd(usd: f64) -> u64 {
    (usd * 1e6).round().clamp(0.0, 1e15) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claude::event;

    fn absorbed(lines: &[&str]) -> Transcript {
        let mut transcript = Transcript::default();
        for line in lines {
            transcript.absorb(&event::parse(line).expect("a JSON object"));
        }
        transcript
    }

    #[test]
    fn blocks_of_one_inference_count_once_and_the_last_one_is_the_context() {
        let block = |id: &str, input: u64| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","content":[],"usage":{{"input_tokens":{input},"cache_read_input_tokens":10}}}}}}"#
            )
        };
        let transcript = absorbed(&[&block("a", 1), &block("a", 1), &block("b", 5)]);
        let usage = transcript.usage(None);
        assert_eq!(
            (usage.inference_count, usage.input_tokens, usage.cache_read_tokens),
            (2, 6, 20)
        );
        assert_eq!(transcript.context_tokens, 15);
    }

    #[test]
    fn only_tools_that_returned_without_an_error_count() {
        let transcript = absorbed(&[
            r#"{"type":"assistant","message":{"id":"m","usage":{"input_tokens":1},"content":[{"type":"tool_use","id":"a","name":"x"},{"type":"tool_use","id":"b","name":"x"},{"type":"tool_use","id":"c","name":"x"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"a"}]}}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","is_error":true}]}}"#,
        ]);
        assert!(transcript.waits_for_a_tool());
        assert_eq!(transcript.usage(None).tool_call_count, 3);
        // The call has returned. The next inference shows whether the model saw the result.
        assert!(transcript.returned_tool_use_ids().is_empty());
        let with = |line: &str| {
            let mut transcript = transcript.clone();
            transcript.absorb(&event::parse(line).expect("a JSON object"));
            transcript.returned_tool_use_ids().to_vec()
        };
        let answer = |id: &str| {
            format!(
                r#"{{"type":"assistant","message":{{"id":"{id}","content":[],"usage":{{"input_tokens":1}}}}}}"#
            )
        };
        assert_eq!(with(&answer("n")), ["a"]);
        assert!(with(&answer("m")).is_empty(), "another block of the inference that made the call");
        assert_eq!(with(r#"{"type":"result","subtype":"success","is_error":false}"#), ["a"]);
        assert!(with(r#"{"type":"result","subtype":"success","is_error":true}"#).is_empty());
        assert!(with(r#"{"type":"assistant","error":"invalid_request","message":{"id":"x","content":[]}}"#).is_empty());
    }

    #[test]
    fn an_answer_after_an_error_clears_it() {
        let error = r#"{"type":"assistant","error":"server_error","message":{"id":"x","model":"<synthetic>","content":[]}}"#;
        assert!(absorbed(&[error]).api_error.is_some());
        assert!(
            absorbed(&[error, r#"{"type":"assistant","message":{"id":"m","content":[]}}"#])
                .api_error
                .is_none()
        );
    }

    #[test]
    fn text_of_a_model_sets_no_marker() {
        let spoken = r#"{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"rate_limit 429 401"}]}}"#;
        assert_eq!(absorbed(&[spoken]).markers, Markers::default());
        assert!(
            absorbed(&[r#"{"type":"error","error":{"type":"rate_limit_error"}}"#])
                .markers
                .rate_limited
        );
        let mut transcript = Transcript::default();
        transcript.absorb_stderr("API Error: 401");
        assert!(transcript.markers.auth_failed);
    }

    #[test]
    fn the_cost_of_a_turn_is_reported_or_is_the_difference() {
        let result =
            |more: &str| absorbed(&[&format!(r#"{{"type":"result","total_cost_usd":0.5{more}}}"#)]);
        assert_eq!(
            result(r#","model_usage_since_last_result":{"m":{"costUSD":0.1}}"#)
                .usage(Some(0.2))
                .cost_micro_usd,
            100_000
        );
        assert_eq!(result("").usage(Some(0.2)).cost_micro_usd, 300_000);
        assert_eq!(result("").usage(None).cost_micro_usd, 0);
    }

    #[test]
    fn the_tail_is_bounded_and_keeps_the_end() {
        let mut transcript = Transcript::default();
        for number in 0..5000 {
            transcript.absorb_stderr(&format!("line {number}"));
        }
        transcript.absorb_stderr(&"x".repeat(20_000));
        assert!(
            transcript.tail().len() <= OUTPUT_TAIL_BYTES_MAX
                && transcript.stderr().len() <= OUTPUT_TAIL_BYTES_MAX
        );
    }
}
