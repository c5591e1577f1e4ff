//! Facts of events.
//!
//! Invariant: an event has the facts of its own kind or none; facts of another kind are refused.

use std::convert::identity;

use hive_core::event::{
    AgentChange, AgentChanged, AgentCreated, AgentParked, CallRefused, CommandClosed, CommandGiven,
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryLeased, DeliveryReturned, Facts,
    HarnessAttached, HarnessLoss, HarnessLost, HarnessStateChanged, Kind, ReminderSet,
    ScheduleChange, ScheduleChanged, ScheduleCreated, ScheduleEnded, ScheduleFired, Settler,
    TurnBegun, TurnEnded,
};
use hive_core::id::{CommandId, ScheduleId, number};
use hive_core::time::WallTime;
use prost_types::Timestamp;

use crate::convert::time::{optional_wall_time, required_wall_time, timestamp};
use crate::convert::{
    FromWire, IntoWire, Invalid, code, id, optional_id, optional_number, optional_value,
    same_values, value,
};
use crate::v1;

same_values!(v1::Settler, Settler { Holder, Operator });

same_values!(v1::HarnessLoss, HarnessLoss { TakenOver, StayedAway, Restored, Left });

same_values!(v1::AgentChange, AgentChange { Model, Parent, Policy, File, Role });

same_values!(v1::ScheduleChange, ScheduleChange { Edited, Paused, Resumed });

/// Converts the facts of each kind: for each field the way to the wire and the way back.
macro_rules! facts {
    ($($name:ident $member:literal { $($field:ident: $to_wire:expr, $from_wire:expr;)+ })+) => {$(
        impl IntoWire for $name {
            type Wire = v1::$name;
            fn into_wire(self) -> v1::$name {
                let $name { $($field),+ } = self;
                v1::$name { $($field: ($to_wire)($field)),+ }
            }
        }

        impl FromWire for $name {
            type Wire = v1::$name;
            fn from_wire(wire: v1::$name) -> Result<Self, Invalid> {
                let v1::$name { $($field),+ } = wire;
                let facts = || Ok(Self { $($field: ($from_wire)($field, stringify!($field))?),+ });
                facts().map_err(|fault: Invalid| fault.within($member))
            }
        }
    )+};
}

facts! {
    DeliveryLeased "delivery_leased" {
        attempt: identity, plain;
        cause: optional_number, optional_value;
    }
    DeliveryAcked "delivery_acked" {
        attempt: identity, plain;
        settler: code, value;
    }
    DeliveryReturned "delivery_returned" {
        attempt: identity, plain;
        cause: code, value;
    }
    DeliveryDead "delivery_dead" {
        attempt: identity, plain;
        cause: code, value;
    }
    DeliveryHeld "delivery_held" {
        attempt: identity, plain;
    }
    TurnBegun "turn_begun" {
        kind: code, value;
        session_epoch: identity, plain;
    }
    TurnEnded "turn_ended" {
        outcome: code, value;
        session_epoch: identity, plain;
    }
    HarnessAttached "harness_attached" {
        session_epoch: identity, plain;
    }
    HarnessLost "harness_lost" {
        session_epoch: identity, plain;
        loss: code, value;
    }
    AgentCreated "agent_created" {
        source: code, value;
    }
    AgentChanged "agent_changed" {
        change: code, value;
    }
    AgentParked "agent_parked" {
        cause: code, value;
        until_time: optional_timestamp, optional_wall_time;
    }
    CommandGiven "command_given" {
        kind: code, value;
        command_id: command_number, optional_command;
    }
    CommandClosed "command_closed" {
        done: identity, plain;
        command_id: command_number, optional_command;
    }
    CallRefused "refused" {
        reason: code, value;
    }
    ReminderSet "reminder_set" {
        due_time: some_timestamp, required_wall_time;
    }
    HarnessStateChanged "harness_state_changed" {
        state: code, value;
    }
    ScheduleCreated "schedule_created" {
        schedule_id: ScheduleId::get, schedule;
    }
    ScheduleChanged "schedule_changed" {
        schedule_id: ScheduleId::get, schedule;
        change: code, value;
    }
    ScheduleFired "schedule_fired" {
        schedule_id: ScheduleId::get, schedule;
    }
    ScheduleEnded "schedule_ended" {
        schedule_id: ScheduleId::get, schedule;
    }
}

fn plain<T>(value: T, _: &str) -> Result<T, Invalid> {
    Ok(value)
}

fn some_timestamp(time: WallTime) -> Option<Timestamp> {
    Some(timestamp(time))
}

fn optional_timestamp(time: Option<WallTime>) -> Option<Timestamp> {
    time.map(timestamp)
}

fn command_number(id: Option<CommandId>) -> u64 {
    number(id, CommandId::get)
}

fn optional_command(number: u64, path: &str) -> Result<Option<CommandId>, Invalid> {
    optional_id(number, CommandId::new, path)
}

fn schedule(number: u64, path: &str) -> Result<ScheduleId, Invalid> {
    id(number, ScheduleId::new, path)
}

