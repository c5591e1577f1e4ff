//! Events: committed facts, numbered by commit.

use crate::id::{MessageId, QuestionId, ReminderId, TurnId};
use crate::time::WallTime;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A message was accepted.
    MessageAccepted,
    /// A delivery was leased.
    DeliveryLeased,
    /// A delivery was acked.
    DeliveryAcked,
    /// A delivery was requeued.
    DeliveryReturned,
    /// A delivery became a dead letter.
    DeliveryDead,
    /// A delivery was held.
    DeliveryHeld,
    /// A held delivery was released.
    DeliveryReleased,
    /// A dead letter was redriven.
    DeliveryRedriven,
    /// A delivery was dropped.
    DeliveryDropped,
    /// A newer message superseded a delivery.
    DeliverySuperseded,
    /// A turn began.
    TurnBegun,
    /// A turn ended.
    TurnEnded,
    /// A harness attached with a new session epoch.
    HarnessAttached,
    /// A harness was fenced or its grace period expired.
    HarnessLost,
    /// An agent was created.
    AgentCreated,
    /// An agent was changed.
    AgentChanged,
    /// An agent was retired.
    AgentRetired,
    /// An agent's status text changed.
    StatusChanged,
    /// An agent was parked.
    AgentParked,
    /// The operator gave a harness a command.
    CommandGiven,
    /// A harness closed a command.
    CommandClosed,
    /// A call was refused by policy.
    Refused,
    /// A question was asked.
    QuestionAsked,
    /// A question was answered.
    QuestionAnswered,
    /// A question's deadline passed.
    QuestionExpired,
    /// A question was withdrawn.
    QuestionCancelled,
    /// A reminder was set.
    ReminderSet,
    /// A reminder fired.
    ReminderFired,
    /// A reminder was withdrawn.
    ReminderCancelled,
    /// The operator stopped an agent.
    AgentStopped,
    /// The operator started a stopped agent.
    AgentStarted,
    /// The operator purged a retired agent.
    AgentPurged,
    /// The directories of a purged agent were deleted.
    PurgeFinished,
    /// A harness reported another state.
    HarnessStateChanged,
    /// A backup has replaced the database.
    LogBegun,
}

/// A committed fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its position in the log.
    pub sequence: u64,
    /// The kind of fact.
    pub kind: Kind,
    /// When it was committed.
    pub time: WallTime,
    /// The agent it concerns; empty for none.
    pub agent: String,
    /// The message it concerns.
    pub message_id: Option<MessageId>,
    /// The turn it concerns.
    pub turn_id: Option<TurnId>,
    /// Further text for people.
    pub detail: String,
    /// The question it concerns.
    pub question_id: Option<QuestionId>,
    /// The reminder it concerns.
    pub reminder_id: Option<ReminderId>,
}
