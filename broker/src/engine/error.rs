//! Refusals: every error of the engine. Each maps to one stable reason; the sentence says what to
//! do next.
//!
//! Invariant: [`Refusal::reason`] is exhaustive, so a new refusal cannot reach the wire without a
//! reason.

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

/// The reason for which the engine refused a call.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum Refusal {
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: String },
    #[error("there is no agent `{name}`{}", nearest_text(.nearest))]
    AgentNotFound { name: String, nearest: Vec<String> },
    #[error("agent `{name}` was retired; its mail is kept, but it takes no more")]
    AgentRetired { name: String },
    #[error("there is no message {id} that you sent or received")]
    MessageNotFound { id: MessageId },
    #[error("there is no delivery of message {message} to `{agent}`")]
    DeliveryNotFound { agent: String, message: MessageId },
    #[error("there is no question {id} that you asked or were asked")]
    QuestionNotFound { id: QuestionId },
    #[error("there is no reminder {id} of yours")]
    ReminderNotFound { id: ReminderId },
    #[error("you have no loose end of kind {kind} with id {id}")]
    LooseEndNotFound { kind: loose_end::Kind, id: u64 },
    #[error("question {id} was put to `{target}`; only `{target}` and the operator may answer it")]
    NotTheTarget { id: QuestionId, target: String },
    #[error(
        "question {id} was asked by `{asker}`; only `{asker}` and the operator may withdraw it"
    )]
    NotTheAsker { id: QuestionId, asker: String },
    #[error("question {id} has its outcome already: {outcome}")]
    QuestionClosed { id: QuestionId, outcome: String },
    #[error("reminder {id} is {state} already")]
    ReminderClosed { id: ReminderId, state: reminder::State },
    #[error("`{agent}` is not your direct child; for others you need the capability `{capability}`", capability = QUERY_AGENT_STATE)]
    NotYourChild { agent: String },
    #[error(
        "your policy does not have the tool group `{group}`; the operator can add it with `hivectl agent set-policy`"
    )]
    GroupMissing { group: &'static str },
    #[error("you have {}; at most {max} may be open. Wait for an answer, or withdraw one", counted(*open, "open question"))]
    QuestionLimit { open: u32, max: u32 },
    #[error("you have {}; at most {max} may be pending. Withdraw one first", counted(*pending, "pending reminder"))]
    ReminderLimit { pending: u32, max: u32 },
    #[error("there is no turn {id} that you may see")]
    TurnNotFound { id: TurnId },
    #[error("agent `{agent}` has no open turn")]
    NoOpenTurn { agent: String },
    #[error("there is no command {id} for this agent")]
    CommandNotFound { id: CommandId },
    #[error(
        "the request id `{id}` was used before for another request; make a new id for new content"
    )]
    RequestIdReused { id: String },
    #[error("there is an agent `{name}` already")]
    AgentExists { name: String },
    #[error("your policy does not allow you to send to `{recipient}`; allowed are: {}", .allowed.join(", "))]
    RecipientNotAllowed { recipient: String, allowed: Vec<String> },
    #[error("{what} belongs to another caller")]
    NotYours { what: &'static str },
    #[error("this call is for agents; the operator's mail is not leased")]
    NotAnAgent,
    #[error("the lease or session is no longer yours; what it held went back or was taken over")]
    LeaseLost,
    #[error("this process has no open turn; nothing was sent or taken")]
    TurnEnded,
    #[error("turn {id} of this session is still open; end it first")]
    TurnOpen { id: TurnId },
    #[error("a harness is attached to agent `{agent}`")]
    AlreadyAttached { agent: String },
    #[error("agent `{agent}` has no harness that answers; start it, or look at what it says")]
    HarnessOffline { agent: String },
    #[error("a login dialogue with agent `{agent}` is open already; end that one first")]
    LoginOpen { agent: String },
    #[error(
        "there is no login dialogue {id} that waits for you; it is over, or it is another agent's"
    )]
    LoginNotFound { id: u64 },
    #[error("agent `{agent}` starts no turns for now: {error}")]
    AgentParked { agent: String, error: String, retry_after: Option<Duration> },
    #[error(
        "agent `{agent}` is stopped; the operator starts it with `hivectl agent start {agent}`"
    )]
    AgentStopped { agent: String },
    #[error(
        "the directories of an earlier agent `{agent}` that was purged are still being deleted; try again"
    )]
    AgentPurging { agent: String },
    #[error("the delivery of message {message} to `{agent}` is {state}, which does not allow that")]
    WrongState { agent: String, message: MessageId, state: State },
    #[error("`{parent}` is `{name}` itself or one of its descendants; that would close a circle")]
    TopologyCycle { name: String, parent: String },
    #[error("the status text has {chars} characters; at most {max} are allowed, on one line")]
    StatusTooLong { chars: usize, max: usize },
    #[error("the inbox of `{agent}` is full: {depth} unsettled deliveries, {max} are allowed")]
    InboxFull { agent: String, depth: u32, max: u32 },
    #[error(
        "the body has {bytes} bytes; at most {max} are allowed. Put the rest into a file and send its path"
    )]
    BodyTooLarge { bytes: usize, max: u32 },
    #[error(
        "the request has {bytes} bytes, and {part} may have at most {max}. Put what is long into a file and send its path"
    )]
    RequestTooLarge { bytes: u32, part: &'static str, max: usize },
    #[error("you send too fast: at most {} a minute", counted(*per_minute, "message"))]
    RateLimited { per_minute: u32, retry_after: Duration },
    #[error("{bytes} bytes of your messages are waiting unread; at most {max} are allowed")]
    StorageFull { bytes: u64, max: u64 },
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

impl Refusal {
    /// Returns the stable reason.
    #[must_use]
    pub fn reason(&self) -> Reason {
        match self {
            Self::Field { .. } => Reason::FieldInvalid,
            Self::AgentNotFound { .. } => Reason::AgentNotFound,
            Self::AgentRetired { .. } => Reason::AgentRetired,
            Self::MessageNotFound { .. } => Reason::MessageNotFound,
            Self::DeliveryNotFound { .. } => Reason::DeliveryNotFound,
            Self::QuestionNotFound { .. } => Reason::QuestionNotFound,
            Self::ReminderNotFound { .. } => Reason::ReminderNotFound,
            Self::LooseEndNotFound { kind: loose_end::Kind::Reminder, .. } => {
                Reason::ReminderNotFound
            }
            Self::LooseEndNotFound { .. } => Reason::QuestionNotFound,
            Self::NotTheTarget { .. } => Reason::NotTheTarget,
            Self::NotTheAsker { .. } => Reason::NotYours,
            Self::QuestionClosed { .. } => Reason::QuestionClosed,
            Self::ReminderClosed { .. } => Reason::WrongState,
            Self::NotYourChild { .. } => Reason::NotYourChild,
            Self::GroupMissing { .. } => Reason::CapabilityMissing,
            Self::QuestionLimit { .. } => Reason::QuestionLimit,
            Self::ReminderLimit { .. } => Reason::ReminderLimit,
            Self::TurnNotFound { .. } | Self::NoOpenTurn { .. } => Reason::TurnNotFound,
            Self::CommandNotFound { .. } => Reason::CommandNotFound,
            Self::RequestIdReused { .. } => Reason::RequestIdReused,
            Self::AgentExists { .. } => Reason::AgentExists,
            Self::RecipientNotAllowed { .. } => Reason::RecipientNotAllowed,
            Self::NotYours { .. } => Reason::NotYours,
            Self::NotAnAgent => Reason::NotAnAgent,
            Self::LeaseLost => Reason::LeaseLost,
            Self::TurnEnded => Reason::TurnEnded,
            Self::TurnOpen { .. } => Reason::TurnOpen,
            Self::AlreadyAttached { .. } => Reason::AlreadyAttached,
            Self::HarnessOffline { .. } => Reason::HarnessOffline,
            Self::LoginOpen { .. } => Reason::LoginOpen,
            Self::LoginNotFound { .. } => Reason::LoginNotFound,
            Self::AgentParked { .. } => Reason::AgentParked,
            Self::AgentStopped { .. } => Reason::AgentStopped,
            Self::AgentPurging { .. } => Reason::AgentPurging,
            Self::WrongState { .. } => Reason::WrongState,
            Self::TopologyCycle { .. } => Reason::TopologyCycle,
            Self::StatusTooLong { .. } => Reason::StatusTooLong,
            Self::InboxFull { .. } => Reason::InboxFull,
            Self::BodyTooLarge { .. } | Self::RequestTooLarge { .. } => Reason::BodyTooLarge,
            Self::RateLimited { .. } => Reason::RateLimited,
            Self::StorageFull { .. } => Reason::StorageFull,
            Self::CallLimit { .. } => Reason::CallLimit,
            Self::Draining => Reason::Draining,
            Self::Backup(_) => Reason::StorageUnavailable,
            Self::Search(SearchError::Filling | SearchError::File { .. }) => {
                Reason::StorageUnavailable
            }
            Self::Store(StoreError::Unavailable { .. } | StoreError::Closed) => {
                Reason::StorageUnavailable
            }
            // A read that failed because of the disk. For a command with such an error the batch is
            // aborted, and the store reports that.
            Self::Store(StoreError::Sql(error)) if crate::store::is_fatal(error) => {
                Reason::StorageUnavailable
            }
            Self::Store(StoreError::Sql(_) | StoreError::Panicked) => Reason::Internal,
        }
    }

    /// Returns how long to wait before a retry, if a retry helps.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        if let Self::RateLimited { retry_after, .. } = self {
            return Some(*retry_after);
        }
        if let Self::AgentParked { retry_after, .. } = self {
            return *retry_after;
        }
        if let Self::AgentPurging { .. } = self {
            return Some(Duration::from_secs(1));
        }
        if let Self::Backup(error) = self {
            return matches!(error, CopyError::UnderWay).then_some(Duration::from_secs(10));
        }
        if matches!(self, Self::InboxFull { .. } | Self::StorageFull { .. }) {
            return Some(Duration::from_secs(10));
        }
        let away = matches!(
            self.reason(),
            Reason::CallLimit | Reason::Draining | Reason::StorageUnavailable
        );
        away.then_some(Duration::from_secs(1))
    }
}
