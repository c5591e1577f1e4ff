//! Messages: who said what to whom. Immutable once accepted.

use crate::id::{MessageId, QuestionId, ReminderId, TurnId};
use crate::name::{AgentName, Label};
use crate::time::WallTime;

/// The name under which the operator's inbox goes.
pub const OPERATOR: &str = "operator";

/// Who a message came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// An agent.
    Agent(AgentName),
    /// The operator; the user behind the socket.
    Operator(String),
    /// The broker itself.
    System,
    /// A co-process of the recipient.
    External(Label),
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Agent(name) => f.write_str(name.as_str()),
            Self::Operator(_) => f.write_str(OPERATOR),
            Self::System => f.write_str("system"),
            Self::External(label) => write!(f, "external:{label}"),
        }
    }
}

/// To whom a message goes, as its sender said it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// One agent.
    Agent(AgentName),
    /// The operator.
    Operator,
    /// The sender's parent; a root's is the operator.
    Parent,
    /// Every active agent but the sender.
    Everyone,
}

/// What a message of the broker tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SystemKind {
    /// A turn of a child failed.
    TurnFailed,
    /// A delivery of a child became a dead letter.
    DeadLetter,
    /// The agent's harness was (re)started.
    Restarted,
    /// A child cannot run turns now.
    Unavailable,
    /// The recipient is asked something.
    QuestionAsked,
    /// A question was answered.
    QuestionAnswered,
    /// A question's deadline passed.
    QuestionExpired,
    /// A question was withdrawn.
    QuestionCancelled,
    /// A reminder's time has come.
    Reminder,
    /// Something around a child's harness does not work.
    Problem,
}

/// A message as it was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id.
    pub id: MessageId,
    /// Who sent it.
    pub origin: Origin,
    /// Who got it; [`OPERATOR`] stands for the operator.
    pub recipients: Vec<String>,
    /// The text.
    pub body: String,
    /// What it answers.
    pub in_reply_to: Option<MessageId>,
    /// When it was accepted.
    pub accept_time: WallTime,
    /// What it tells, for messages of the broker.
    pub system_kind: Option<SystemKind>,
    /// Whether it went to everyone.
    pub broadcast: bool,
    /// The turn it was sent in.
    pub turn_id: Option<TurnId>,
    /// The coalescing key it was sent with.
    pub coalescing_key: Option<String>,
    /// The question it is about.
    pub question_id: Option<QuestionId>,
    /// The reminder it comes from.
    pub reminder_id: Option<ReminderId>,
}
