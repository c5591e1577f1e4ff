//! Spans of the broker's work: where each begins in which trace.
//!
//! A caller's span is the parent, else that of the turn, or of the tool call in it. Without either,
//! a trace begins if traces are exported, and otherwise there is none. Invariant: a trace changes
//! neither what is accepted nor the answer.

use hive_core::trace::{SpanId, TraceContext, TraceId, Traced};
use hive_export::tool_span;

use super::token;
use crate::store::Tx;
use crate::store::turn::TurnRow;

/// What a caller states about the cause of its call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The span in which the call is made.
    pub trace: Option<TraceContext>,
    /// The tool call of the caller's turn that makes it.
    pub tool_use_id: Option<Box<str>>,
}

impl Cause {
    /// Returns the parent of what the call brings about in this turn.
    pub(crate) fn parent(&self, turn: Option<&TurnRow>) -> Option<TraceContext> {
        self.trace.or_else(|| {
            let turn = turn?.trace?;
            Some(match &self.tool_use_id {
                Some(id) => turn.with_span(tool_span(turn, id)),
                None => turn,
            })
        })
    }
}

/// Returns a new span below this parent; without one, the first of a new trace, if traces are
/// exported and no more of them have begun a moment ago than may.
pub(crate) fn span(tx: &Tx<'_>, parent: Option<TraceContext>) -> Option<Traced> {
    match parent {
        Some(parent) => {
            let context = parent.with_span(random(SpanId::new));
            Some(Traced { context, parent: Some(parent.span_id) })
        }
        None if tx.begins_trace() => {
            let context = TraceContext::new(random(TraceId::new), random(SpanId::new));
            Some(Traced { context, parent: None })
        }
        None => None,
    }
}

/// Returns a span that nothing is below.
#[must_use]
pub fn random_span() -> SpanId {
    random(SpanId::new)
}

fn random<const N: usize, T>(new: fn([u8; N]) -> Option<T>) -> T {
    loop {
        if let Some(id) = new(token::random()) {
            return id;
        }
    }
}
