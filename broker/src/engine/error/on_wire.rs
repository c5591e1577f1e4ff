//! Refusals as programs see them: the reason, its metadata, and the wait before a retry.
//!
//! Invariant: [`Refusal::on_wire`] is the one map to the wire, and exhaustive for each noun. So a
//! new refusal cannot reach it without a stable reason and an advice on retries. Its metadata has
//! the keys that `proto/hive/v1/reason.proto` declares (a test makes one of each).

use std::time::Duration;

use hive_core::agent::{MANAGE_SUBTREE, QUERY_AGENT_STATE};
use hive_core::loose_end;
use hive_core::reason::Reason;
use hive_core::refused::Refused;

use super::{
    AgentError, HarnessError, MailError, QuestionError, Refusal, ReminderError, ScheduleError,
    TurnError,
};
use crate::store::StoreError;
use crate::store::backup::CopyError;
use crate::store::search::SearchError;

fn of(reason: Reason) -> Refused {
    Refused::new(reason)
}

/// Returns a state as the contract names it, without the prefix of its enum.
fn word(state: impl ToString) -> String {
    state.to_string().to_uppercase()
}

fn seconds(seconds: u64) -> Option<Duration> {
    Some(Duration::from_secs(seconds))
}

impl AgentError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::NotFound { name, nearest } => of(Reason::AgentNotFound)
                .with("agent", name)
                .with_some("nearest", (!nearest.is_empty()).then(|| nearest.join(","))),
            Self::Retired { name } => of(Reason::AgentRetired).with("agent", name),
            Self::Exists { name } => of(Reason::AgentExists).with("agent", name),
            Self::Changed { agent, etag, .. } => {
                of(Reason::EtagMismatch).with("agent", agent).with("etag", etag)
            }
            Self::NotYourChild { agent } => {
                of(Reason::NotYourChild).with("agent", agent).with("capability", QUERY_AGENT_STATE)
            }
            Self::NotTheAskers { agent, asker } => {
                of(Reason::NotYours).with("agent", agent).with("asker", asker)
            }
            Self::NotBelow { agent } => {
                of(Reason::NotYourChild).with("agent", agent).with("capability", MANAGE_SUBTREE)
            }
            Self::Cycle { name, parent } => {
                of(Reason::TopologyCycle).with("agent", name).with("parent", parent)
            }
            Self::NoFiles { agent, short } => of(Reason::SocketLimit)
                .with("agent", agent)
                .with("count", short.needed)
                .with("limit", short.limit),
            Self::StatusTooLong { chars, max } => {
                of(Reason::StatusTooLong).in_field("text").with("limit", max).with("count", chars)
            }
            Self::Parked { agent, retry_after, .. } => {
                of(Reason::AgentParked).with("agent", agent).after(*retry_after)
            }
            Self::Stopped { agent } => of(Reason::AgentStopped).with("agent", agent),
            Self::Purging { agent } => {
                of(Reason::AgentPurging).with("agent", agent).after(seconds(1))
            }
        }
    }
}

impl TurnError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::NotFound { id } => of(Reason::TurnNotFound).with("turn_id", id),
            Self::NoneOpen { agent } => of(Reason::TurnNotFound).with("agent", agent),
            Self::Ended => of(Reason::TurnEnded),
            Self::Open { id } => of(Reason::TurnOpen).with("turn_id", id),
        }
    }
}

impl HarnessError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::CommandNotFound { id } => of(Reason::CommandNotFound).with("command_id", id),
            Self::SessionLost { agent } => of(Reason::SessionLost).with("agent", agent),
            Self::Attached { agent } => of(Reason::AlreadyAttached).with("agent", agent),
            Self::LauncherAttached => of(Reason::LauncherAttached),
            Self::LauncherOffline { .. } => of(Reason::LauncherOffline),
            Self::Serving { agent } => of(Reason::HarnessAttached).with("agent", agent),
            Self::Offline { agent } => of(Reason::HarnessOffline).with("agent", agent),
            Self::LoginOpen { agent } => of(Reason::LoginOpen).with("agent", agent),
            Self::LoginNotFound { id } => of(Reason::LoginNotFound).with("login_id", id),
        }
    }
}

impl MailError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::MessageNotFound { id } => of(Reason::MessageNotFound).with("message_id", id),
            Self::DeliveryNotFound { agent, message } => {
                of(Reason::DeliveryNotFound).with("agent", agent).with("message_id", message)
            }
            Self::WrongState { agent, message, state } => of(Reason::WrongState)
                .with("agent", agent)
                .with("message_id", message)
                .with("state", word(state)),
            Self::StreamReplaced { stream } => of(Reason::StreamReplaced).with("stream_id", stream),
            Self::StreamSilent { stream } => of(Reason::StreamSilent).with("stream_id", stream),
            Self::LeaseOfStream { agent, message } => of(Reason::WrongState)
                .with("agent", agent)
                .with("message_id", message)
                .with("state", word(hive_core::delivery::State::Leased)),
            Self::RecipientNotAllowed { recipient, allowed } => of(Reason::RecipientNotAllowed)
                .with("recipient", recipient)
                .with("allowed", allowed.join(",")),
            Self::InboxFull { agent, depth, max } => of(Reason::InboxFull)
                .with("agent", agent)
                .with("count", depth)
                .with("limit", max)
                .after(seconds(10)),
            Self::StorageFull { bytes, max } => {
                of(Reason::StorageFull).with("count", bytes).with("limit", max).after(seconds(10))
            }
            Self::BodyTooLarge { field, bytes, max } => {
                of(Reason::BodyTooLarge).in_field(field).with("count", bytes).with("limit", max)
            }
            Self::RateLimited { per_minute, retry_after } => {
                of(Reason::RateLimited).with("limit", per_minute).after(Some(*retry_after))
            }
        }
    }
}

