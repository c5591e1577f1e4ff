//! The usage of turns: tokens, calls, and money.
//!
//! The harness of an agent reports all of it, and the broker cannot check it. Invariant: where it
//! is printed, it is marked.

use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{from_wire, same};

/// The mark of values that a harness reports of itself.
pub(super) const SELF_REPORTED: &str = "self-reported by the harness";

/// Tokens, calls and cost. Self-reported: the harness reports them, and the broker cannot check
/// them.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Usage {
    /// Tokens read that were not in the cache; self-reported.
    pub(super) input_tokens: u64,
    /// Tokens read from the cache; self-reported.
    pub(super) cache_read_tokens: u64,
    /// Tokens written to the cache; self-reported.
    pub(super) cache_creation_tokens: u64,
    /// Tokens written; self-reported.
    pub(super) output_tokens: u64,
    /// The cost, in millionths of a US dollar; self-reported.
    pub(super) cost_micro_usd: u64,
    /// Calls of the model; self-reported.
    pub(super) inference_count: u32,
    /// Calls of tools; self-reported.
    pub(super) tool_call_count: u32,
}

from_wire! {
    TurnUsage => Usage {
        same => input_tokens, cache_read_tokens, cache_creation_tokens, output_tokens,
            cost_micro_usd, inference_count, tool_call_count;
    }
}

impl Usage {
    pub(super) fn tokens(&self) -> String {
        let Self { input_tokens, cache_read_tokens, cache_creation_tokens, output_tokens, .. } =
            self;
        format!(
            "{input_tokens} in, {cache_read_tokens} from cache, {cache_creation_tokens} to cache, {output_tokens} out"
        )
    }
}

/// Money in dollars, to the millionth.
pub(super) fn dollars(micro_usd: u64) -> String {
    format!("{}.{:06}", micro_usd / 1_000_000, micro_usd % 1_000_000)
}
