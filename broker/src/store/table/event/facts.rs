//! Facts of events as two values: the code of an enum's value, and a number.
//!
//! Invariant: facts have a value in at least one of the two, so an event with NULL in both has
//! none.

use hive_core::delivery::RedeliveryCause;
use hive_core::event::{
    AgentChanged, AgentCreated, AgentParked, CallRefused, CommandClosed, CommandGiven,
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryLeased, DeliveryReturned, Facts,
    HarnessAttached, HarnessLost, HarnessStateChanged, Kind, ReminderSet, ScheduleChanged,
    ScheduleCreated, ScheduleEnded, ScheduleFired, TurnBegun, TurnEnded,
};
use hive_core::id::{CommandId, ScheduleId};
use hive_core::reason::Reason;
use hive_core::time::WallTime;

use crate::store::codec::{Coded, integer};

/// The facts of an event as its row has them.
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
            Facts::ScheduleCreated(Some(ScheduleCreated { schedule_id }))
            | Facts::ScheduleFired(Some(ScheduleFired { schedule_id }))
            | Facts::ScheduleEnded(Some(ScheduleEnded { schedule_id })) => {
                (None, Some(integer(schedule_id.get())))
            }
            Facts::ScheduleChanged(Some(ScheduleChanged { schedule_id, change })) => {
                (Some(change.code()), Some(integer(schedule_id.get())))
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
            | Facts::ScheduleCreated(None)
            | Facts::ScheduleChanged(None)
            | Facts::ScheduleFired(None)
            | Facts::ScheduleEnded(None)
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
            | Facts::RestartRequested
            | Facts::HarnessCrashed
            | Facts::LogsRead
            | Facts::ActionBegun
            | Facts::ActionEnded
            | Facts::AgentPurged
            | Facts::PurgeFinished
            | Facts::LogBegun => (None, None),
        };
        Self { code, number }
    }
}

/// Returns the facts of an event of this kind; `None` if they have a value that the kind cannot
/// have.
pub(super) fn facts(kind: Kind, stored: Stored) -> Option<Facts> {
    if (stored.code, stored.number) == (None, None) {
        return Some(Facts::unknown(kind));
    }
    Some(match kind {
        Kind::DeliveryLeased => {
            let cause = stored.code.map(|code| RedeliveryCause::decode(code).ok_or(())).transpose();
            DeliveryLeased { attempt: stored.number()?, cause: cause.ok()? }.into()
        }
        Kind::DeliveryAcked => {
            DeliveryAcked { attempt: stored.number()?, settler: stored.code()? }.into()
        }
        Kind::DeliveryReturned => {
            DeliveryReturned { attempt: stored.number()?, cause: stored.code()? }.into()
        }
        Kind::DeliveryDead => {
            DeliveryDead { attempt: stored.number()?, cause: stored.code()? }.into()
        }
        Kind::DeliveryHeld => DeliveryHeld { attempt: stored.number()? }.into(),
        Kind::TurnBegun => {
            TurnBegun { kind: stored.code()?, session_epoch: stored.number()? }.into()
        }
        Kind::TurnEnded => {
            TurnEnded { outcome: stored.code()?, session_epoch: stored.number()? }.into()
        }
        Kind::HarnessAttached => HarnessAttached { session_epoch: stored.number()? }.into(),
        Kind::HarnessLost => {
            HarnessLost { session_epoch: stored.number()?, loss: stored.code()? }.into()
        }
        Kind::AgentCreated => AgentCreated { source: stored.code()? }.into(),
        Kind::AgentChanged => AgentChanged { change: stored.code()? }.into(),
        Kind::AgentParked => {
            AgentParked { cause: stored.code()?, until_time: stored.number.map(WallTime) }.into()
        }
        Kind::CommandGiven => {
            CommandGiven { kind: stored.code()?, command_id: stored.command()? }.into()
        }
        Kind::CommandClosed => {
            CommandClosed { done: stored.code? != 0, command_id: stored.command()? }.into()
        }
        Kind::Refused => {
            let reason = i32::try_from(stored.code?).ok().and_then(Reason::numbered);
            CallRefused { reason: reason? }.into()
        }
        Kind::ReminderSet => ReminderSet { due_time: WallTime(stored.number?) }.into(),
        Kind::HarnessStateChanged => HarnessStateChanged { state: stored.code()? }.into(),
        Kind::ScheduleCreated => ScheduleCreated { schedule_id: stored.schedule()? }.into(),
        Kind::ScheduleChanged => {
            ScheduleChanged { schedule_id: stored.schedule()?, change: stored.code()? }.into()
        }
        Kind::ScheduleFired => ScheduleFired { schedule_id: stored.schedule()? }.into(),
        Kind::ScheduleEnded => ScheduleEnded { schedule_id: stored.schedule()? }.into(),
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
        | Kind::RestartRequested
        | Kind::HarnessCrashed
        | Kind::LogsRead
        | Kind::ActionBegun
        | Kind::ActionEnded
        | Kind::AgentPurged
        | Kind::PurgeFinished
        | Kind::LogBegun => Facts::unknown(kind),
    })
}

impl Stored {
    fn code<T: Coded>(self) -> Option<T> {
        T::decode(self.code?)
    }

    fn number<T: TryFrom<i64>>(self) -> Option<T> {
        T::try_from(self.number?).ok()
    }

    fn schedule(self) -> Option<ScheduleId> {
        self.number::<u64>().and_then(ScheduleId::new)
    }

    /// Returns the id of a command, if the facts have one.
    fn command(self) -> Option<Option<CommandId>> {
        let Some(number) = self.number else { return Some(None) };
        u64::try_from(number).ok().and_then(CommandId::new).map(Some)
    }
}