impl QuestionError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::NotFound { id } => of(Reason::QuestionNotFound).with("question_id", id),
            Self::NotTheTarget { id, target } => {
                of(Reason::NotTheTarget).with("question_id", id).with("target", target)
            }
            Self::NotTheAsker { id, asker } => {
                of(Reason::NotYours).with("question_id", id).with("asker", asker)
            }
            Self::DiffChanged { id } => of(Reason::DiffChanged).with("question_id", id),
            Self::Closed { id, state, closed_by } => of(Reason::QuestionClosed)
                .with("question_id", id)
                .with("state", word(state))
                .with_some("closed_by", (!closed_by.is_empty()).then_some(closed_by)),
            Self::Limit { open, max } => {
                of(Reason::QuestionLimit).with("count", open).with("limit", max)
            }
        }
    }
}

impl ScheduleError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::NotFound { id } => of(Reason::ScheduleNotFound).with("schedule_id", id),
            Self::WrongState { id, state } => {
                of(Reason::WrongState).with("schedule_id", id).with("state", word(state))
            }
            Self::Limit { open, max } => {
                of(Reason::ScheduleLimit).with("count", open).with("limit", max)
            }
        }
    }
}

impl ReminderError {
    fn on_wire(&self) -> Refused {
        match self {
            Self::NotFound { id } => of(Reason::ReminderNotFound).with("reminder_id", id),
            Self::Closed { id, state } => {
                of(Reason::WrongState).with("reminder_id", id).with("state", word(state))
            }
            Self::Limit { pending, max } => {
                of(Reason::ReminderLimit).with("count", pending).with("limit", max)
            }
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

    /// Returns the refusal as programs see it.
    #[must_use]
    pub fn on_wire(&self) -> Refused {
        match self {
            Self::Agent(error) => error.on_wire(),
            Self::Turn(error) => error.on_wire(),
            Self::Harness(error) => error.on_wire(),
            Self::Mail(error) => error.on_wire(),
            Self::Question(error) => error.on_wire(),
            Self::Reminder(error) => error.on_wire(),
            Self::Schedule(error) => error.on_wire(),
            Self::Field { field, .. } => of(Reason::FieldInvalid).in_field(field),
            Self::LooseEndNotFound { kind: loose_end::Kind::Reminder, id } => {
                of(Reason::ReminderNotFound).with("reminder_id", id)
            }
            Self::LooseEndNotFound { id, .. } => {
                of(Reason::QuestionNotFound).with("question_id", id)
            }
            Self::GroupMissing { group } => of(Reason::CapabilityMissing).with("tool_group", group),
            Self::CapabilityMissing { capability } => {
                of(Reason::CapabilityMissing).with("capability", capability)
            }
            Self::RequestIdReused { id } => of(Reason::RequestIdReused).with("request_id", id),
            Self::NotYours { .. } => of(Reason::NotYours),
            Self::NotAnAgent => of(Reason::NotAnAgent),
            Self::PeerNotTrusted { .. } => of(Reason::PeerNotTrusted),
            Self::LeaseLost => of(Reason::LeaseLost),
            Self::RequestTooLarge { bytes, field, max, .. } => {
                let refused = of(Reason::BodyTooLarge).with("count", bytes).with("limit", max);
                field.iter().fold(refused, Refused::in_field)
            }
            Self::CallLimit { max } => of(Reason::CallLimit).with("limit", max).after(seconds(1)),
            Self::OtherSocket { method, other } => {
                of(Reason::MethodNotServed).with("method", method).with("socket", other)
            }
            Self::NoSuchMethod { method, nearest } => of(Reason::MethodNotServed)
                .with("method", method)
                .with_some("nearest", nearest.as_ref()),
            Self::Compressed { encoding } => {
                of(Reason::RequestCompressed).with("encoding", encoding)
            }
            Self::Starting { retry_after, .. } => of(Reason::Starting).after(Some(*retry_after)),
            Self::Draining => of(Reason::Draining).after(seconds(1)),
            Self::Backup(CopyError::UnderWay) => of(Reason::StorageUnavailable).after(seconds(10)),
            Self::Backup(
                CopyError::NoRoom { .. }
                | CopyError::Unwritable { .. }
                | CopyError::Unreadable { .. }
                | CopyError::Stopped
                | CopyError::Store(_),
            )
            | Self::BackupUnread(_) => of(Reason::StorageUnavailable),
            Self::Search(SearchError::Filling | SearchError::File { .. })
            | Self::Store(
                StoreError::Unavailable { .. } | StoreError::Recovered | StoreError::Closed,
            ) => of(Reason::StorageUnavailable).after(seconds(1)),
            // A read that failed because of the disk. For a command with such an error the batch is
            // aborted, and the store reports that.
            Self::Store(StoreError::Sql(error)) if crate::store::is_fatal(error) => {
                of(Reason::StorageUnavailable).after(seconds(1))
            }
            Self::Store(StoreError::Sql(_) | StoreError::Panicked) | Self::Fault(_) => {
                of(Reason::Internal)
            }
        }
    }
}
