//! The nouns of the contract as an observer sees them: origins, states, causes, outcomes, a
//! delivered message, a question.
//!
//! Invariant: one variant per value of the contract, so that an observer cannot overlook a value.

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An agent, by name.
    Agent(String),
    Operator,
    /// The broker, with the kind of its notice.
    System(Kind),
    /// A co-process, by label.
    External(String),
}

/// The kind of a notice of the broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A child's turn failed.
    TurnFailed,
    /// A child has a dead letter.
    DeadLetter,
    /// The harness was restarted on the operator's order.
    Restarted,
    /// A child cannot run turns.
    Unavailable,
    QuestionAsked,
    QuestionAnswered,
    /// A deadline passed.
    QuestionExpired,
    /// A question was withdrawn.
    QuestionCancelled,
    Reminder,
    /// Something around a child's harness does not work.
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
    /// An action has ended.
    ActionEnded,
    ScheduleEnded,
    Heartbeat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// Waiting.
    Ready,
    /// Claimed.
    Leased,
    /// Out of the queue until the operator decides.
    Held,
    /// A dead letter.
    Dead,
    /// Done.
    Acked,
    /// Dropped by the operator.
    Dropped,
    /// A newer message took its place.
    Superseded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Of the broker.
    System,
    /// Of agents, the operator and co-processes.
    Normal,
}

/// The cause of a requeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    TurnFailed,
    HarnessVanished,
    RateLimited,
    /// No login.
    AuthFailed,
    /// No model.
    Unavailable,
    /// Shut down, taken over, or rebooted.
    Drained,
    /// Released by the operator.
    Released,
    /// Redriven by the operator.
    Redriven,
    /// The tool result never reached the model.
    NotReceived,
    /// Nacked by a consumer.
    Nacked,
    /// A consumer's lease ran out.
    LeaseExpired,
    /// Leased in a backup that was restored.
    Restored,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The model ended its turn.
    Ok,
    /// A failure that the message may have caused.
    Failed,
    RateLimited,
    /// No login.
    AuthFailed,
    /// No model.
    Unavailable,
    /// Cancelled by the operator.
    Cancelled,
    /// The harness shut down.
    Drained,
    /// The harness did not reconnect.
    Vanished,
    /// Taken over, or rebooted.
    Fenced,
}

impl Outcome {
    /// Returns the cause shown by a delivery that such a turn requeued, or `None` if it requeues
    /// none.
    pub fn cause(self) -> Option<Cause> {
        match self {
            Self::Ok => Some(Cause::NotReceived),
            Self::Failed => Some(Cause::TurnFailed),
            Self::RateLimited => Some(Cause::RateLimited),
            Self::AuthFailed => Some(Cause::AuthFailed),
            Self::Unavailable => Some(Cause::Unavailable),
            Self::Cancelled => None,
            Self::Drained | Self::Fenced => Some(Cause::Drained),
            Self::Vanished => Some(Cause::HarnessVanished),
        }
    }

    /// Returns whether it uses up an attempt.
    pub fn uses_attempt(self) -> bool {
        match self {
            Self::Failed | Self::Vanished => true,
            Self::Ok
            | Self::RateLimited
            | Self::AuthFailed
            | Self::Unavailable
            | Self::Cancelled
            | Self::Drained
            | Self::Fenced => false,
        }
    }
}

/// A decision of the operator about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Done.
    Ack,
    Drop,
    /// Released from the held state.
    Release,
    /// A dead letter is redriven.
    Redrive,
}

/// A delivery as a caller received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// The agent whose inbox holds it.
    pub agent: String,
    pub message: u64,
    /// The message's author.
    pub origin: Origin,
    /// The message's text.
    pub body: String,
    /// The message it replies to; 0 for none.
    pub reply_to: u64,
    /// The delivery's lane.
    pub lane: Lane,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// The cause of the redelivery; `None` for a claimed first hand-over.
    pub cause: Option<Cause>,
    /// The lease token; empty if a turn holds the lease.
    pub token: String,
    /// The question it is about; 0 for none.
    pub question: u64,
    /// The reminder that the message delivers; 0 for none.
    pub reminder: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuestionState {
    Open,
    Answered,
    /// The deadline passed.
    Expired,
    /// Withdrawn, or its asker or target was retired.
    Cancelled,
}

/// A question as a caller saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionSeen {
    /// The question's ID.
    pub id: u64,
    /// The agent that asks.
    pub asker: String,
    /// The agent or operator asked.
    pub target: String,
    /// The question's text.
    pub text: String,
    /// The question's state.
    pub state: QuestionState,
    /// The chosen options.
    pub choices: Vec<String>,
    /// The answer's text.
    pub answer: String,
    /// The closer: an agent's name, `operator`, or empty for the broker.
    pub closed_by: String,
    /// Whether the operator answered in place of the target.
    pub operator_override: bool,
    /// The deadline on the wall clock; `None`: never.
    pub deadline: Option<i64>,
    /// The message that carried it to its target.
    pub message: u64,
    /// What it asks the operator to approve; `None` for a plain question.
    pub approval: Option<Box<ApprovalSeen>>,
}

/// An approval as a caller saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalSeen {
    /// What approving it would change, a line each; once it is approved: what it has changed.
    pub changes: Vec<String>,
    /// The digest of the changes while it is open; empty for none.
    pub digest: String,
}
