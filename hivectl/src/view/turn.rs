//! A turn: one run of the model.

use hive_core::time::WallTime;
use hive_proto::v1;
use serde::Serialize;

use super::{cell, counted, fields, id, iso, text, word};
use crate::output::style::Style;
use crate::output::text::{indented, visible_line};
use crate::output::{Row, Text, View, time};

/// One turn.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Turn {
    pub(crate) id: u64,
    pub(crate) agent: String,
    kind: Option<String>,
    conversation: String,
    session_epoch: u64,
    message_id: Option<u64>,
    attempt: u32,
    /// How it ended; none while it is open.
    pub(crate) outcome: Option<String>,
    #[serde(serialize_with = "iso")]
    start_time: Option<WallTime>,
    #[serde(serialize_with = "iso")]
    end_time: Option<WallTime>,
    error: Option<String>,
    output_tail: Option<String>,
    usage: Usage,
    model: Option<String>,
    context_tokens: Option<u64>,
    context_window_tokens: Option<u64>,
    compacted: bool,
    received_message_ids: Vec<u64>,
    sent_message_ids: Vec<u64>,
}

/// What the model used.
#[derive(Clone, Debug, Serialize)]
struct Usage {
    input_tokens: u64,
    cache_read_tokens: u64,
    cache_creation_tokens: u64,
    output_tokens: u64,
    cost_micro_usd: u64,
    inference_count: u32,
    tool_call_count: u32,
}

impl From<v1::Turn> for Turn {
    fn from(turn: v1::Turn) -> Self {
        let v1::Turn {
            id: turn_id,
            agent,
            kind,
            conversation,
            session_epoch,
            message_id,
            attempt,
            outcome,
            start_time,
            end_time,
            error,
            output_tail,
            usage,
            model,
            context_tokens,
            context_window_tokens,
            compacted,
            received_message_ids,
            sent_message_ids,
        } = turn;
        let v1::TurnUsage {
            input_tokens,
            cache_read_tokens,
            cache_creation_tokens,
            output_tokens,
            cost_micro_usd,
            inference_count,
            tool_call_count,
        } = usage.unwrap_or_default();
        Self {
            id: turn_id,
            agent,
            kind: word::<v1::TurnKind>(kind, v1::TurnKind::as_str_name, "TURN_KIND_"),
            conversation,
            session_epoch,
            message_id: id(message_id),
            attempt,
            outcome: word::<v1::TurnOutcome>(outcome, v1::TurnOutcome::as_str_name, "TURN_OUTCOME_"),
            start_time: time::of_wire(start_time),
            end_time: time::of_wire(end_time),
            error: text(error),
            output_tail: text(output_tail),
            usage: Usage {
                input_tokens,
                cache_read_tokens,
                cache_creation_tokens,
                output_tokens,
                cost_micro_usd,
                inference_count,
                tool_call_count,
            },
            model: text(model),
            context_tokens: id(context_tokens),
            context_window_tokens: id(context_window_tokens),
            compacted,
            received_message_ids,
            sent_message_ids,
        }
    }
}

impl Turn {
    fn outcome_cell(&self, style: &Style) -> String {
        match self.outcome.as_deref() {
            None => style.busy("open"),
            Some("ok") => style.good("ok"),
            Some(outcome) => style.bad(outcome),
        }
    }

    /// How long it took; none while it is open.
    pub(crate) fn took(&self) -> Option<String> {
        Some(time::span(self.start_time?, self.end_time?))
    }

    /// How it ended and what it used, in one line.
    pub(crate) fn ending(&self) -> String {
        let outcome = self.outcome.as_deref().unwrap_or("open");
        let took = self.took().map(|took| format!(" after {took}")).unwrap_or_default();
        let usage = &self.usage;
        let used = if usage.output_tokens == 0 { String::new() } else { format!(", {} tokens out", usage.output_tokens) };
        let calls = if usage.tool_call_count == 0 { String::new() } else { format!(", {}", tool_calls(usage)) };
        let error = self.error.as_deref().map(|error| format!(": {}", visible_line(error))).unwrap_or_default();
        format!("{outcome}{took}{used}{calls}{error}")
    }
}

fn tool_calls(usage: &Usage) -> String {
    counted(usage.tool_call_count.into(), "tool call", "tool calls")
}

impl View for Turn {
    const SCHEMA: &'static str = "hive.turn.v1";
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
            if ids.is_empty() { "-".to_owned() } else { ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ") }
        };
        let usage = &self.usage;
        let dollars = format!("{}.{:06}", usage.cost_micro_usd / 1_000_000, usage.cost_micro_usd % 1_000_000);
        let rows = [
            ("turn", self.id.to_string()),
            ("agent", visible_line(&self.agent)),
            ("kind", cell(self.kind.as_ref())),
            ("conversation", visible_line(&self.conversation)),
            ("session epoch", self.session_epoch.to_string()),
            ("woken by", self.message_id.map_or_else(|| "-".to_owned(), |id| format!("message {id}, attempt {}", self.attempt))),
            ("outcome", self.outcome_cell(style)),
            ("started", style.time(self.start_time)),
            ("took", cell(self.took().as_ref())),
            ("received", ids(&self.received_message_ids)),
            ("sent", ids(&self.sent_message_ids)),
            ("model", self.model.as_deref().map_or_else(|| "-".to_owned(), visible_line)),
            ("inferences", format!("{}, with {}", usage.inference_count, tool_calls(usage))),
            (
                "tokens",
                format!(
                    "{} in, {} from cache, {} to cache, {} out",
                    usage.input_tokens, usage.cache_read_tokens, usage.cache_creation_tokens, usage.output_tokens
                ),
            ),
            ("cost", format!("{dollars} USD")),
            (
                "context",
                match (self.context_tokens, self.context_window_tokens) {
                    (Some(used), Some(window)) => format!("{used} of {window} tokens"),
                    (Some(used), None) => format!("{used} tokens"),
                    (None, _) => "-".to_owned(),
                },
            ),
            ("compacted", if self.compacted { "yes" } else { "no" }.to_owned()),
            ("error", self.error.as_deref().map_or_else(|| "-".to_owned(), visible_line)),
        ];
        let mut text = fields(&rows);
        if let Some(tail) = &self.output_tail {
            text = format!("{text}\n\nend of its output:\n{}", indented(&style.body(tail), "    "));
        }
        text
    }
}
