//! Turns: one run of the model, and the effect of its end on its mail.
//!
//! Invariant: [`Outcome::settlement`] is the outcome table of the delivery contract; no other code
//! decides how a turn's mail is settled.

use std::collections::HashSet;

use crate::delivery::{RedeliveryCause, Settlement};
use crate::id::{MessageId, TurnId};
use crate::name::AgentName;
use crate::time::WallTime;
use crate::trace::TraceContext;

/// The conversation that every turn belongs to for now.
pub const MAIN_CONVERSATION: &str = "main";

/// The purpose of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A delivery started it.
    Mail,
    /// The agent asked for another turn.
    Continue,
    /// Notes are flushed before the context is cut.
    Checkpoint,
    /// The context is compacted.
    Compact,
}

impl Kind {
    /// Returns whether the turn maintains the conversation and handles no mail: its failure loses
    /// no work.
    #[must_use]
    pub fn is_upkeep(self) -> bool {
        match self {
            Self::Checkpoint | Self::Compact => true,
            Self::Mail | Self::Continue => false,
        }
    }
}

/// The end of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The model ended its turn.
    Ok,
    /// The turn failed in a way that may be the message's fault.
    Failed,
    /// The model's rate limit was hit.
    RateLimited,
    /// No valid login.
    AuthFailed,
    /// API, network, billing, model, claude or its fences are not available.
    Unavailable,
    /// Cancelled by the operator.
    Cancelled,
    /// The harness shut down.
    Drained,
    /// The harness vanished during the turn; only the broker reports this.
    Vanished,
    /// The harness was taken over, or its host rebooted; only the broker reports this.
    Fenced,
}

impl Outcome {
    /// Returns whether a harness may report it.
    #[must_use]
    pub fn is_reportable(self) -> bool {
        !matches!(self, Self::Vanished | Self::Fenced)
    }

    /// Returns how a delivery of a turn with this outcome is settled. `reached_model` is whether
    /// the model saw it: always for the delivery that started the turn, and for a received one if
    /// its tool result returned without an error.
    #[must_use]
    pub fn settlement(self, reached_model: bool) -> Settlement {
        use RedeliveryCause as Cause;
        match self {
            Self::Ok if reached_model => Settlement::Ack,
            Self::Ok => Settlement::GiveBack(Cause::NotReceived),
            Self::Failed => Settlement::Fail(Cause::TurnFailed),
            Self::Vanished => Settlement::Fail(Cause::HarnessVanished),
            Self::RateLimited => Settlement::GiveBack(Cause::RateLimited),
            Self::AuthFailed => Settlement::GiveBack(Cause::AuthFailed),
            Self::Unavailable => Settlement::GiveBack(Cause::Unavailable),
            Self::Drained | Self::Fenced => Settlement::GiveBack(Cause::Drained),
            Self::Cancelled => Settlement::Hold,
        }
    }

    /// Returns whether it counts as one of the failures in a row that make an agent back off.
    #[must_use]
    pub fn is_failure(self) -> bool {
        match self {
            Self::Failed
            | Self::RateLimited
            | Self::AuthFailed
            | Self::Unavailable
            | Self::Vanished => true,
            Self::Ok | Self::Cancelled | Self::Drained | Self::Fenced => false,
        }
    }
}

/// Resources that the model used in one turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens sent uncached.
    pub input_tokens: u64,
    /// Tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Tokens written to the cache.
    pub cache_creation_tokens: u64,
    /// Tokens produced.
    pub output_tokens: u64,
    /// Cost in millionths of a US dollar.
    pub cost_micro_usd: u64,
    /// Inferences.
    pub inference_count: u32,
    /// Tool calls.
    pub tool_call_count: u32,
}

/// The number of calls of one tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// Full name of the tool.
    pub name: String,
    /// Number of calls.
    pub count: u32,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The outcome of the turn.
    pub outcome: Outcome,
    /// Error of a turn that did not end well; empty for none.
    pub error: String,
    /// The end of its output.
    pub output_tail: String,
    /// Tool calls whose result reached the model.
    pub returned_tool_uses: HashSet<String>,
    /// Resources that it used.
    pub usage: Usage,
    /// The model that ran; empty if unknown.
    pub model: String,
    /// Context after the last inference, in tokens; 0 if unknown.
    pub context_tokens: u64,
    /// The model's window, in tokens; 0 if unknown.
    pub context_window_tokens: u64,
    /// Whether a compaction ran.
    pub compacted: bool,
    /// When the model's limit ends, if the model stated it.
    pub retry_time: Option<WallTime>,
    /// The tools that it called.
    pub tool_uses: Vec<ToolUse>,
}

impl Ended {
    /// Returns an end of which nothing but the outcome is known.
    #[must_use]
    pub fn new(outcome: Outcome) -> Self {
        Self {
            outcome,
            error: String::new(),
            output_tail: String::new(),
            returned_tool_uses: HashSet::new(),
            usage: Usage::default(),
            model: String::new(),
            context_tokens: 0,
            context_window_tokens: 0,
            compacted: false,
            retry_time: None,
            tool_uses: Vec::new(),
        }
    }
}

/// One run of the model, with its outcome and usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Unique id.
    pub id: TurnId,
    /// The agent that it belongs to.
    pub agent: AgentName,
    /// Purpose of the turn.
    pub kind: Kind,
    /// The model conversation.
    pub conversation: String,
    /// The session epoch it was opened in.
    pub session_epoch: u64,
    /// The delivery that started it.
    pub message_id: Option<MessageId>,
    /// The attempt at that delivery, from 1; 0 for none.
    pub attempt: u32,
    /// The outcome of the turn; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// When it was opened.
    pub start_time: WallTime,
    /// When it ended.
    pub end_time: Option<WallTime>,
    /// Error of a turn that did not end well; empty for none.
    pub error: String,
    /// The end of its output.
    pub output_tail: String,
    /// Resources that it used.
    pub usage: Usage,
    /// The model that ran.
    pub model: String,
    /// Context after the last inference, in tokens; 0 if unknown.
    pub context_tokens: u64,
    /// The model's window, in tokens; 0 if unknown.
    pub context_window_tokens: u64,
    /// Whether a compaction ran.
    pub compacted: bool,
    /// Messages received in it besides the one that started it.
    pub received: Vec<MessageId>,
    /// Messages sent in it.
    pub sent: Vec<MessageId>,
    /// The span of the turn.
    pub traceparent: Option<TraceContext>,
}
