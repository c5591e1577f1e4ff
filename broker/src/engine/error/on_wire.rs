//! Refusals as programs see them: the reason, and the wait before a retry.
//!
//! Invariant: [`Refusal::on_wire`] is the one map to the wire, and exhaustive for each noun. So a
//! new refusal cannot reach it without a stable reason and an advice on retries.

use std::time::Duration;

use hive_core::loose_end;
use hive_core::reason::Reason;

use super::{
    AgentError, HarnessError, MailError, QuestionError, Refusal, ReminderError, TurnError,
};
use crate::store::StoreError;
use crate::store::backup::CopyError;
use crate::store::search::SearchError;

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
            Self::OtherSocket { .. } | Self::NoSuchMethod { .. } => {
                no_retry(Reason::MethodNotServed)
            }
            Self::Compressed { .. } => no_retry(Reason::RequestCompressed),
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
