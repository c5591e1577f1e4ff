//! Settlements as callers write them: the delivery, and what happens to it.
//!
//! Invariant: only the operator names a delivery by its key; every other caller proves the lease by
//! its token.

use std::time::Duration;

use crate::delivery::State;
use crate::id::MessageId;

/// The delivery of a settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The one whose lease has this token.
    Lease(String),
    /// The one with this key; for the operator.
    Key(String, MessageId),
}

/// What happens to the delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// It is done.
    Ack,
    /// It failed.
    Nack {
        /// Why.
        error: String,
        /// Whether no retry can succeed.
        permanent: bool,
    },
    /// Its lease lasts this long from now.
    Extend(Duration),
    /// It was not begun.
    Release,
}

/// One settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The delivery.
    pub target: Target,
    /// What happens to it.
    pub action: Action,
}

impl Entry {
    /// Returns a settlement by the token of a lease.
    pub fn of_lease(token: impl Into<String>, action: Action) -> Self {
        Self { target: Target::Lease(token.into()), action }
    }
}

/// The result of a settlement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The state that it gave to the delivery.
    State(State),
    /// The time until the extended lease expires.
    Extended(Duration),
}
