//! The numbers themselves.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use crate::output::text::visible_line;
use crate::output::time;
use crate::view::usage::Usage;
use crate::view::wire::{all, from_wire, millis, present, same};
use crate::view::{Iso, Word, optional_word, text, word};

/// Some turns in numbers.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct Numbers {
    /// The number of ended turns.
    pub(super) turn_count: u64,
    /// The number of turns of each kind.
    pub(super) kinds: Vec<Kind>,
    /// The number of turns with each outcome.
    pub(super) outcomes: Vec<Outcome>,
    /// The total usage of the turns; self-reported by their harness.
    pub(super) usage: Usage,
    /// The median duration of a turn, in milliseconds; none if there was no turn.
    duration_p50_ms: Option<u64>,
    /// The 95th percentile of the durations, in milliseconds; none if there was no turn.
    duration_p95_ms: Option<u64>,
    /// The number of turns that ran a compaction.
    pub(super) compaction_count: u64,
    /// The tools called most, most first; self-reported by their harness.
    pub(super) tools: Vec<Tool>,
    /// The causes that woke the turns, most frequent first.
    pub(super) wakes: Vec<Wake>,
    /// The window in equal slices, oldest first.
    pub(super) slices: Vec<Slice>,
}

/// The number of turns of a kind.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct Kind {
    /// The kind.
    #[schemars(with = "Word<v1::TurnKind>")]
    pub(super) kind: Option<String>,
    /// The number of turns.
    pub(super) count: u64,
}

/// The number of turns with an outcome.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct Outcome {
    /// The outcome.
    #[schemars(with = "Word<v1::TurnOutcome>")]
    pub(super) outcome: Option<String>,
    /// The number of turns.
    pub(super) count: u64,
}

/// The number of calls of a tool.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct Tool {
    /// Its full name.
    pub(super) name: String,
    /// The number of calls.
    pub(super) count: u32,
}

/// The number of turns that one cause woke.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct Wake {
    /// The kind of the message's sender; none for turns without a message.
    #[schemars(with = "Word<v1::OriginKind>")]
    origin_kind: Option<String>,
    /// The label of a co-process, or what a notice of the broker is about.
    detail: Option<String>,
    /// The number of turns.
    pub(super) count: u64,
}

impl Wake {
    pub(super) fn summary(&self) -> String {
        let kind = self.origin_kind.as_deref().unwrap_or("no message");
        self.detail
            .as_deref()
            .map_or_else(|| kind.to_owned(), |detail| format!("{kind}: {}", visible_line(detail)))
    }
}

/// A part of the window.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(super) struct Slice {
    /// When it begins.
    #[serde(with = "Iso")]
    start_time: Option<WallTime>,
    /// Turns that ended in it.
    pub(super) turn_count: u64,
    /// Of them, those that did not end well.
    not_ok_count: u64,
    /// The cost of the turns, in millionths of a US dollar; self-reported by their harness.
    pub(super) cost_micro_usd: u64,
    /// Tokens that they wrote; self-reported by their harness.
    output_tokens: u64,
}

from_wire! {
    TurnKindCount => Kind {
        same => count;
        word::<v1::TurnKind> => kind;
    }
}

from_wire! {
    TurnOutcomeCount => Outcome {
        same => count;
        word::<v1::TurnOutcome> => outcome;
    }
}

from_wire! {
    ToolUse => Tool {
        same => name, count;
    }
}

from_wire! {
    TurnWakeCount => Wake {
        same => count;
        text => detail;
        optional_word::<v1::OriginKind> => origin_kind;
    }
}

from_wire! {
    TurnStatsSlice => Slice {
        same => turn_count, not_ok_count, cost_micro_usd, output_tokens;
        time::from_wire => start_time;
    }
}

from_wire! {
    TurnStats => Numbers {
        same => turn_count, compaction_count;
        present => usage;
        all => kinds, outcomes, tools, wakes, slices;
    }
    without duration_p50, duration_p95
    with
        duration_p50_ms = |stats: &v1::TurnStats| stats.duration_p50.map(millis),
        duration_p95_ms = |stats: &v1::TurnStats| stats.duration_p95.map(millis)
}

impl Numbers {
    pub(super) fn not_ok(&self) -> u64 {
        self.outcomes
            .iter()
            .filter(|row| row.outcome.as_deref() != Some("ok"))
            .map(|row| row.count)
            .sum()
    }

    /// Returns the longest duration of the faster half.
    pub(super) fn p50(&self) -> Option<String> {
        self.duration_p50_ms.map(format_millis)
    }

    /// Returns the longest duration of the fastest 95 %.
    pub(super) fn p95(&self) -> Option<String> {
        self.duration_p95_ms.map(format_millis)
    }
}

fn format_millis(millis: u64) -> String {
    time::span(WallTime(0), WallTime(i64::try_from(millis).unwrap_or(i64::MAX)))
}
