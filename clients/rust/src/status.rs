//! What a status says: the reason of the broker with its facts, or that the connection broke.
//!
//! Invariant: whether a request is repeated is decided by the reason alone, and without one by
//! whether its outcome is unknown. A reason that this crate does not know is never repeated.

use std::collections::HashMap;
use std::error::Error as _;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::{ErrorInfo, StatusExt as _};

use crate::ERROR_DOMAIN;

mod reasons {
    include!("gen/reasons.rs");
}

/// Returns the `ErrorInfo` of a refusal of the broker.
#[must_use]
pub fn info(status: &Status) -> Option<ErrorInfo> {
    status.get_details_error_info().filter(|info| info.domain == ERROR_DOMAIN)
}

/// Returns the metadata of a refusal; empty for a status without a reason.
#[must_use]
pub fn metadata(status: &Status) -> HashMap<String, String> {
    info(status).map(|info| info.metadata).unwrap_or_default()
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
    match info(status) {
        Some(info) => is_soon(&info.reason),
        None => is_of_connection(status) || status.code() == Code::DeadlineExceeded,
    }
}

/// Returns whether the identical request may succeed in a moment after a refusal for this reason.
pub(crate) fn is_soon(reason: &str) -> bool {
    known(reason).is_some_and(|(_, _, soon)| *soon)
}

/// Returns the gRPC code of a reason; UNKNOWN for one that this crate does not know.
pub(crate) fn code(reason: &str) -> Code {
    known(reason).map_or(Code::Unknown, |(_, code, _)| Code::from_i32(*code))
}

fn known(reason: &str) -> Option<&'static (&'static str, i32, bool)> {
    reasons::REASONS.iter().find(|(known, _, _)| *known == reason)
}

/// Returns whether the connection broke, so that it is unknown whether the request arrived. The
/// status is then this client's own: it has no reason of the broker. It has a cause, or one of the
/// codes of a broken connection; a connection that a broker closes when it ends is INTERNAL.
#[must_use]
pub fn is_of_connection(status: &Status) -> bool {
    let is_code = matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Cancelled);
    info(status).is_none() && (is_code || status.source().is_some())
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
