//! Turns: one run of the model, and what its end means for the mail it carried.
//!
//! Invariant: [`Outcome::settlement`] is the outcome table of the delivery contract; nothing else
//! decides what becomes of a turn's mail.

use crate::delivery::{RedeliveryCause, Settlement};
use crate::id::{MessageId, TurnId};
use crate::name::AgentName;
use crate::time::WallTime;

/// The conversation that every turn belongs to for now.
pub const MAIN_CONVERSATION: &str = "main";

/// What a turn is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Woken by a delivery.
    Mail,
    /// The agent asked for another turn.
    Continue,
    /// Notes are flushed before the context is cut.
    Checkpoint,
    /// The context is compacted.
    Compact,
}

impl Kind {
    /// Whether it tends the conversation itself and no mail: where it fails, nothing that anybody
    /// waits for is lost.
    #[must_use]
    pub fn is_upkeep(self) -> bool {
        match self {
            Self::Checkpoint | Self::Compact => true,
            Self::Mail | Self::Continue => false,
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The model ended its turn.
    Ok,
    /// It broke in a way that may be the message's fault.
    Failed,
    /// The model's rate limit was hit.
    RateLimited,
    /// No valid login.
    AuthFailed,
    /// API, network, billing, model, claude or its fences are not there.
    Unavailable,
    /// Cancelled by the operator.
    Cancelled,
    /// The harness shut down.
    Drained,
    /// The harness vanished in mid-turn; only the broker says so.
    Vanished,
    /// The harness was taken over, or its host rebooted; only the broker says so.
    Fenced,
}

impl Outcome {
    /// Whether a harness may report it.
    #[must_use]
    pub fn is_reportable(self) -> bool {
        !matches!(self, Self::Vanished | Self::Fenced)
    }

    /// What becomes of a delivery of a turn that ended so. `reached_model` tells whether the model
    /// saw it: always for the delivery that woke the turn, and for a received one if its tool
    /// result came back well.
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

    /// Whether it counts into the row of turns that could not run, which makes an agent back off.
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

/// What the model used in one turn.
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

/// How often a tool was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// Its full name.
    pub name: String,
    /// How often.
    pub count: u32,
}

/// One run of the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Its id.
    pub id: TurnId,
    /// Whose.
    pub agent: AgentName,
    /// What for.
    pub kind: Kind,
    /// Which model conversation.
    pub conversation: String,
    /// The session epoch it was opened in.
    pub session_epoch: u64,
    /// The delivery that woke it.
    pub message_id: Option<MessageId>,
    /// The attempt at that delivery, from 1; 0 for none.
    pub attempt: u32,
    /// How it ended; `None` while it is open.
    pub outcome: Option<Outcome>,
    /// When it was opened.
    pub start_time: WallTime,
    /// When it ended.
    pub end_time: Option<WallTime>,
    /// What went wrong.
    pub error: String,
    /// The end of its output.
    pub output_tail: String,
    /// What it used.
    pub usage: Usage,
    /// The model that ran.
    pub model: String,
    /// Context after the last inference, in tokens; 0 if unknown.
    pub context_tokens: u64,
    /// The model's window, in tokens; 0 if unknown.
    pub context_window_tokens: u64,
    /// Whether a compaction ran.
    pub compacted: bool,
    /// Messages received in it besides the waking one.
    pub received: Vec<MessageId>,
    /// Messages sent in it.
    pub sent: Vec<MessageId>,
}
