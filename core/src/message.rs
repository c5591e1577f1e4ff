//! Messages: text with its origin and recipients. Immutable once accepted.

use crate::id::{MessageId, QuestionId, ReminderId, TurnId};
use crate::name::{AgentName, Label};
use crate::time::WallTime;
use crate::trace::TraceContext;

/// The name of the operator's inbox.
pub const OPERATOR: &str = "operator";

/// The source of a message.
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

/// The recipient of a message, as its sender named it.
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

/// The subject of a message of the broker.
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
    /// The recipient is asked a question.
    QuestionAsked,
    /// A question was answered.
    QuestionAnswered,
    /// A question's deadline passed.
    QuestionExpired,
    /// A question was withdrawn.
    QuestionCancelled,
    /// A reminder is due.
    Reminder,
    /// A problem around a child's harness.
    Problem,
    /// The harness of a child was started.
    Started,
    /// The harness of a stopped child has ended.
    Stopped,
    /// The harness of a child ended by itself.
    Crashed,
    /// A child was logged in.
    LoggedIn,
    /// A child works again.
    Recovered,
    /// An action that the agent asked for has ended.
    ActionEnded,
    /// A schedule of the agent has ended without its doing.
    ScheduleEnded,
    /// The heartbeat of the agent is due.
    Heartbeat,
}

/// An accepted message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Unique id.
    pub id: MessageId,
    /// Source of the message.
    pub origin: Origin,
    /// Name of the recipient; [`OPERATOR`] is the operator. Empty for a broadcast.
    pub recipients: Vec<String>,
    /// Number of recipients at acceptance.
    pub recipient_count: u32,
    /// Body of the message.
    pub body: String,
    /// The message that it replies to.
    pub in_reply_to: Option<MessageId>,
    /// When it was accepted.
    pub accept_time: WallTime,
    /// Subject of a message of the broker; `None` for others.
    pub system_kind: Option<SystemKind>,
    /// Whether it was sent to everyone.
    pub broadcast: bool,
    /// The turn it was sent in.
    pub turn_id: Option<TurnId>,
    /// The coalescing key it was sent with.
    pub coalescing_key: Option<String>,
    /// The question it is about.
    pub question_id: Option<QuestionId>,
    /// The reminder that it comes from.
    pub reminder_id: Option<ReminderId>,
    /// The span in which it was sent.
    pub traceparent: Option<TraceContext>,
}
