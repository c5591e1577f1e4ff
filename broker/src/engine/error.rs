//! Refusals: every error of the engine, by noun. The sentence says what to do next.
//!
//! Invariant: [`Refusal::on_wire`] is the one map to the wire, and exhaustive for each noun. So a
//! new refusal cannot reach it without a stable reason and an advice on retries.

use std::time::Duration;

use hive_core::agent::QUERY_AGENT_STATE;
use hive_core::delivery::State;
use hive_core::id::{CommandId, MessageId, QuestionId, ReminderId, TurnId};
use hive_core::reason::Reason;
use hive_core::{loose_end, reminder};

use crate::store::backup::CopyError;
use crate::store::check::CheckError;
use crate::store::search::SearchError;
use crate::store::{CommandError, StoreError};

/// A refusal about an agent.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum AgentError {
    #[error("there is no agent `{name}`{}", nearest_text(.nearest))]
    NotFound { name: String, nearest: Vec<String> },
    #[error("agent `{name}` was retired; its mail is kept, but it takes no more")]
    Retired { name: String },
    #[error("`{agent}` is not your direct child; for others you need the capability `{capability}`", capability = QUERY_AGENT_STATE)]
    NotYourChild { agent: String },
    #[error("there is an agent `{name}` already")]
    Exists { name: String },
    #[error("agent `{agent}` starts no turns for now: {error}")]
    Parked { agent: String, error: String, retry_after: Option<Duration> },
    #[error(
        "agent `{agent}` is stopped; the operator starts it with `hivectl agent start {agent}`"
    )]
    Stopped { agent: String },
    #[error(
        "the directories of an earlier agent `{agent}` that was purged are still being deleted; try again"
    )]
    Purging { agent: String },
    #[error("`{parent}` is `{name}` itself or one of its descendants; that would close a circle")]
    Cycle { name: String, parent: String },
    #[error("the status text has {chars} characters; at most {max} are allowed, on one line")]
    StatusTooLong { chars: usize, max: usize },
}

/// A refusal about a turn.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum TurnError {
    #[error("there is no turn {id} that you may see")]
    NotFound { id: TurnId },
    #[error("agent `{agent}` has no open turn")]
    NoneOpen { agent: String },
    #[error("this process has no open turn; nothing was sent or taken")]
    Ended,
    #[error("turn {id} of this session is still open; end it first")]
    Open { id: TurnId },
}

/// A refusal about a harness, its commands and its login.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum HarnessError {
    #[error("there is no command {id} for this agent")]
    CommandNotFound { id: CommandId },
    #[error("a harness is attached to agent `{agent}`")]
    Attached { agent: String },
    #[error("agent `{agent}` has no harness that answers; start it, or look at what it says")]
    Offline { agent: String },
    #[error("a login dialogue with agent `{agent}` is open already; end that one first")]
    LoginOpen { agent: String },
    #[error(
        "there is no login dialogue {id} that waits for you; it is over, or it is another agent's"
    )]
    LoginNotFound { id: u64 },
}

/// A refusal about a message or its delivery.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum MailError {
    #[error("there is no message {id} that you sent or received")]
    MessageNotFound { id: MessageId },
    #[error("there is no delivery of message {message} to `{agent}`")]
    DeliveryNotFound { agent: String, message: MessageId },
    #[error("your policy does not allow you to send to `{recipient}`; allowed are: {}", .allowed.join(", "))]
    RecipientNotAllowed { recipient: String, allowed: Vec<String> },
    #[error("the delivery of message {message} to `{agent}` is {state}, which does not allow that")]
    WrongState { agent: String, message: MessageId, state: State },
    #[error("the inbox of `{agent}` is full: {depth} unsettled deliveries, {max} are allowed")]
    InboxFull { agent: String, depth: u32, max: u32 },
    #[error(
        "the body has {bytes} bytes; at most {max} are allowed. Put the rest into a file and send its path"
    )]
    BodyTooLarge { bytes: usize, max: u32 },
    #[error("you send too fast: at most {} a minute", counted(*per_minute, "message"))]
    RateLimited { per_minute: u32, retry_after: Duration },
    #[error("{bytes} bytes of your messages are waiting unread; at most {max} are allowed")]
    StorageFull { bytes: u64, max: u64 },
}

/// A refusal about a question.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum QuestionError {
    #[error("there is no question {id} that you asked or were asked")]
    NotFound { id: QuestionId },
    #[error("question {id} was put to `{target}`; only `{target}` and the operator may answer it")]
    NotTheTarget { id: QuestionId, target: String },
    #[error(
        "question {id} was asked by `{asker}`; only `{asker}` and the operator may withdraw it"
    )]
    NotTheAsker { id: QuestionId, asker: String },
    #[error("question {id} has its outcome already: {outcome}")]
    Closed { id: QuestionId, outcome: String },
    #[error("you have {}; at most {max} may be open. Wait for an answer, or withdraw one", counted(*open, "open question"))]
    Limit { open: u32, max: u32 },
}

