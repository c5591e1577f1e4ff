//! The plan of a turn: its trigger, and the results of its runs of claude so far.
//!
//! Invariant: the usage of a turn is the sum over its runs, including failed ones.

use std::collections::BTreeMap;

use hive_core::limits::RETURNED_TOOL_USES_BYTES_MAX;
use hive_core::time::BootTime;
use hive_core::turn::{ToolUse, Usage};

use crate::claude::transcript::{TOOL_NAMES_MAX, Transcript};
use crate::turn::job::Job;
use crate::turn::output::Ending;

/// Maximum bytes of an id's other fields in the call that ends the turn.
const ID_FIELDS_BYTES_MAX: usize = 8;

#[derive(Debug)]
pub(crate) struct TurnPlan {
    pub(crate) job: Job,
    /// Whether the login was retried.
    pub(crate) login_retried: bool,
    /// Whether a new conversation starts because continuing the old one is a waste.
    pub(crate) resets: bool,
    /// Whether the conversation was compacted because it had become too long for this turn.
    pub(crate) made_room: bool,
    /// When the whole turn exceeds its longest time.
    pub(crate) overlong_at: Option<BootTime>,
    usage: Usage,
    tools: BTreeMap<String, u32>,
    returned: Vec<String>,
    /// Bytes of the tool calls in the call that ends the turn; the sum is limited, so that the call
    /// fits.
    returned_bytes: usize,
    compacted: bool,
}

impl TurnPlan {
    pub(crate) fn new(job: Job, overlong_at: Option<BootTime>) -> Self {
        Self {
            job,
            login_retried: false,
            resets: false,
            made_room: false,
            overlong_at,
            usage: Usage::default(),
            tools: BTreeMap::new(),
            returned: Vec::new(),
            returned_bytes: 0,
            compacted: false,
        }
    }

    /// Adds the results of a run.
    pub(crate) fn absorb(&mut self, transcript: &Transcript, cost_before: Option<f64>) {
        let run = transcript.usage(cost_before);
        let sum = &mut self.usage;
        sum.input_tokens = sum.input_tokens.saturating_add(run.input_tokens);
        sum.cache_read_tokens = sum.cache_read_tokens.saturating_add(run.cache_read_tokens);
        sum.cache_creation_tokens =
            sum.cache_creation_tokens.saturating_add(run.cache_creation_tokens);
        sum.output_tokens = sum.output_tokens.saturating_add(run.output_tokens);
        sum.cost_micro_usd = sum.cost_micro_usd.saturating_add(run.cost_micro_usd);
        sum.inference_count = sum.inference_count.saturating_add(run.inference_count);
        sum.tool_call_count = sum.tool_call_count.saturating_add(run.tool_call_count);
        for (name, count) in &transcript.tools {
            let sum = self.tools.entry(name.clone()).or_default();
            *sum = sum.saturating_add(*count);
        }
        for id in transcript.returned_tool_use_ids() {
            let bytes = self.returned_bytes + id.len() + ID_FIELDS_BYTES_MAX;
            if bytes <= RETURNED_TOOL_USES_BYTES_MAX {
                self.returned_bytes = bytes;
                self.returned.push(id.clone());
            }
        }
        self.compacted |= transcript.compacted;
    }

    /// Returns the end of the turn, as far as it follows from its runs.
    pub(crate) fn ending(self) -> Ending {
        Ending {
            turn_id: self.job.turn_id,
            returned_tool_use_ids: self.returned,
            usage: self.usage,
            compacted: self.compacted,
            tool_uses: most_used(self.tools),
            ..Ending::default()
        }
    }
}

/// Returns the most used tools, as many as the broker takes, with valid names.
fn most_used(tools: BTreeMap<String, u32>) -> Vec<ToolUse> {
    let is_name = |name: &str| !name.is_empty() && !name.contains(char::is_control);
    let mut tools: Vec<ToolUse> = tools
        .into_iter()
        .filter(|(name, count)| is_name(name) && *count > 0)
        .map(|(name, count)| ToolUse { name, count })
        .collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.count));
    tools.truncate(TOOL_NAMES_MAX);
    tools
}
