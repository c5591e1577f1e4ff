//! Loose ends: open items of an agent, which it should not forget.

use crate::time::WallTime;

/// The kind of a loose end.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub enum Kind {
    /// A question that the agent asked.
    QuestionAsked,
    /// A question to the agent that has no answer yet.
    QuestionOwed,
    /// A pending reminder.
    Reminder,
    /// A message of the agent that became a dead letter.
    DeadLetter,
    /// An entry that a co-process of the agent published.
    External,
    /// A question of the agent that asks the operator to approve a change.
    Approval,
}

/// An open item of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LooseEnd {
    /// Kind of the item.
    pub kind: Kind,
    /// The id of the question, reminder, message or entry; at least 1.
    pub id: u64,
    /// Its owner: an agent's name, or `operator`.
    pub agent: String,
    /// The other side; empty for a reminder.
    pub peer: String,
    /// Subject, cut to [`crate::limits::LOOSE_END_TEXT_CHARS_MAX`] characters.
    pub text: String,
    /// Time since which it is open.
    pub create_time: WallTime,
    /// Deadline or due time.
    pub due_time: Option<WallTime>,
    /// The co-process's key for it; empty for other kinds.
    pub key: String,
}
