//! Codes: the numbers of enums in rows. They are those of the wire if it has the enum, and never
//! change.
//!
//! Invariant: an unknown code in a row is corruption and an error, never a default.

use hive_core::agent::{HarnessState, Heard, Source};
use hive_core::command::{Kind as CommandKind, Order};
use hive_core::delivery::{Lane, LeaseEnd, RedeliveryCause, State};
use hive_core::effect::{Change, Effect, RunState};
use hive_core::event::{AgentChange, HarnessLoss, Kind as EventKind, ScheduleChange, Settler};
use hive_core::id::{CommandId, MessageId, QuestionId, ReminderId, ScheduleId, TurnId};
use hive_core::message::SystemKind;
use hive_core::name::AgentName;
use hive_core::reason::Reason;
use hive_core::time::{BootTime, WallTime};
use hive_core::trace::{TraceContext, Traced};
use hive_core::turn::{Kind as TurnKind, Outcome};
use hive_core::{loose_end, question, reminder, schedule};
use rusqlite::types::Type;
use rusqlite::{Result, Row};

use crate::store::columns::Columns;
use crate::store::key::AgentKey;

/// An enum with a code for each value.
pub(crate) trait Coded: Copy + Sized + 'static {
    /// Its values and their codes.
    const CODES: &'static [(Self, i64)];

    /// Returns the code in a row.
    fn code(self) -> i64;

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
            fn code(self) -> i64 {
                match self { $(Self::$variant => $code),+ }
            }
        }

        impl $crate::store::columns::Columns for $kind {
            fn read(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Self> {
                $crate::store::codec::coded(row, at)
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
        Redriven = 8, NotReceived = 9, Nacked = 10, LeaseExpired = 11, Restored = 12,
    }
    LeaseEnd { Acked = 1, Nacked = 2, Dead = 3, GivenUp = 4, Released = 5 }
    SystemKind {
        TurnFailed = 1, DeadLetter = 2, Restarted = 3, Unavailable = 4, QuestionAsked = 5, QuestionAnswered = 6, QuestionExpired = 7,
        QuestionCancelled = 8, Reminder = 9, Problem = 10, Started = 11, Stopped = 12, Crashed = 13, LoggedIn = 14, Recovered = 15,
        ActionEnded = 16, ScheduleEnded = 17, Heartbeat = 18,
    }
    question::State { Open = 1, Answered = 2, Expired = 3, Cancelled = 4 }
    loose_end::Kind { QuestionAsked = 1, QuestionOwed = 2, Reminder = 3, DeadLetter = 4, External = 5, Approval = 6 }
    RunState { Queued = 1, Running = 2, Done = 3, Failed = 4 }
    reminder::State { Pending = 1, Fired = 2, Cancelled = 3 }
    schedule::State { Active = 1, Paused = 2, Ended = 3 }
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
        HarnessStateChanged = 30, AgentStopped = 31, AgentStarted = 32, AgentPurged = 33, PurgeFinished = 34, LogBegun = 35,
        RestartRequested = 36, HarnessCrashed = 37, LogsRead = 38,
        ActionBegun = 39, ActionEnded = 40, ScheduleCreated = 41, ScheduleChanged = 42, ScheduleFired = 43, ScheduleEnded = 44,
    }
    Settler { Holder = 1, Operator = 2 }
    HarnessLoss { TakenOver = 1, StayedAway = 2, Restored = 3, Left = 4 }
    Heard { Well = 0, Stopped = 1, Crashed = 2 }
    AgentChange { Model = 1, Parent = 2, Policy = 3, File = 4, Role = 5 }
    ScheduleChange { Edited = 1, Paused = 2, Resumed = 3 }
    CommandKind { CancelTurn = 1, StartNewSession = 2, SetModel = 3, RestartHarness = 4, CompactSession = 5, Login = 6 }
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
    row: &Row<'_>,
    column: usize,
    value: impl ToString,
    wanted: &'static str,
) -> rusqlite::Error {
    let corrupt = Corrupt { column, value: value.to_string(), wanted };
    let stored = row.get_ref(column).map_or(Type::Null, |value| value.data_type());
    rusqlite::Error::FromSqlConversionFailure(column, stored, Box::new(corrupt))
}

/// Reads a code.
pub(super) fn coded<T: Coded>(row: &Row<'_>, at: usize) -> Result<T> {
    let code: i64 = row.get(at)?;
    T::decode(code).ok_or_else(|| corrupt(row, at, code, std::any::type_name::<T>()))
}

/// Reads text that has to parse.
pub(super) fn parsed<T, E>(
    row: &Row<'_>,
    at: usize,
    parse: impl FnOnce(&str) -> std::result::Result<T, E>,
) -> Result<T> {
    let text = row.get_ref(at)?.as_str()?;
    parse(text).map_err(|_| corrupt(row, at, text, std::any::type_name::<T>()))
}

/// Reads JSON that has to parse.
pub(super) fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, at: usize) -> Result<T> {
    parsed(row, at, |text| serde_json::from_str(text))
}

/// Defines how values of one column are read.
macro_rules! readers {
    ($(($row:ident, $at:ident) $read:expr => $($kind:ty),+;)+) => {$($(
        impl Columns for $kind {
            fn read($row: &Row<'_>, $at: usize) -> Result<Self> { $read }
        }
    )+)+};
}

readers! {
    (row, at) row.get(at) => i32, i64, bool, String, Vec<u8>;
    (row, at) row.get(at).map(Self) => AgentKey, WallTime, BootTime;
    (row, at) {
        let number: i64 = row.get(at)?;
        Self::try_from(number).map_err(|_| corrupt(row, at, number, "unsigned number"))
    } => u32, u64, usize;
    (row, at) {
        let number = u64::read(row, at)?;
        Self::new(number).ok_or_else(|| corrupt(row, at, number, "id"))
    } => MessageId, TurnId, CommandId, QuestionId, ReminderId, ScheduleId;
    (row, at) {
        let number: i64 = row.get(at)?;
        let reason = i32::try_from(number).ok().and_then(Self::numbered);
        reason.ok_or_else(|| corrupt(row, at, number, "reason"))
    } => Reason;
    (row, at) parsed(row, at, Self::parse) => AgentName;
    (row, at) {
        let bytes = row.get_ref(at)?.as_blob()?;
        Self::from_bytes(bytes).ok_or_else(|| corrupt(row, at, bytes.len(), "trace context"))
    } => Traced;
    (row, at) Traced::read(row, at).map(|traced| traced.context) => TraceContext;
    (row, at) json(row, at) => Vec<String>, question::Answer, Order, Effect, Vec<Change>;
}

/// Returns a number as SQLite stores it. No count, size or id reaches 2^63; if a client sends one
/// anyway, it becomes the largest number, which no row has.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distinct<T: Coded + PartialEq + std::fmt::Debug>() {
        for (value, code) in T::CODES {
            assert_eq!(value.code(), *code);
            assert_eq!(T::decode(*code), Some(*value));
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
        distinct::<Settler>();
        distinct::<HarnessLoss>();
        distinct::<AgentChange>();
        distinct::<CommandKind>();
        distinct::<crate::store::table::attention::Kind>();
        distinct::<question::State>();
        distinct::<loose_end::Kind>();
        distinct::<reminder::State>();
        distinct::<RunState>();
    }
}
