//! Errors on the wire: a `tonic::Status` with a stable reason, made and read only here.
//!
//! Invariant: what programs read of a refusal is declared in `proto/hive/v1/reason.proto`: the gRPC
//! code, whether a retry helps, and the keys of the metadata. A debug build that makes a refusal
//! with other keys panics.

use std::collections::HashMap;
use std::error::Error as _;
use std::time::Duration;

use hive_core::reason::{Reason, Retry};
use hive_core::refused::{FIELD, Refused};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::convert::time::{duration, span};
use crate::{ERROR_DOMAIN, v1};

/// Returns the gRPC code of a reason.
#[must_use]
pub fn code(reason: Reason) -> Code {
    Code::from_i32(reason.code())
}

/// Returns the status of a refusal. Its metadata has the keys that its reason declares.
#[must_use]
pub fn refuse(refused: Refused, sentence: impl Into<String>) -> Status {
    debug_assert_eq!(refused.undeclared(), None, "see proto/hive/v1/reason.proto");
    unchecked(refused, sentence.into())
}

fn unchecked(refused: Refused, sentence: String) -> Status {
    let Refused { reason, metadata, retry_after } = refused;
    let mut details = ErrorDetails::new();
    if let Some(path) = metadata.get(FIELD) {
        details.add_bad_request_violation(path, sentence.as_str());
    }
    let metadata: HashMap<String, String> =
        metadata.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    details.set_error_info(reason.as_str(), ERROR_DOMAIN, metadata);
    if let Some(delay) = retry_after {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(code(reason), sentence, details)
}

/// Returns a refusal without metadata, as a program in front of the broker or a test makes it.
#[must_use]
pub fn refusal(
    reason: Reason,
    sentence: impl Into<String>,
    retry_after: Option<Duration>,
) -> Status {
    unchecked(Refused::new(reason).after(retry_after), sentence.into())
}

/// Returns a refusal of one field of a request.
#[must_use]
pub fn bad_field(path: &str, sentence: impl Into<String>) -> Status {
    let sentence = sentence.into();
    let mut details = ErrorDetails::new();
    let metadata = HashMap::from([(FIELD.to_owned(), path.to_owned())]);
    details.set_error_info(Reason::FieldInvalid.as_str(), ERROR_DOMAIN, metadata);
    details.add_bad_request_violation(path, sentence.as_str());
    Status::with_error_details(code(Reason::FieldInvalid), format!("{path}: {sentence}"), details)
}

/// Returns a refusal of one part of a call, with the facts of a status.
#[must_use]
pub fn in_part(status: &Status) -> v1::Refusal {
    let reason = reason(status).unwrap_or(Reason::Internal);
    v1::Refusal {
        reason: v1::Reason::from(reason).into(),
        message: status.message().to_owned(),
        metadata: metadata(status),
        retry_delay: retry_after(status).map(duration),
    }
}

/// Returns the status of a refusal of one part of a call.
#[must_use]
pub fn of_part(part: &v1::Refusal) -> Status {
    let reason = Reason::try_from(part.reason()).unwrap_or(Reason::Internal);
    let mut details = ErrorDetails::new();
    details.set_error_info(reason.as_str(), ERROR_DOMAIN, part.metadata.clone());
    if let Some(delay) = part.retry_delay.and_then(|delay| span(delay, "retry_delay").ok()) {
        details.set_retry_info(Some(delay));
    }
    Status::with_error_details(code(reason), part.message.as_str(), details)
}

/// Returns the reason in a status, if it has one of Hive's.
#[must_use]
pub fn reason(status: &Status) -> Option<Reason> {
    let info = status.get_details_error_info()?;
    if info.domain == ERROR_DOMAIN { Reason::parse(&info.reason) } else { None }
}

/// Returns the metadata of a refusal; empty for a status without a reason.
#[must_use]
pub fn metadata(status: &Status) -> HashMap<String, String> {
    let info = status.get_details_error_info().filter(|info| info.domain == ERROR_DOMAIN);
    info.map(|info| info.metadata).unwrap_or_default()
}

/// Returns the delay before a retry, if the status has one.
#[must_use]
pub fn retry_after(status: &Status) -> Option<Duration> {
    status.get_details_retry_info()?.retry_delay
}

/// Returns whether a client repeats the identical request by itself: the broker is away, draining
/// or cannot write, or the caller is too busy.
#[must_use]
pub fn is_transient(status: &Status) -> bool {
    match reason(status) {
        Some(reason) => reason.retry() == Retry::Soon,
        None => is_of_connection(status) || status.code() == Code::DeadlineExceeded,
    }
}

/// Returns whether the connection broke, so that it is unknown whether the request arrived. The
/// status is then this client's own: it has no reason of the broker. It has a cause, or one of the
/// codes of a broken connection; a connection that a broker closes when it ends is INTERNAL.
#[must_use]
pub fn is_of_connection(status: &Status) -> bool {
    let is_code = matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled);
    reason(status).is_none() && (is_code || status.source().is_some())
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_status_with_a_cause_is_of_the_connection_and_one_of_a_broker_is_not() {
        let mut ended = Status::internal("the connection was closed");
        assert!(!is_of_connection(&ended) && !is_transient(&ended));
        ended.set_source(Arc::new(io::Error::from(io::ErrorKind::ConnectionReset)));
        assert!(is_of_connection(&ended) && is_transient(&ended));
        let late = Status::deadline_exceeded("late");
        assert!(!is_of_connection(&late) && is_transient(&late));
    }
}
