//! Codes: the numbers of enums in rows. They are those of the wire if it has the enum, and never
//! change.
//!
//! Invariant: an unknown code in a row is corruption and an error, never a default.

use hive_core::agent::{HarnessState, Source};
use hive_core::delivery::{Lane, RedeliveryCause, State};
use hive_core::event::Kind as EventKind;
use hive_core::message::SystemKind;
use hive_core::turn::{Kind as TurnKind, Outcome};
use hive_core::{loose_end, question, reminder};
use rusqlite::Row;
use rusqlite::types::Type;

/// An enum with a code for each value.
pub(crate) trait Coded: Copy + Sized + 'static {
    /// Its values and their codes.
    const CODES: &'static [(Self, i64)];
    /// Whether two values are the same.
    fn same(self, other: Self) -> bool;

    /// Returns the code in a row.
    fn code(self) -> i64 {
        let entry = Self::CODES.iter().find(|(value, _)| value.same(self));
        entry.expect("every value has a code; a test checks it").1
    }

    /// Returns the value of a code.
    fn decode(code: i64) -> Option<Self> {
        Self::CODES.iter().find(|(_, known)| *known == code).map(|(value, _)| *value)
    }
}

/// Defines the codes of enums.
macro_rules! codes {
    ($($kind:ty { $($variant:ident = $code:literal),+ $(,)? })+) => {$(
        impl $crate::store::codec::Coded for $kind {
            const CODES: &'static [(Self, i64)] = &[$((Self::$variant, $code)),+];
            fn same(self, other: Self) -> bool { self == other }
            fn code(self) -> i64 {
                match self { $(Self::$variant => $code),+ }
            }
        }
    )+};
}

pub(super) use codes;

codes! {
    Source { File = 1, Runtime = 2 }
    HarnessState { Offline = 1, Starting = 2, Idle = 3, Thinking = 4, Compacting = 5, RateLimited = 6, NeedsLogin = 7, Unavailable = 8, Stopped = 9 }
    State { Ready = 1, Leased = 2, Held = 3, Dead = 4, Acked = 5, Dropped = 6, Superseded = 7 }
    Lane { System = 1, Normal = 2 }
    RedeliveryCause {
        TurnFailed = 1, HarnessVanished = 2, RateLimited = 3, AuthFailed = 4, Unavailable = 5, Drained = 6, Released = 7,
        Redriven = 8, NotReceived = 9, Nacked = 10, LeaseExpired = 11,
    }
    SystemKind {
        TurnFailed = 1, DeadLetter = 2, Restarted = 3, Unavailable = 4, QuestionAsked = 5, QuestionAnswered = 6, QuestionExpired = 7,
        QuestionCancelled = 8, Reminder = 9, Problem = 10,
    }
    question::State { Open = 1, Answered = 2, Expired = 3, Cancelled = 4 }
    loose_end::Kind { QuestionAsked = 1, QuestionOwed = 2, Reminder = 3, DeadLetter = 4, External = 5 }
    reminder::State { Pending = 1, Fired = 2, Cancelled = 3 }
    TurnKind { Mail = 1, Continue = 2, Checkpoint = 3, Compact = 4 }
    Outcome {
        Ok = 1, Failed = 2, RateLimited = 3, AuthFailed = 4, Unavailable = 5, Cancelled = 6, Drained = 7, Vanished = 8, Fenced = 9,
    }
    EventKind {
        MessageAccepted = 1, DeliveryLeased = 2, DeliveryAcked = 3, DeliveryReturned = 4, DeliveryDead = 5, DeliveryHeld = 6,
        DeliveryReleased = 7, DeliveryRedriven = 8, DeliveryDropped = 9, DeliverySuperseded = 10, TurnBegun = 11, TurnEnded = 12,
        HarnessAttached = 13, HarnessLost = 14, AgentCreated = 15, AgentChanged = 16, AgentRetired = 17, StatusChanged = 18,
        AgentParked = 19, CommandGiven = 20, CommandClosed = 21, Refused = 22, QuestionAsked = 23,
        QuestionAnswered = 24, QuestionExpired = 25, QuestionCancelled = 26, ReminderSet = 27, ReminderFired = 28, ReminderCancelled = 29,
        HarnessStateChanged = 30, AgentStopped = 31, AgentStarted = 32, AgentPurged = 33, PurgeFinished = 34,
    }
}

