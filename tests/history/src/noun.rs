//! The nouns of the contract as an observer sees them: origins, states, causes, outcomes, a
//! delivery that is handed over, a question.
//!
//! Invariant: one variant per value of the contract, so that what an observer cannot name it cannot
//! overlook.

/// Who a message is from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Origin {
    /// An agent, by name.
    Agent(String),
    /// The operator.
    Operator,
    /// The broker, and what it tells.
    System(Kind),
    /// A co-process, by label.
    External(String),
}

/// What a message of the broker tells.
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
    /// A question.
    QuestionAsked,
    /// An answer.
    QuestionAnswered,
    /// A deadline passed.
    QuestionExpired,
    /// A question was withdrawn.
    QuestionCancelled,
    /// A reminder.
    Reminder,
    /// Something around a child's harness does not work.
    Problem,
}

/// Where a delivery stands.
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

/// A lane of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Of the broker.
    System,
    /// Of everybody else.
    Normal,
}

/// Why a delivery came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The turn failed.
    TurnFailed,
    /// The harness vanished.
    HarnessVanished,
    /// A rate limit.
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
    /// Given back by a consumer.
    Nacked,
    /// A consumer's lease ran out.
    LeaseExpired,
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The model ended its turn.
    Ok,
    /// In a way that may be the message's fault.
    Failed,
    /// A rate limit.
    RateLimited,
    /// No login.
    AuthFailed,
    /// No model.
    Unavailable,
    /// By the operator.
    Cancelled,
    /// The harness shut down.
    Drained,
    /// The harness stayed away.
    Vanished,
    /// Taken over, or rebooted.
    Fenced,
}

impl Outcome {
    /// The cause that a delivery shows which came back from such a turn; `None` where it does not
    /// come back.
    #[must_use]
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

    /// Whether it uses up an attempt.
    #[must_use]
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

/// What the operator decides about a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    /// Done.
    Ack,
    /// Dropped.
    Drop,
    /// Out of being held.
    Release,
    /// A dead letter goes round again.
    Redrive,
}

/// A delivery that was handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// Whose inbox.
    pub agent: String,
    /// The message.
    pub message: u64,
    /// Its author.
    pub origin: Origin,
    /// Its text.
    pub body: String,
    /// What it answers; 0 for nothing.
    pub reply_to: u64,
    /// Its lane.
    pub lane: Lane,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// Why it came back; `None`: it says that it was never handed over before.
    pub cause: Option<Cause>,
    /// The claim; empty where a turn holds it.
    pub token: String,
    /// The question it is about; 0 for none.
    pub question: u64,
    /// The reminder it comes from; 0 for none.
    pub reminder: u64,
}

/// Where a question stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuestionState {
    /// Open.
    Open,
    /// Answered.
    Answered,
    /// Its deadline passed.
    Expired,
    /// Withdrawn, or one of the two was retired.
    Cancelled,
}

/// A question as somebody saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuestionSeen {
    /// Which.
    pub id: u64,
    /// Who asks.
    pub asker: String,
    /// Who is asked.
    pub target: String,
    /// Its text.
    pub text: String,
    /// Where it stands.
    pub state: QuestionState,
    /// What was chosen.
    pub choices: Vec<String>,
    /// What was answered in words.
    pub answer: String,
    /// Who closed it: an agent's name, `operator`, or empty for the broker.
    pub closed_by: String,
    /// The operator answered in somebody's place.
    pub operator_override: bool,
    /// When it expires, on the wall; `None`: never.
    pub deadline: Option<i64>,
    /// The message that brought it to its target.
    pub message: u64,
}
