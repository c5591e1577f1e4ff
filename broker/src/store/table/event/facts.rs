//! Facts of events as two columns: the code of an enum's value, and a number.
//!
//! Invariant: facts have a value in at least one of the two, so an event with NULL in both has
//! none.

use hive_core::event::{
    AgentChanged, AgentCreated, AgentParked, CallRefused, CommandClosed, CommandGiven,
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryLeased, DeliveryReturned, Facts,
    HarnessAttached, HarnessLost, HarnessStateChanged, Kind, ReminderSet, TurnBegun, TurnEnded,
};
use rusqlite::{Result, Row};

use crate::store::codec::{Coded, integer};
use crate::store::columns::Columns;

/// The facts of an event as its row holds them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    /// The code of an enum's value.
    pub(super) code: Option<i64>,
    /// An attempt, a session epoch, an id or a time.
    pub(super) number: Option<i64>,
}

impl From<Facts> for Stored {
    fn from(facts: Facts) -> Self {
        let (code, number) = match facts {
            Facts::DeliveryLeased(Some(DeliveryLeased { attempt, cause })) => {
                (cause.map(Coded::code), Some(attempt.into()))
            }
            Facts::DeliveryAcked(Some(DeliveryAcked { attempt, settler })) => {
                (Some(settler.code()), Some(attempt.into()))
            }
            Facts::DeliveryReturned(Some(DeliveryReturned { attempt, cause }))
            | Facts::DeliveryDead(Some(DeliveryDead { attempt, cause })) => {
                (Some(cause.code()), Some(attempt.into()))
            }
            Facts::DeliveryHeld(Some(DeliveryHeld { attempt })) => (None, Some(attempt.into())),
            Facts::TurnBegun(Some(TurnBegun { kind, session_epoch })) => {
                (Some(kind.code()), Some(integer(session_epoch)))
            }
            Facts::TurnEnded(Some(TurnEnded { outcome, session_epoch })) => {
                (Some(outcome.code()), Some(integer(session_epoch)))
            }
            Facts::HarnessAttached(Some(HarnessAttached { session_epoch })) => {
                (None, Some(integer(session_epoch)))
            }
            Facts::HarnessLost(Some(HarnessLost { session_epoch, loss })) => {
                (Some(loss.code()), Some(integer(session_epoch)))
            }
            Facts::AgentCreated(Some(AgentCreated { source })) => (Some(source.code()), None),
            Facts::AgentChanged(Some(AgentChanged { change })) => (Some(change.code()), None),
            Facts::AgentParked(Some(AgentParked { cause, until_time })) => {
                (Some(cause.code()), until_time.map(|time| time.0))
            }
            Facts::CommandGiven(Some(CommandGiven { kind, command_id })) => {
                (Some(kind.code()), command_id.map(|id| integer(id.get())))
            }
            Facts::CommandClosed(Some(CommandClosed { done, command_id })) => {
                (Some(done.into()), command_id.map(|id| integer(id.get())))
            }
            Facts::Refused(Some(CallRefused { reason })) => (Some(reason.number().into()), None),
            Facts::ReminderSet(Some(ReminderSet { due_time })) => (None, Some(due_time.0)),
            Facts::HarnessStateChanged(Some(HarnessStateChanged { state })) => {
                (Some(state.code()), None)
            }
            Facts::DeliveryLeased(None)
            | Facts::DeliveryAcked(None)
            | Facts::DeliveryReturned(None)
            | Facts::DeliveryDead(None)
            | Facts::DeliveryHeld(None)
            | Facts::TurnBegun(None)
            | Facts::TurnEnded(None)
            | Facts::HarnessAttached(None)
            | Facts::HarnessLost(None)
            | Facts::AgentCreated(None)
            | Facts::AgentChanged(None)
            | Facts::AgentParked(None)
            | Facts::CommandGiven(None)
            | Facts::CommandClosed(None)
            | Facts::Refused(None)
            | Facts::ReminderSet(None)
            | Facts::HarnessStateChanged(None)
            | Facts::MessageAccepted
            | Facts::DeliveryReleased
            | Facts::DeliveryRedriven
            | Facts::DeliveryDropped
            | Facts::DeliverySuperseded
            | Facts::AgentRetired
            | Facts::StatusChanged
            | Facts::QuestionAsked
            | Facts::QuestionAnswered
            | Facts::QuestionExpired
            | Facts::QuestionCancelled
            | Facts::ReminderFired
            | Facts::ReminderCancelled
            | Facts::AgentStopped
            | Facts::AgentStarted
            | Facts::AgentPurged
            | Facts::PurgeFinished
            | Facts::LogBegun => (None, None),
        };
        Self { code, number }
    }
}

