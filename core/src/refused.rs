//! Refusals as programs see them: a reason with facts about the case, without a sentence.
//!
//! Invariant: a refusal that [`Refused::undeclared`] finds nothing about has the metadata that
//! `proto/hive/v1/reason.proto` declares for its reason.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::reason::{Reason, Retry};

/// The key of the field that is not valid.
pub const FIELD: &str = "field";

/// A refusal without its sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The stable reason.
    pub reason: Reason,
    /// Facts for programs.
    pub metadata: BTreeMap<&'static str, String>,
    /// The wait before a retry, if it is known.
    pub retry_after: Option<Duration>,
}

impl Refused {
    /// Returns a refusal without facts.
    #[must_use]
    pub fn new(reason: Reason) -> Self {
        Self { reason, metadata: BTreeMap::new(), retry_after: None }
    }

    /// Adds a fact.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl ToString) -> Self {
        self.metadata.insert(key, value.to_string());
        self
    }

    /// Adds a fact, if there is one.
    #[must_use]
    pub fn with_some(self, key: &'static str, value: Option<impl ToString>) -> Self {
        value.into_iter().fold(self, |refused, value| refused.with(key, value))
    }

    /// Names the field that is not valid; it becomes a violation in `google.rpc.BadRequest`, too.
    #[must_use]
    pub fn in_field(self, path: impl ToString) -> Self {
        self.with(FIELD, path)
    }

    /// Adds the wait before a retry.
    #[must_use]
    pub fn after(self, retry_after: Option<Duration>) -> Self {
        Self { retry_after, ..self }
    }

    /// Returns what differs from the declaration of the reason, in words.
    #[must_use]
    pub fn undeclared(&self) -> Option<String> {
        let Self { reason, metadata, retry_after } = self;
        let missing = reason.metadata().iter().find(|key| !metadata.contains_key(**key));
        let known = |key: &str| {
            reason.metadata().contains(&key) || reason.optional_metadata().contains(&key)
        };
        let foreign = metadata.keys().find(|key| !known(key));
        match (missing, foreign) {
            (Some(key), _) => Some(format!("{reason} lacks `{key}`")),
            (None, Some(key)) => Some(format!("{reason} does not declare `{key}`")),
            (None, None) if retry_after.is_some() && reason.retry() == Retry::Never => {
                Some(format!("{reason} has a delay, and is never worth a retry"))
            }
            (None, None) => None,
        }
    }
}
