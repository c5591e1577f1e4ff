//! A turn: one run of the model.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::usage::{SELF_REPORTED, Usage, dollars};
use super::wire::{from_wire, present, same};
use super::{Iso, Word, cell, counted, fields, id, line_cell, optional_word, prefixed, text, word};
use crate::output::style::Style;
use crate::output::text::{indented, visible_line};
use crate::output::{Row, Text, time};

/// One turn.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Turn {
    /// The id of the turn.
    pub(crate) id: u64,
    /// The agent that runs the turn.
    pub(crate) agent: String,
    /// The kind of the turn.
    #[schemars(with = "Word<v1::TurnKind>")]
    kind: Option<String>,
    /// The model session that it belongs to.
    conversation: String,
    /// The number of its harness's session.
    session_epoch: u64,
    /// The message that it was begun for.
    message_id: Option<u64>,
    /// The number of the attempt at that message.
    attempt: u32,
    /// The outcome of the turn; none while it is open.
    #[schemars(with = "Word<v1::TurnOutcome>")]
    pub(crate) outcome: Option<String>,
    /// The state of the run: partial while it is open, final if it ended ok, else error.
    #[schemars(with = "Word<v1::RunState>")]
    run_state: Option<String>,
    /// The start of this state.
    #[serde(with = "Iso")]
    run_state_time: Option<WallTime>,
    /// When it began.
    #[serde(with = "Iso")]
    start_time: Option<WallTime>,
    /// When it ended.
    #[serde(with = "Iso")]
    end_time: Option<WallTime>,
    /// The error of the turn.
    error: Option<String>,
    /// The end of its output.
    output_tail: Option<String>,
    /// Tokens and cost of the turn; self-reported by the harness.
    usage: Usage,
    /// The model; self-reported by the harness.
    model: Option<String>,
    /// Tokens in the context at the end of the turn; self-reported by the harness.
    context_tokens: Option<u64>,
    /// The size of the context window, in tokens; self-reported by the harness.
    context_window_tokens: Option<u64>,
    /// Whether the context was compacted in it.
    compacted: bool,
    /// Further messages that the turn received.
    received_message_ids: Vec<u64>,
    /// Messages that the turn sent.
    sent_message_ids: Vec<u64>,
    /// The W3C trace context of the span of the turn.
    traceparent: Option<String>,
}

from_wire! {
    Turn => Turn {
        same => id, agent, conversation, session_epoch, attempt, compacted, received_message_ids,
            sent_message_ids;
        text => error, output_tail, model, traceparent;
        id => message_id, context_tokens, context_window_tokens;
        time::from_wire => start_time, end_time;
        present => usage;
        word::<v1::TurnKind> => kind;
        optional_word::<v1::TurnOutcome> => outcome;
    }
    with
        run_state = run_state,
        run_state_time = |turn: &v1::Turn| time::from_wire(turn.end_time.or(turn.start_time))
}

fn run_state(turn: &v1::Turn) -> Option<String> {
    let state = match optional_word::<v1::TurnOutcome>(turn.outcome).as_deref() {
        None => v1::RunState::Partial,
        Some("ok") => v1::RunState::Final,
        Some(_) => v1::RunState::Error,
    };
    word::<v1::RunState>(state.into())
}

impl Turn {
    fn outcome_cell(&self, style: &Style) -> String {
        match self.outcome.as_deref() {
            None => style.busy("open"),
            Some("ok") => style.good("ok"),
            Some(outcome) => style.bad(outcome),
        }
    }

    /// Returns how long it took; `None` while it is open.
    pub(crate) fn took(&self) -> Option<String> {
        Some(time::span(self.start_time?, self.end_time?))
    }

    /// Returns how it ended and what it used, in one line.
    pub(crate) fn ending(&self) -> String {
        let outcome = self.outcome.as_deref().unwrap_or("open");
        let took = self.took().map(|took| format!(" after {took}")).unwrap_or_default();
        let usage = &self.usage;
        let used = if usage.output_tokens == 0 {
            String::new()
        } else {
            format!(", {} tokens out", usage.output_tokens)
        };
        let calls = if usage.tool_call_count == 0 {
            String::new()
        } else {
            format!(", {}", tool_calls(usage))
        };
        let error = prefixed(": ", &self.error);
        format!("{outcome}{took}{used}{calls}{error}")
    }