/// An invalid value in a row.
#[derive(Debug, thiserror::Error)]
#[error("column {column} holds {value}, which is no {wanted}")]
pub(crate) struct Corrupt {
    column: usize,
    value: String,
    wanted: &'static str,
}

fn corrupt(
    column: usize,
    value: impl ToString,
    wanted: &'static str,
    kind: Type,
) -> rusqlite::Error {
    let corrupt = Corrupt { column, value: value.to_string(), wanted };
    rusqlite::Error::FromSqlConversionFailure(column, kind, Box::new(corrupt))
}

/// Reads a code.
pub(crate) fn coded<T: Coded>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let code: i64 = row.get(column)?;
    T::decode(code).ok_or_else(|| corrupt(column, code, std::any::type_name::<T>(), Type::Integer))
}

/// Reads a code that may be absent.
pub(crate) fn coded_option<T: Coded>(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<T>> {
    let code: Option<i64> = row.get(column)?;
    code.map(|code| {
        T::decode(code)
            .ok_or_else(|| corrupt(column, code, std::any::type_name::<T>(), Type::Integer))
    })
    .transpose()
}

/// Reads a number that is never negative.
pub(crate) fn unsigned<T: TryFrom<i64>>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let number: i64 = row.get(column)?;
    T::try_from(number).map_err(|_| corrupt(column, number, "unsigned number", Type::Integer))
}

/// Reads an id that may be absent.
pub(crate) fn id_option<T>(
    row: &Row<'_>,
    column: usize,
    new: impl FnOnce(u64) -> Option<T>,
) -> rusqlite::Result<Option<T>> {
    let number: Option<i64> = row.get(column)?;
    Ok(number.and_then(|number| u64::try_from(number).ok()).and_then(new))
}

/// Reads an id.
pub(crate) fn id<T>(
    row: &Row<'_>,
    column: usize,
    new: impl FnOnce(u64) -> Option<T>,
) -> rusqlite::Result<T> {
    id_option(row, column, new)?.ok_or_else(|| corrupt(column, "0", "id", Type::Integer))
}

/// Reads text that has to parse.
pub(crate) fn parsed<T, E>(
    row: &Row<'_>,
    column: usize,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    parse(&text).map_err(|_| corrupt(column, &text, std::any::type_name::<T>(), Type::Text))
}

/// Reads JSON that has to parse.
pub(crate) fn json<T: serde::de::DeserializeOwned>(
    row: &Row<'_>,
    column: usize,
) -> rusqlite::Result<T> {
    parsed(row, column, |text| serde_json::from_str(text))
}

/// Returns a number as SQLite stores it. No count, size or id reaches 2^63; if a client sends one
/// anyway, it becomes the largest number, which no row has.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct<T: Coded + std::fmt::Debug>() {
        for (value, code) in T::CODES {
            assert_eq!(value.code(), *code);
            assert!(T::decode(*code).is_some_and(|decoded| decoded.same(*value)), "{value:?}");
        }
        assert!(T::decode(0).is_none());
    }

    #[test]
    fn codes_round_trip() {
        distinct::<Source>();
        distinct::<HarnessState>();
        distinct::<State>();
        distinct::<Lane>();
        distinct::<RedeliveryCause>();
        distinct::<SystemKind>();
        distinct::<TurnKind>();
        distinct::<Outcome>();
        distinct::<EventKind>();
        distinct::<crate::store::table::attention::Kind>();
        distinct::<question::State>();
        distinct::<loose_end::Kind>();
        distinct::<reminder::State>();
    }
}
