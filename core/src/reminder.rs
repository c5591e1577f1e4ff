//! Reminders: mail that an agent sends to itself for later.
//!
//! Invariant: only a pending reminder changes, and only once: it fires, or it is cancelled.

use crate::id::{MessageId, ReminderId, TurnId};
use crate::name::AgentName;
use crate::time::WallTime;

/// Where a reminder stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waiting for its time.
    Pending,
    /// Its message is in the inbox.
    Fired,
    /// Withdrawn.
    Cancelled,
}

/// A reminder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reminder {
    /// Its id.
    pub id: ReminderId,
    /// Whose it is.
    pub agent: AgentName,
    /// What to be reminded of.
    pub body: String,
    /// Where it stands.
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
