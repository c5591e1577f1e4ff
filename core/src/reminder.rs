//! Reminders: mail that an agent sends to itself at a later time.
//!
//! Invariant: only a pending reminder changes, and only once: it fires, or it is cancelled.

use crate::id::{MessageId, ReminderId, TurnId};
use crate::name::AgentName;
use crate::time::WallTime;

/// State of a reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Not yet due.
    Pending,
    /// Its message is in the inbox.
    Fired,
    /// Withdrawn.
    Cancelled,
}

/// A reminder with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Unique id.
    pub id: ReminderId,
    /// The agent that set it.
    pub agent: AgentName,
    /// Text of the later message.
    pub body: String,
    /// Current state.
    pub state: State,
    /// When it was set.
    pub create_time: WallTime,
    /// When it is due.
    pub due_time: WallTime,
    /// When it fired or was cancelled.
    pub close_time: Option<WallTime>,
    /// The message it became.
    pub message_id: Option<MessageId>,
    /// The turn it was set in.
    pub turn_id: Option<TurnId>,
}
