//! The end of the program: exit codes, and the only place that formats a failure.
//!
//! Invariant: the printed text has three parts: what failed, why, and what to do next.

use std::fmt;

use hive_proto::connect::ConnectError;

/// Success.
pub const OK: u8 = 0;
/// Failure.
pub const FAILURE: u8 = 1;
/// Invalid command line.
pub const USAGE: u8 = 2;
/// The broker does not answer.
pub const UNREACHABLE: u8 = 7;

/// Why the program ends early.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    what: String,
    why: String,
    next: String,
}

impl Failure {
    /// Creates a failure with this code: what failed, why, and what to do next.
    pub fn new(
        code: u8,
        what: impl Into<String>,
        why: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { code, what: what.into(), why: why.into(), next: next.into() }
    }

    /// Creates a failure for a socket that does not answer, that does not let this user in, or that
    /// Linux cannot address.
    pub fn unreachable(error: &ConnectError) -> Self {
        let (code, next) = if matches!(error, ConnectError::NotAllowed { .. }) {
            (
                FAILURE,
                "run it as a user of the agent (`uids` and `users` in hive.toml), and check that HIVE_SOCKET (or --socket) names this agent's socket",
            )
        } else {
            (
                UNREACHABLE,
                "check that hived runs and that HIVE_SOCKET (or --socket) names this agent's socket",
            )
        };
        Self::new(code, error.to_string(), chain(error), next)
    }

    /// Creates a failure for a call that the broker refused.
    pub fn refused(what: impl Into<String>, status: &tonic::Status) -> Self {
        let next = match hive_proto::status::reason(status) {
            Some(reason) => format!("see docs/errors/{reason}.md"),
            None => "read the log of hived".to_owned(),
        };
        let code = if hive_proto::status::is_transient(status) { UNREACHABLE } else { FAILURE };
        Self::new(code, what, describe(status), next)
    }

    /// Returns the exit code.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if !self.why.is_empty() {
            write!(f, "\n  reason: {}", self.why)?;
        }
        if !self.next.is_empty() {
            write!(f, "\n  next: {}", self.next)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// Returns the sources of an error, outermost first, without the error itself.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut sources = Vec::new();
    let mut source = error.source();
    while let Some(error) = source {
        sources.push(error.to_string());
        source = error.source();
    }
    sources.join(": ")
}

/// Formats a status, with its reason if it has one.
pub fn describe(status: &tonic::Status) -> String {
    match hive_proto::status::reason(status) {
        Some(reason) => format!("{} ({reason})", status.message()),
        None => format!("{} ({})", status.message(), status.code()),
    }
}