/// A refusal about a reminder.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum ReminderError {
    #[error("there is no reminder {id} of yours")]
    NotFound { id: ReminderId },
    #[error("reminder {id} is {state} already")]
    Closed { id: ReminderId, state: reminder::State },
    #[error("you have {}; at most {max} may be pending. Withdraw one first", counted(*pending, "pending reminder"))]
    Limit { pending: u32, max: u32 },
}

/// The reason for which the engine refused a call.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum Refusal {
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Turn(#[from] TurnError),
    #[error(transparent)]
    Harness(#[from] HarnessError),
    #[error(transparent)]
    Mail(#[from] MailError),
    #[error(transparent)]
    Question(#[from] QuestionError),
    #[error(transparent)]
    Reminder(#[from] ReminderError),
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: String },
    #[error("you have no loose end of kind {kind} with id {id}")]
    LooseEndNotFound { kind: loose_end::Kind, id: u64 },
    #[error(
        "your policy does not have the tool group `{group}`; the operator can add it with `hivectl agent set-policy`"
    )]
    GroupMissing { group: &'static str },
    #[error(
        "the request id `{id}` was used before for another request; make a new id for new content"
    )]
    RequestIdReused { id: String },
    #[error("{what} belongs to another caller")]
    NotYours { what: &'static str },
    #[error("this call is for agents; the operator's mail is not leased")]
    NotAnAgent,
    #[error("the lease or session is no longer yours; what it held went back or was taken over")]
    LeaseLost,
    #[error(
        "the request has {bytes} bytes, and {part} may have at most {max}. Put what is long into a file and send its path"
    )]
    RequestTooLarge { bytes: u32, part: &'static str, max: usize },
    #[error(
        "{max} calls are under way on this socket, as many as may be; read their answers or end them first"
    )]
    CallLimit { max: usize },
    #[error("the broker is shutting down; try again when it is back")]
    Draining,
    #[error("no backup was made: {0}")]
    Backup(#[source] CopyError),
    #[error("search does not work now: {0}")]
    Search(#[from] SearchError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns a count with its noun, in the singular or the plural.
fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn nearest_text(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    let names: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
    format!("; did you mean {}?", names.join(" or "))
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<CopyError> for Refusal {
    fn from(error: CopyError) -> Self {
        match error {
            // A caller that disconnected gets no answer, so it was the broker that stopped.
            CopyError::Stopped => Self::Draining,
            CopyError::Store(error) => Self::Store(error),
            CopyError::UnderWay
            | CopyError::NoRoom { .. }
            | CopyError::Unwritable { .. }
            | CopyError::Unreadable { .. } => Self::Backup(error),
        }
    }
}

impl From<CheckError> for Refusal {
    fn from(error: CheckError) -> Self {
        match error {
            CheckError::Stopped => Self::Draining,
            CheckError::Store(error) => Self::Store(error),
        }
    }
}

impl CommandError for Refusal {
    fn storage(&self) -> Option<&StoreError> {
        if let Self::Store(error) = self { Some(error) } else { None }
    }
}

/// A refusal as callers see it, besides its sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnWire {
    /// The stable reason, which decides the gRPC code.
    pub reason: Reason,
    /// The wait before a retry, if a retry helps.
    pub retry_after: Option<Duration>,
}

fn no_retry(reason: Reason) -> OnWire {
    OnWire { reason, retry_after: None }
}

fn retry(reason: Reason, seconds: u64) -> OnWire {
    OnWire { reason, retry_after: Some(Duration::from_secs(seconds)) }
}

impl AgentError {
    fn on_wire(&self) -> OnWire {
        match self {
            Self::NotFound { .. } => no_retry(Reason::AgentNotFound),
            Self::Retired { .. } => no_retry(Reason::AgentRetired),
            Self::Exists { .. } => no_retry(Reason::AgentExists),
            Self::NotYourChild { .. } => no_retry(Reason::NotYourChild),
            Self::Cycle { .. } => no_retry(Reason::TopologyCycle),
            Self::StatusTooLong { .. } => no_retry(Reason::StatusTooLong),
            Self::Parked { retry_after, .. } => {
                OnWire { reason: Reason::AgentParked, retry_after: *retry_after }
            }
            Self::Stopped { .. } => no_retry(Reason::AgentStopped),
            Self::Purging { .. } => retry(Reason::AgentPurging, 1),
        }
    }
}

impl TurnError {
    fn on_wire(&self) -> OnWire {
        match self {
            Self::NotFound { .. } | Self::NoneOpen { .. } => no_retry(Reason::TurnNotFound),
            Self::Ended => no_retry(Reason::TurnEnded),
            Self::Open { .. } => no_retry(Reason::TurnOpen),
        }
    }
}

impl HarnessError {
    fn on_wire(&self) -> OnWire {
        match self {
            Self::CommandNotFound { .. } => no_retry(Reason::CommandNotFound),
            Self::Attached { .. } => no_retry(Reason::AlreadyAttached),
            Self::Offline { .. } => no_retry(Reason::HarnessOffline),
            Self::LoginOpen { .. } => no_retry(Reason::LoginOpen),
            Self::LoginNotFound { .. } => no_retry(Reason::LoginNotFound),
        }
    }
}

impl MailError {
    fn on_wire(&self) -> OnWire {
        match self {
            Self::MessageNotFound { .. } => no_retry(Reason::MessageNotFound),
            Self::DeliveryNotFound { .. } => no_retry(Reason::DeliveryNotFound),
            Self::WrongState { .. } => no_retry(Reason::WrongState),
            Self::RecipientNotAllowed { .. } => no_retry(Reason::RecipientNotAllowed),
            Self::InboxFull { .. } => retry(Reason::InboxFull, 10),
            Self::StorageFull { .. } => retry(Reason::StorageFull, 10),
            Self::BodyTooLarge { .. } => no_retry(Reason::BodyTooLarge),
            Self::RateLimited { retry_after, .. } => {
                OnWire { reason: Reason::RateLimited, retry_after: Some(*retry_after) }
            }
        }
    }
}

impl QuestionError {
    fn on_wire(&self) -> OnWire {
        match self {
            Self::NotFound { .. } => no_retry(Reason::QuestionNotFound),
            Self::NotTheTarget { .. } => no_retry(Reason::NotTheTarget),
            Self::NotTheAsker { .. } => no_retry(Reason::NotYours),
            Self::Closed { .. } => no_retry(Reason::QuestionClosed),
            Self::Limit { .. } => no_retry(Reason::QuestionLimit),
        }
    }
}

impl ReminderError {
    fn on_wire(&self) -> OnWire {
        match self {
            Self::NotFound { .. } => no_retry(Reason::ReminderNotFound),
            Self::Closed { .. } => no_retry(Reason::WrongState),
            Self::Limit { .. } => no_retry(Reason::ReminderLimit),
        }
    }
}

impl Refusal {
    /// Returns the stable reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.on_wire().reason
    }

    /// Returns how long to wait before a retry, if a retry helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.on_wire().retry_after
    }

    /// Returns the refusal as callers see it.
    #[must_use]
    pub fn on_wire(&self) -> OnWire {
        match self {
            Self::Agent(error) => error.on_wire(),
            Self::Turn(error) => error.on_wire(),
            Self::Harness(error) => error.on_wire(),
            Self::Mail(error) => error.on_wire(),
            Self::Question(error) => error.on_wire(),
            Self::Reminder(error) => error.on_wire(),
            Self::Field { .. } => no_retry(Reason::FieldInvalid),
            Self::LooseEndNotFound { kind: loose_end::Kind::Reminder, .. } => {
                no_retry(Reason::ReminderNotFound)
            }
            Self::LooseEndNotFound { .. } => no_retry(Reason::QuestionNotFound),
            Self::GroupMissing { .. } => no_retry(Reason::CapabilityMissing),
            Self::RequestIdReused { .. } => no_retry(Reason::RequestIdReused),
            Self::NotYours { .. } => no_retry(Reason::NotYours),
            Self::NotAnAgent => no_retry(Reason::NotAnAgent),
            Self::LeaseLost => no_retry(Reason::LeaseLost),
            Self::RequestTooLarge { .. } => no_retry(Reason::BodyTooLarge),
            Self::CallLimit { .. } => retry(Reason::CallLimit, 1),
            Self::Draining => retry(Reason::Draining, 1),
            Self::Backup(CopyError::UnderWay) => retry(Reason::StorageUnavailable, 10),
            Self::Backup(
                CopyError::NoRoom { .. }
                | CopyError::Unwritable { .. }
                | CopyError::Unreadable { .. }
                | CopyError::Stopped
                | CopyError::Store(_),
            ) => no_retry(Reason::StorageUnavailable),
            Self::Search(SearchError::Filling | SearchError::File { .. }) => {
                retry(Reason::StorageUnavailable, 1)
            }
            Self::Store(StoreError::Unavailable { .. } | StoreError::Closed) => {
                retry(Reason::StorageUnavailable, 1)
            }
            // A read that failed because of the disk. For a command with such an error the batch is
            // aborted, and the store reports that.
            Self::Store(StoreError::Sql(error)) if crate::store::is_fatal(error) => {
                retry(Reason::StorageUnavailable, 1)
            }
            Self::Store(StoreError::Sql(_) | StoreError::Panicked) => no_retry(Reason::Internal),
        }
    }
}
