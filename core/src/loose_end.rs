//! Loose ends: what an agent has open and should not forget.

use crate::time::WallTime;

/// What kind of loose end it is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Kind {
    /// A question that the agent asked.
    QuestionAsked,
    /// A question that the agent was asked.
    QuestionOwed,
    /// A pending reminder.
    Reminder,
    /// A message of the agent that became a dead letter.
    DeadLetter,
    /// What a co-process of the agent published.
    External,
}

/// Something open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseEnd {
    /// What kind it is.
    pub kind: Kind,
    /// The id of the question, reminder, message or entry; at least 1.
    pub id: u64,
    /// Whose it is: an agent's name, or `operator`.
    pub agent: String,
    /// The other side; empty for a reminder.
    pub peer: String,
    /// What it is about, cut to [`crate::limits::LOOSE_END_TEXT_CHARS_MAX`] characters.
    pub text: String,
    /// Since when it is open.
    pub create_time: WallTime,
    /// Deadline or due time.
    pub due_time: Option<WallTime>,
    /// The co-process's own name for it; empty for other kinds.
    pub key: String,
}
