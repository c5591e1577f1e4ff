//! Exit codes: how a script learns what happened.
//!
//! Invariant: the map from the broker's reasons is total; a new reason breaks this build until it
//! has a code.

use std::io;
use std::process::ExitCode;

use hive_core::reason::Reason;
use tonic::{Code, Status};

/// Exit codes of `hivectl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Success.
    Ok = 0,
    /// A failure without a code of its own.
    Failure = 1,
    /// The command line, or a value on it, is not valid.
    Usage = 2,
    /// The item that the command line names does not exist.
    NotFound = 3,
    /// The caller has no permission.
    Denied = 4,
    /// The change conflicts with the present state.
    Conflict = 5,
    /// The broker did not answer in time.
    TimedOut = 6,
    /// No broker answers, or it is shutting down.
    Unreachable = 7,
    /// The command worked, and found something wrong.
    Findings = 8,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Returns the exit code for a refusal of the broker.
#[must_use]
pub fn from_reason(reason: Reason) -> Exit {
    // A broker answers; its database does not.
    if reason == Reason::StorageUnavailable {
        return Exit::Failure;
    }
    from_code(hive_proto::status::code(reason))
}

/// Returns the exit code for an error of a file.
pub(crate) fn of_io(error: &io::Error) -> Exit {
    if error.kind() == io::ErrorKind::NotFound {
        Exit::NotFound
    } else if error.kind() == io::ErrorKind::PermissionDenied {
        Exit::Denied
    } else {
        Exit::Failure
    }
}

/// Returns the exit code for any answer that is an error.
#[must_use]
pub fn from_status(status: &Status) -> Exit {
    if let Some(reason) = hive_proto::status::reason(status) {
        return from_reason(reason);
    }
    // A connection that the broker closed when it ended.
    if status.code() == Code::Internal && hive_proto::status::is_of_connection(status) {
        return Exit::Unreachable;
    }
    from_code(status.code())
}

fn from_code(code: Code) -> Exit {
    match code {
        Code::Unavailable => Exit::Unreachable,
        Code::DeadlineExceeded => Exit::TimedOut,
        Code::NotFound => Exit::NotFound,
        Code::PermissionDenied | Code::Unauthenticated => Exit::Denied,
        Code::InvalidArgument => Exit::Usage,
        Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => Exit::Conflict,
        Code::Ok
        | Code::Cancelled
        | Code::Unknown
        | Code::ResourceExhausted
        | Code::OutOfRange
        | Code::Unimplemented
        | Code::Internal
        | Code::DataLoss => Exit::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_the_documented_numbers() {
        let codes = [
            Exit::Ok,
            Exit::Failure,
            Exit::Usage,
            Exit::NotFound,
            Exit::Denied,
            Exit::Conflict,
            Exit::TimedOut,
            Exit::Unreachable,
            Exit::Findings,
        ];
        for (number, exit) in codes.into_iter().enumerate() {
            assert_eq!(exit as usize, number);
        }
    }

    #[test]
    fn a_refusal_never_exits_with_zero() {
        for reason in Reason::ALL {
            assert_ne!(from_reason(*reason), Exit::Ok, "{reason}");
            assert_eq!(
                from_status(&hive_proto::status::refusal(*reason, "no", None)),
                from_reason(*reason)
            );
        }
    }
}
