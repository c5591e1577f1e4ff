//! Ids: short decimal numbers from one sequence for all kinds, never reused, because claude and
//! operators repeat them.
//!
//! Invariant: an id is at least 1 and at most [`NUMBER_MAX`]; on the wire 0 stands for "none".

use std::fmt;

use serde::{Deserialize, Serialize};

/// The greatest id, and the greatest number of an event: 2^53 - 1. JavaScript and many readers of
/// JSON hold greater whole numbers only approximately.
pub const NUMBER_MAX: u64 = (1 << 53) - 1;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(u64);

        impl $name {
            /// Creates an id; `None` for 0, which means "none" on the wire, and for a number that
            /// no id has.
            #[must_use]
            pub const fn new(number: u64) -> Option<Self> {
                if number == 0 || number > NUMBER_MAX { None } else { Some(Self(number)) }
            }

            /// Returns the number, from 1 to [`NUMBER_MAX`].
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
    /// A schedule.
    ScheduleId,
}

/// Returns the number of an optional id on the wire and in rows: 0 for none.
#[must_use]
pub fn number<T>(id: Option<T>, get: impl FnOnce(T) -> u64) -> u64 {
    id.map_or(0, get)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_number_that_javascript_holds_exactly() {
        assert_eq!(NUMBER_MAX, 9_007_199_254_740_991);
        let read = [0, 1, NUMBER_MAX, NUMBER_MAX + 1, u64::MAX].map(MessageId::new);
        let numbers = read.map(|id| id.map(MessageId::get));
        assert_eq!(numbers, [None, Some(1), Some(NUMBER_MAX), None, None]);
    }
}
