//! Errors on the wire: a `tonic::Status` with a stable reason, made and read only here.
//!
//! Invariant: the mapping from reason to gRPC code is total and exists only here.

use std::time::Duration;

use hive_core::reason::Reason;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::ERROR_DOMAIN;

/// Returns the gRPC code of a reason.
#[must_use]
pub fn code(reason: Reason) -> Code {
    match reason {
        Reason::FieldInvalid => Code::InvalidArgument,
        Reason::AgentNotFound
        | Reason::AgentRetired
        | Reason::MessageNotFound
        | Reason::QuestionNotFound
        | Reason::ReminderNotFound
        | Reason::DeliveryNotFound
        | Reason::TurnNotFound
        | Reason::LoginNotFound
        | Reason::CommandNotFound => Code::NotFound,
        Reason::RequestIdReused | Reason::AgentExists => Code::AlreadyExists,
        Reason::RecipientNotAllowed
        | Reason::NotYours
        | Reason::NotTheTarget
        | Reason::NotYourChild
        | Reason::NotAnAgent
        | Reason::CapabilityMissing
        | Reason::PeerNotTrusted => Code::PermissionDenied,
        Reason::LeaseLost
        | Reason::TurnEnded
        | Reason::TurnOpen
        | Reason::AlreadyAttached
        | Reason::AgentParked
        | Reason::AgentStopped
        | Reason::AgentPurging
        | Reason::HarnessOffline
        | Reason::LoginOpen
        | Reason::WrongState
        | Reason::QuestionClosed
        | Reason::TopologyCycle
        | Reason::StatusTooLong => Code::FailedPrecondition,
        Reason::InboxFull
        | Reason::BodyTooLarge
        | Reason::RateLimited
        | Reason::StorageFull
        | Reason::QuestionLimit
        | Reason::ReminderLimit
        | Reason::CallLimit => Code::ResourceExhausted,
        Reason::Starting | Reason::Draining | Reason::StorageUnavailable => Code::Unavailable,
        Reason::Internal => Code::Internal,
        Reason::MethodNotServed | Reason::RequestCompressed => Code::Unimplemented,
    }
}

/// Returns a refusal: reason, sentence and, if waiting helps, the delay.
#[must_use]
pub fn refusal(
    reason: Reason,
    sentence: impl Into<String>,
    retry_after: Option<Duration>,
) -> Status {
    let mut details = ErrorDetails::new();
    details.set_error_info(reason.as_str(), ERROR_DOMAIN, std::collections::HashMap::new());
    if let Some(delay) = retry_after {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(code(reason), sentence, details)
}

/// Returns a refusal of one field of a request.
#[must_use]
pub fn bad_field(path: &str, sentence: impl Into<String>) -> Status {
    let sentence = sentence.into();
    let mut details = ErrorDetails::new();
    details.set_error_info(
        Reason::FieldInvalid.as_str(),
        ERROR_DOMAIN,
        std::collections::HashMap::new(),
    );
    details.add_bad_request_violation(path, sentence.as_str());
    Status::with_error_details(code(Reason::FieldInvalid), format!("{path}: {sentence}"), details)
}

/// Returns the reason in a status, if it has one of Hive's.
#[must_use]
pub fn reason(status: &Status) -> Option<Reason> {
    let info = status.get_details_error_info()?;
    if info.domain == ERROR_DOMAIN { Reason::parse(&info.reason) } else { None }
}

/// Returns the delay before a retry, if the status has one.
#[must_use]
pub fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}

/// Returns whether the unchanged request may succeed later: the broker is away, draining or cannot
/// write, or the caller is too busy.
#[must_use]
pub fn is_transient(status: &Status) -> bool {
    match reason(status) {
        Some(
            Reason::Starting | Reason::Draining | Reason::StorageUnavailable | Reason::CallLimit,
        ) => true,
        Some(_) => false,
        // A status without a reason is from the transport, not from the broker.
        None => matches!(
            status.code(),
            Code::Unavailable | Code::Unknown | Code::Cancelled | Code::DeadlineExceeded
        ),
    }
}
