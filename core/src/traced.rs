//! What spans are made of: messages, deliveries and turns that are in a trace.
//!
//! Invariant: none of them has a text of a message.

use crate::id::{MessageId, TurnId};
use crate::message::{Origin, SystemKind};
use crate::time::WallTime;
use crate::trace::{TraceContext, Traced};
use crate::turn::Turn;

/// A message, as its span shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentMessage {
    /// Unique id.
    pub id: MessageId,
    /// The span in which it was sent; `None` if it is in no trace.
    pub traced: Option<Traced>,
    /// Source of the message.
    pub origin: Origin,
    /// The recipient; `None` for a broadcast.
    pub to: Option<String>,
    /// Number of recipients at acceptance.
    pub recipient_count: u32,
    /// Length of the body.
    pub body_bytes: u64,
    /// When it was accepted.
    pub accept_time: WallTime,
    /// Subject of a message of the broker.
    pub system_kind: Option<SystemKind>,
    /// The message that it replies to.
    pub in_reply_to: Option<MessageId>,
}

/// A delivery that is ready or leased, of a message in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingDelivery {
    /// The message.
    pub message: MessageId,
    /// The name of its recipient.
    pub agent: String,
    /// The span in which the message was sent.
    pub context: TraceContext,
    /// When it became ready, or was leased.
    pub state_time: WallTime,
    /// When the message was accepted.
    pub accept_time: WallTime,
    /// Whether it is leased.
    pub is_leased: bool,
    /// The turn that holds the lease.
    pub lease_turn: Option<TurnId>,
}

/// A turn in a trace, after its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracedTurn {
    /// The turn.
    pub turn: Turn,
    /// The span of the turn.
    pub traced: Traced,
    /// The messages that it received besides the one that started it, and their spans.
    pub received: Vec<(MessageId, TraceContext)>,
}
