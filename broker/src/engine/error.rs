//! Refusals: every error of the engine, by noun. The sentence says what to do next.
//!
//! Invariant: a sentence names the value that is wrong. What programs read besides it is in
//! `on_wire`.

mod on_wire;

use std::time::Duration;

use hive_core::agent::{MANAGE_SUBTREE, QUERY_AGENT_STATE};
use hive_core::delivery::State;
use hive_core::id::{CommandId, MessageId, QuestionId, ReminderId, ScheduleId, TurnId};
use hive_core::message::OPERATOR;
use hive_core::{loose_end, question, reminder, schedule};

use crate::files::Shortage;
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
    #[error("`{agent}` is not your direct child; for agents further below you need the capability `{capability}`, and none decides about itself", capability = MANAGE_SUBTREE)]
    NotBelow { agent: String },
    #[error(
        "`{agent}` is not {asker} itself and not a direct child of {asker}; an agent asks for changes of those alone"
    )]
    NotTheAskers { agent: String, asker: String },
    #[error("there is an agent `{name}` already")]
    Exists { name: String },
    #[error(
        "{what} `{agent}` has changed: its etag is `{etag}`, not `{given}`; read it again, and repeat the change if it is still right"
    )]
    Changed { what: &'static str, agent: String, given: String, etag: String },
    #[error("agent `{agent}` starts no turns for now: {error}")]
    Parked { agent: String, error: String, retry_after: Option<Duration> },
    #[error(
        "agent `{agent}` is stopped; the operator starts it with `hivectl agent start {agent}`, or an agent above it does"
    )]
    Stopped { agent: String },
    #[error(
        "the directories of an earlier agent `{agent}` that was purged are still being deleted; try again"
    )]
    Purging { agent: String },
    #[error("`{parent}` is `{name}` itself or one of its descendants; that would close a circle")]
    Cycle { name: String, parent: String },
    #[error("agent `{agent}` was not created, because it would have no socket: {short}")]
    NoFiles { agent: String, short: Shortage },
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
    #[error(
        "the session is no longer the one of agent `{agent}`; what it held went back or was taken over"
    )]
    SessionLost { agent: String },
    #[error("a harness is attached to agent `{agent}`")]
    Attached { agent: String },
    #[error(
        "another launcher is attached; end that one first: the other `hivectl up`, or hive-launcher.service"
    )]
    LauncherAttached,
    #[error("the launcher of this host cannot be asked for logs: {problem}")]
    LauncherOffline { problem: String },
    #[error(
        "a harness serves agent `{agent}`, and the call has no token of the process of its open turn; nothing was sent or taken"
    )]
    Serving { agent: String },
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
    #[error(
        "the lease on message {message} to `{agent}` belongs to a stream, and lasts as long as the stream"
    )]
    LeaseOfStream { agent: String, message: MessageId },
    #[error("a newer stream `{stream}` took the leases of this one over")]
    StreamReplaced { stream: String },
    #[error(
        "the stream `{stream}` got no answer to a ping in time; open it again: its leases live on for the grace"
    )]
    StreamSilent { stream: String },
    #[error("the inbox of `{agent}` is full: {depth} unsettled deliveries, {max} are allowed")]
    InboxFull { agent: String, depth: u32, max: u32 },
    #[error(
        "the body has {bytes} bytes; at most {max} are allowed. Put the rest into a file and send its path"
    )]
    BodyTooLarge { field: &'static str, bytes: usize, max: u32 },
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
    #[error("question {id} has its outcome already: {state}{}", by(.closed_by))]
    Closed { id: QuestionId, state: question::State, closed_by: String },
    #[error(
        "question {id} would change something else than what the digest stands for; look at it again, and decide about what it shows now"
    )]
    DiffChanged { id: QuestionId },
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

/// A refusal about a schedule.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the sentences say it")]
pub enum ScheduleError {
    #[error("there is no schedule {id} that you may see")]
    NotFound { id: ScheduleId },
    #[error("schedule {id} is {state}, which does not allow that")]
    WrongState { id: ScheduleId, state: schedule::State },
    #[error("you have {} that have not ended; at most {max} are allowed. End one first", counted(*open, "schedule"))]
    Limit { open: u32, max: u32 },
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
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    #[error("{field}: {problem}")]
    Field { field: &'static str, problem: String },
    #[error("you have no loose end of kind {kind} with id {id}")]
    LooseEndNotFound { kind: loose_end::Kind, id: u64 },
    #[error(
        "your policy does not have the tool group `{group}`; the operator can add it with `hivectl agent set-policy`"
    )]
    GroupMissing { group: &'static str },
    #[error(
        "your policy does not have the capability `{capability}`; the operator can add it with `hivectl agent set-policy`"
    )]
    CapabilityMissing { capability: &'static str },
    #[error(
        "the request id `{id}` was used before for another request; make a new id for new content"
    )]
    RequestIdReused { id: String },
    #[error("only another caller may use {what}")]
    NotYours { what: &'static str },
    #[error(
        "this call is about the agent that makes it, and this is the operator's socket; connect to that agent's, `agents/NAME/hive.sock`"
    )]
    NotAnAgent,
    #[error("the lease is no longer yours; what it held went back or was taken over")]
    LeaseLost,
    #[error(
        "the request has {bytes} bytes, and {part} may have at most {max}. Put what is long into a file and send its path"
    )]
    RequestTooLarge { bytes: u32, part: &'static str, field: Option<&'static str>, max: usize },
    #[error(
        "{max} calls are under way on this socket, as many as may be; read their answers or end them first"
    )]
    CallLimit { max: usize },
    #[error("{}", other_socket(.method, .other))]
    OtherSocket { method: String, other: &'static str },
    #[error("this broker has no method `{method}`{}; `hive.v1.ServerInfoService/GetServerInfo` returns its version", nearest_text(.nearest.as_slice()))]
    NoSuchMethod { method: String, nearest: Option<String> },
    #[error(
        "the request is compressed (`grpc-encoding: {encoding}`), which no socket of the broker accepts; send it without compression"
    )]
    Compressed { encoding: String },
    #[error("{sentence}")]
    PeerNotTrusted { sentence: String },
    #[error("{sentence}")]
    Starting { sentence: String, retry_after: Duration },
    #[error("the broker is shutting down; try again when it is back")]
    Draining,
    #[error("no backup was made: {0}")]
    Backup(#[source] CopyError),
    #[error("the finished copy cannot be read: {0}")]
    BackupUnread(#[source] std::io::Error),
    #[error("the broker failed: {0}")]
    Fault(&'static str),
    #[error("search does not work now: {0}")]
    Search(#[from] SearchError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Returns who closed a question, as the end of a sentence.
fn by(closed_by: &str) -> String {
    let the = if closed_by == OPERATOR { "the " } else { "" };
    if closed_by.is_empty() { String::new() } else { format!(" by {the}{closed_by}") }
}

/// Returns a count with its noun, in the singular or the plural.
fn counted(count: u32, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// Returns the sentence about a method that only the socket of another owner serves: `operator` or
/// `agent`.
fn other_socket(method: &str, other: &str) -> String {
    match other {
        "operator" => format!(
            "`{method}` is served on the operator's socket, `hived.sock`, and not on an agent's"
        ),
        _ => format!(
            "`{method}` is served on an agent's socket, `agents/NAME/hive.sock`, and not on the operator's"
        ),
    }
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