/// Reads the kind, the code and the number of an event.
impl Columns for Facts {
    const WIDTH: usize = 3;

    fn read(row: &Row<'_>, at: usize) -> Result<Self> {
        let kind = Kind::read(row, at)?;
        let cells = Cells { row, at: at + 1 };
        if cells.are_null()? {
            return Ok(Self::unknown(kind));
        }
        Ok(match kind {
            Kind::DeliveryLeased => {
                DeliveryLeased { attempt: cells.number()?, cause: cells.code()? }.into()
            }
            Kind::DeliveryAcked => {
                DeliveryAcked { attempt: cells.number()?, settler: cells.code()? }.into()
            }
            Kind::DeliveryReturned => {
                DeliveryReturned { attempt: cells.number()?, cause: cells.code()? }.into()
            }
            Kind::DeliveryDead => {
                DeliveryDead { attempt: cells.number()?, cause: cells.code()? }.into()
            }
            Kind::DeliveryHeld => DeliveryHeld { attempt: cells.number()? }.into(),
            Kind::TurnBegun => {
                TurnBegun { kind: cells.code()?, session_epoch: cells.number()? }.into()
            }
            Kind::TurnEnded => {
                TurnEnded { outcome: cells.code()?, session_epoch: cells.number()? }.into()
            }
            Kind::HarnessAttached => HarnessAttached { session_epoch: cells.number()? }.into(),
            Kind::HarnessLost => {
                HarnessLost { session_epoch: cells.number()?, loss: cells.code()? }.into()
            }
            Kind::AgentCreated => AgentCreated { source: cells.code()? }.into(),
            Kind::AgentChanged => AgentChanged { change: cells.code()? }.into(),
            Kind::AgentParked => {
                AgentParked { cause: cells.code()?, until_time: cells.number()? }.into()
            }
            Kind::CommandGiven => {
                CommandGiven { kind: cells.code()?, command_id: cells.number()? }.into()
            }
            Kind::CommandClosed => {
                CommandClosed { done: cells.code()?, command_id: cells.number()? }.into()
            }
            Kind::Refused => CallRefused { reason: cells.code()? }.into(),
            Kind::ReminderSet => ReminderSet { due_time: cells.number()? }.into(),
            Kind::HarnessStateChanged => HarnessStateChanged { state: cells.code()? }.into(),
            Kind::MessageAccepted
            | Kind::DeliveryReleased
            | Kind::DeliveryRedriven
            | Kind::DeliveryDropped
            | Kind::DeliverySuperseded
            | Kind::AgentRetired
            | Kind::StatusChanged
            | Kind::QuestionAsked
            | Kind::QuestionAnswered
            | Kind::QuestionExpired
            | Kind::QuestionCancelled
            | Kind::ReminderFired
            | Kind::ReminderCancelled
            | Kind::AgentStopped
            | Kind::AgentStarted
            | Kind::AgentPurged
            | Kind::PurgeFinished
            | Kind::LogBegun => Self::unknown(kind),
        })
    }
}

/// The two columns of a row.
struct Cells<'a> {
    row: &'a Row<'a>,
    at: usize,
}

impl Cells<'_> {
    fn are_null(&self) -> Result<bool> {
        let cells: (Option<i64>, Option<i64>) = Columns::read(self.row, self.at)?;
        Ok(cells == (None, None))
    }

    fn code<T: Columns>(&self) -> Result<T> {
        T::read(self.row, self.at)
    }

    fn number<T: Columns>(&self) -> Result<T> {
        T::read(self.row, self.at + 1)
    }
}