/// Converts the facts of an event to the wire; `None` if there are none.
pub(super) fn to_wire(facts: Facts) -> Option<v1::event::Facts> {
    use v1::event::Facts as Wire;
    match facts {
        Facts::DeliveryLeased(facts) => facts.map(|facts| Wire::DeliveryLeased(facts.into_wire())),
        Facts::DeliveryAcked(facts) => facts.map(|facts| Wire::DeliveryAcked(facts.into_wire())),
        Facts::DeliveryReturned(facts) => {
            facts.map(|facts| Wire::DeliveryReturned(facts.into_wire()))
        }
        Facts::DeliveryDead(facts) => facts.map(|facts| Wire::DeliveryDead(facts.into_wire())),
        Facts::DeliveryHeld(facts) => facts.map(|facts| Wire::DeliveryHeld(facts.into_wire())),
        Facts::TurnBegun(facts) => facts.map(|facts| Wire::TurnBegun(facts.into_wire())),
        Facts::TurnEnded(facts) => facts.map(|facts| Wire::TurnEnded(facts.into_wire())),
        Facts::HarnessAttached(facts) => {
            facts.map(|facts| Wire::HarnessAttached(facts.into_wire()))
        }
        Facts::HarnessLost(facts) => facts.map(|facts| Wire::HarnessLost(facts.into_wire())),
        Facts::AgentCreated(facts) => facts.map(|facts| Wire::AgentCreated(facts.into_wire())),
        Facts::AgentChanged(facts) => facts.map(|facts| Wire::AgentChanged(facts.into_wire())),
        Facts::AgentParked(facts) => facts.map(|facts| Wire::AgentParked(facts.into_wire())),
        Facts::CommandGiven(facts) => facts.map(|facts| Wire::CommandGiven(facts.into_wire())),
        Facts::CommandClosed(facts) => facts.map(|facts| Wire::CommandClosed(facts.into_wire())),
        Facts::Refused(facts) => facts.map(|facts| Wire::Refused(facts.into_wire())),
        Facts::ReminderSet(facts) => facts.map(|facts| Wire::ReminderSet(facts.into_wire())),
        Facts::HarnessStateChanged(facts) => {
            facts.map(|facts| Wire::HarnessStateChanged(facts.into_wire()))
        }
        Facts::ScheduleCreated(facts) => {
            facts.map(|facts| Wire::ScheduleCreated(facts.into_wire()))
        }
        Facts::ScheduleChanged(facts) => {
            facts.map(|facts| Wire::ScheduleChanged(facts.into_wire()))
        }
        Facts::ScheduleFired(facts) => facts.map(|facts| Wire::ScheduleFired(facts.into_wire())),
        Facts::ScheduleEnded(facts) => facts.map(|facts| Wire::ScheduleEnded(facts.into_wire())),
        Facts::MessageAccepted
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
        | Facts::LogBegun => None,
    }
}

/// Converts the facts of an event of this kind from the wire.
pub(super) fn from_wire(kind: Kind, wire: Option<v1::event::Facts>) -> Result<Facts, Invalid> {
    use v1::event::Facts as Wire;
    let facts: Facts = match wire {
        None => return Ok(Facts::unknown(kind)),
        Some(Wire::DeliveryLeased(facts)) => DeliveryLeased::from_wire(facts)?.into(),
        Some(Wire::DeliveryAcked(facts)) => DeliveryAcked::from_wire(facts)?.into(),
        Some(Wire::DeliveryReturned(facts)) => DeliveryReturned::from_wire(facts)?.into(),
        Some(Wire::DeliveryDead(facts)) => DeliveryDead::from_wire(facts)?.into(),
        Some(Wire::DeliveryHeld(facts)) => DeliveryHeld::from_wire(facts)?.into(),
        Some(Wire::TurnBegun(facts)) => TurnBegun::from_wire(facts)?.into(),
        Some(Wire::TurnEnded(facts)) => TurnEnded::from_wire(facts)?.into(),
        Some(Wire::HarnessAttached(facts)) => HarnessAttached::from_wire(facts)?.into(),
        Some(Wire::HarnessLost(facts)) => HarnessLost::from_wire(facts)?.into(),
        Some(Wire::AgentCreated(facts)) => AgentCreated::from_wire(facts)?.into(),
        Some(Wire::AgentChanged(facts)) => AgentChanged::from_wire(facts)?.into(),
        Some(Wire::AgentParked(facts)) => AgentParked::from_wire(facts)?.into(),
        Some(Wire::CommandGiven(facts)) => CommandGiven::from_wire(facts)?.into(),
        Some(Wire::CommandClosed(facts)) => CommandClosed::from_wire(facts)?.into(),
        Some(Wire::Refused(facts)) => CallRefused::from_wire(facts)?.into(),
        Some(Wire::ReminderSet(facts)) => ReminderSet::from_wire(facts)?.into(),
        Some(Wire::HarnessStateChanged(facts)) => HarnessStateChanged::from_wire(facts)?.into(),
        Some(Wire::ScheduleCreated(facts)) => ScheduleCreated::from_wire(facts)?.into(),
        Some(Wire::ScheduleChanged(facts)) => ScheduleChanged::from_wire(facts)?.into(),
        Some(Wire::ScheduleFired(facts)) => ScheduleFired::from_wire(facts)?.into(),
        Some(Wire::ScheduleEnded(facts)) => ScheduleEnded::from_wire(facts)?.into(),
    };
    if facts.kind() == kind {
        Ok(facts)
    } else {
        Err(Invalid::new("facts", format!("are of the kind {:?}, not {kind:?}", facts.kind())))
    }
}
