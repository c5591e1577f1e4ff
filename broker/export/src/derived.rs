//! Spans that follow from others: known before what they show is known.
//!
//! Invariant: the same values give the same span, in every process and after every restart.

use hive_core::id::TurnId;
use hive_core::trace::{SpanId, TraceContext};
use sha2::{Digest as _, Sha256};

/// Returns the span of a tool call, which its turn and the id of its tool use determine: what the
/// call sends is accepted before the harness has reported the call.
#[must_use]
pub fn tool_span(turn: TraceContext, tool_use_id: &str) -> SpanId {
    derived(turn.span_id, &[b"tool", tool_use_id.as_bytes()])
}

/// Returns the span in which a message waited until a turn leased it. It is the parent of the
/// turn, which begins before the outcome of the lease is known.
#[must_use]
pub fn delivery_span(message: TraceContext, turn: TurnId) -> SpanId {
    derived(message.span_id, &[b"delivery", &turn.get().to_be_bytes()])
}

fn derived(of: SpanId, parts: &[&[u8]]) -> SpanId {
    let mut hash = Sha256::new();
    hash.update(of.bytes());
    parts.iter().for_each(|part| hash.update(part));
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&hash.finalize()[..8]);
    // A digest of zeros is as likely as any other.
    SpanId::new(bytes).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_differ_by_all_that_they_are_derived_from() {
        let context = |text| TraceContext::parse(text).expect("a context");
        let one = context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
        let two = context("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203332-01");
        let turn = |id| TurnId::new(id).expect("an id");
        let spans = [
            tool_span(one, "toolu_1"),
            tool_span(one, "toolu_2"),
            tool_span(two, "toolu_1"),
            delivery_span(one, turn(7)),
            delivery_span(one, turn(8)),
            delivery_span(two, turn(7)),
        ];
        let distinct: std::collections::BTreeSet<_> = spans.into_iter().collect();
        assert_eq!(distinct.len(), spans.len());
        assert_eq!(tool_span(one, "toolu_1"), spans[0]);
    }
}
