//! Errors on the wire: a `tonic::Status` with a stable reason, made only here. The client reads it.
//!
//! Invariant: what programs read of a refusal is declared in `proto/hive/v1/reason.proto`: the gRPC
//! code, whether a retry helps, and the keys of the metadata. A debug build that makes a refusal
//! with other keys panics.

use std::collections::HashMap;
use std::time::Duration;

pub use hive_client::status::{info, is_of_connection, is_transient, metadata, retry_after};
use hive_core::reason::Reason;
use hive_core::refused::{FIELD, Refused};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::convert::time::{duration, span};
use crate::convert::{FromWire as _, IntoWire as _};
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
        reason: reason.into_wire().into(),
        message: status.message().to_owned(),
        metadata: metadata(status),
        retry_delay: retry_after(status).map(duration),
    }
}

/// Returns the status of a refusal of one part of a call.
#[must_use]
pub fn of_part(part: &v1::Refusal) -> Status {
    let reason = Reason::from_wire(part.reason()).unwrap_or(Reason::Internal);
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
    info(status).and_then(|info| Reason::parse(&info.reason))
}
