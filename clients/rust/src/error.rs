//! The one error of this crate: a refusal of the broker with its facts, or what the connection did.
//!
//! Invariant: it is made of a status in one place. A reason that this crate does not know stays
//! readable.

use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::connect::ConnectError;
use crate::status;
use crate::v1::{Reason, Refusal};

/// Why a call failed.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Facts>);

#[derive(Clone, PartialEq, Eq)]
struct Facts {
    code: Code,
    reason: String,
    message: String,
    metadata: HashMap<String, String>,
    fields: Vec<InvalidField>,
    retry_after: Option<Duration>,
    transient: bool,
}

/// A field of a request that is not valid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Its path, as in `to.agent`.
    pub field: String,
    /// What is wrong with its value.
    pub description: String,
}

impl Error {
    /// Returns the gRPC code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Returns the reason, as in `AGENT_NOT_FOUND`; empty if the error is not the broker's.
    /// Programs decide by it; docs/errors has a page for each.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// Returns the sentence for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// Returns facts for programs, by the keys that the reason declares.
    #[must_use]
    pub fn metadata(&self) -> &HashMap<String, String> {
        &self.0.metadata
    }

    /// Returns the fields that are not valid, with their faults.
    #[must_use]
    pub fn fields(&self) -> &[InvalidField] {
        &self.0.fields
    }

    /// Returns how long to wait before a retry, if the broker says so.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Returns whether the identical request may succeed in a moment. A call repeats it by itself
    /// until its time is over.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        self.0.transient
    }

    /// Returns an error of this crate's own.
    pub(crate) fn local(code: Code, message: impl Into<String>) -> Self {
        let mut error = Self::from(Status::new(code, message));
        // The other codes mean a broken connection only in a status.
        error.0.transient = code == Code::DeadlineExceeded;
        error
    }

    /// Returns the error of a settlement whose lease is known to be lost.
    pub(crate) fn lease_lost() -> Self {
        let message = "the lease was lost while the connection was broken; stop the work on it";
        Self::from(Refusal {
            reason: Reason::LeaseLost.into(),
            message: message.to_owned(),
            ..Default::default()
        })
    }

    /// Returns the error of a call on what the caller has closed.
    pub(crate) fn closed(what: &str) -> Self {
        Self::local(Code::Cancelled, format!("the {what} is closed; open another one"))
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        let info = status::info(&status);
        let (reason, metadata) = info.map(|info| (info.reason, info.metadata)).unwrap_or_default();
        let fields = status.get_details_bad_request().map(|bad| bad.field_violations);
        let fields = fields.into_iter().flatten();
        let fields =
            fields.map(|bad| InvalidField { field: bad.field, description: bad.description });
        Self(Box::new(Facts {
            code: status.code(),
            reason,
            message: status.message().to_owned(),
            metadata,
            fields: fields.collect(),
            retry_after: status::retry_after(&status),
            transient: status::is_transient(&status),
        }))
    }
}

/// The refusal of a part of a call.
impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        // A reason of a later broker has no name here, but its number is a fact.
        let reason = match Reason::try_from(refusal.reason) {
            Ok(known) => known.as_str_name().trim_start_matches("REASON_").to_owned(),
            Err(_) => refusal.reason.to_string(),
        };
        Self(Box::new(Facts {
            code: status::code(&reason),
            transient: status::is_soon(&reason),
            reason,
            message: refusal.message,
            metadata: refusal.metadata,
            fields: Vec::new(),
            retry_after: refusal.retry_delay.and_then(|delay| Duration::try_from(delay).ok()),
        }))
    }
}

impl From<ConnectError> for Error {
    fn from(error: ConnectError) -> Self {
        Self::local(Code::InvalidArgument, error.to_string())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { code, reason, message, .. } = &*self.0;
        let of = if reason.is_empty() { "" } else { " " };
        write!(f, "{code:?}{of}{reason}: {message}")
    }
}

/// The text of a program whose `main` returns the error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Facts { metadata, fields, .. } = &*self.0;
        write!(f, "{self}")?;
        if !metadata.is_empty() {
            write!(f, " {metadata:?}")?;
        }
        if !fields.is_empty() {
            write!(f, " {fields:?}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