    /// Returns why it was begun, in one line.
    pub(crate) fn beginning(&self, style: &Style) -> String {
        let kind = self.kind.as_deref().unwrap_or("turn");
        let woken = self
            .message_id
            .map(|id| format!(" of message {id}, attempt {}", self.attempt))
            .unwrap_or_default();
        let words = format!(
            "turn {} of {}: {kind}{woken}, begun {}",
            self.id,
            visible_line(&self.agent),
            style.time(self.start_time)
        );
        style.head(&words)
    }

    /// Returns how it ended, how long it took, and its cost.
    pub(crate) fn summary(&self, style: &Style) -> String {
        let usage = &self.usage;
        let mut words = vec![match self.took() {
            Some(took) => format!("{} after {took}", self.outcome_cell(style)),
            None => self.outcome_cell(style),
        }];
        if usage.inference_count > 0 || usage.output_tokens > 0 {
            words.extend([
                usage.tokens(),
                tool_calls(usage),
                format!("{} USD", dollars(usage.cost_micro_usd)),
            ]);
        }
        words.extend(self.compacted.then(|| "compacted".to_owned()));
        let error = self
            .error
            .as_deref()
            .map(|error| format!(": {}", style.bad(&visible_line(error))))
            .unwrap_or_default();
        format!(
            "{} {}{error}",
            style.head(&format!("turn {} of {}:", self.id, visible_line(&self.agent))),
            words.join(", ")
        )
    }
}

fn tool_calls(usage: &Usage) -> String {
    counted(usage.tool_call_count, "tool call", "tool calls")
}

impl Row for Turn {
    const HEADER: &'static [&'static str] =
        &["ID", "AGENT", "KIND", "OUTCOME", "START", "TOOK", "MESSAGE", "TRY", "TOKENS", "ERROR"];
    const NONE: &'static str = "no turns";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.id.to_string(),
            visible_line(&self.agent),
            cell(self.kind.as_ref()),
            self.outcome_cell(style),
            style.time(self.start_time),
            cell(self.took().as_ref()),
            cell(self.message_id.as_ref()),
            self.attempt.to_string(),
            self.usage.output_tokens.to_string(),
            self.error.as_deref().map_or_else(String::new, visible_line),
        ]
    }
}

impl Text for Turn {
    fn text(&self, style: &Style) -> String {
        let ids = |ids: &[u64]| {
            if ids.is_empty() {
                "-".to_owned()
            } else {
                ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
            }
        };
        let usage = &self.usage;
        let rows = [
            ("turn", self.id.to_string()),
            ("agent", visible_line(&self.agent)),
            ("kind", cell(self.kind.as_ref())),
            ("conversation", visible_line(&self.conversation)),
            ("session epoch", self.session_epoch.to_string()),
            (
                "woken by",
                self.message_id.map_or_else(
                    || "-".to_owned(),
                    |id| format!("message {id}, attempt {}", self.attempt),
                ),
            ),
            ("outcome", self.outcome_cell(style)),
            (
                "run state",
                format!(
                    "{} since {}",
                    cell(self.run_state.as_ref()),
                    style.time(self.run_state_time)
                ),
            ),
            ("started", style.time(self.start_time)),
            ("took", cell(self.took().as_ref())),
            ("received", ids(&self.received_message_ids)),
            ("sent", ids(&self.sent_message_ids)),
            ("model*", line_cell(&self.model)),
            ("inferences*", format!("{}, with {}", usage.inference_count, tool_calls(usage))),
            ("tokens*", usage.tokens()),
            ("cost*", format!("{} USD", dollars(usage.cost_micro_usd))),
            (
                "context*",
                match (self.context_tokens, self.context_window_tokens) {
                    (Some(used), Some(window)) => format!("{used} of {window} tokens"),
                    (Some(used), None) => format!("{used} tokens"),
                    (None, _) => "-".to_owned(),
                },
            ),
            ("compacted", if self.compacted { "yes" } else { "no" }.to_owned()),
            ("error", line_cell(&self.error)),
        ];
        let mut text = format!("{}\n* {SELF_REPORTED}", fields(&rows));
        if let Some(tail) = &self.output_tail {
            text = format!("{text}\n\nend of its output:\n{}", indented(&style.body(tail), "    "));
        }
        text
    }
}
