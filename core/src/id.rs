//! Ids: short decimal numbers from one sequence for all kinds, never reused, because claude and
//! operators repeat them.
//!
//! Invariant: an id is at least 1; on the wire 0 stands for "none".

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Creates an id; `None` for 0, which means "none" on the wire.
            #[must_use]
            pub const fn new(number: u64) -> Option<Self> {
                if number == 0 { None } else { Some(Self(number)) }
            }

            /// Returns the number, at least 1.
            #[must_use]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// A message. Its number is also the order of its deliveries in an inbox.
    MessageId,
    /// A turn.
    TurnId,
    /// A command of the operator to a harness.
    CommandId,
    /// A question.
    QuestionId,
    /// A reminder.
    ReminderId,
}

/// Returns the number of an optional id on the wire and in rows: 0 for none.
#[must_use]
pub fn number<T>(id: Option<T>, get: impl FnOnce(T) -> u64) -> u64 {
    id.map_or(0, get)
}
