//! The facts of events, a struct for each kind that has some.
//!
//! Invariant: they are plain numbers and values of enums; text for people is the event's detail.

use crate::agent::{HarnessState, Source};
use crate::command;
use crate::delivery::RedeliveryCause;
use crate::id::{CommandId, ScheduleId};
use crate::reason::Reason;
use crate::time::WallTime;
use crate::turn::{self, Outcome};

/// Who acked a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Settler {
    /// The holder of its lease.
    Holder,
    /// The operator.
    Operator,
}

/// Why the session of a harness ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HarnessLoss {
    /// Another harness took over.
    TakenOver,
    /// It stayed away for longer than the grace time.
    StayedAway,
    /// A backup has replaced the database.
    Restored,
    /// It left, because there was no work.
    Left,
}

/// What changed in an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AgentChange {
    /// The operator chose another model.
    Model,
    /// The operator moved it in the tree.
    Parent,
    /// The operator changed parts of its policy.
    Policy,
    /// Its part of the configuration file changed.
    File,
    /// The operator approved another role.
    Role,
}

/// A delivery was leased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryLeased {
    /// The attempt that begins, from 1.
    pub attempt: u32,
    /// Why it was last requeued; `None` if it never was.
    pub cause: Option<RedeliveryCause>,
}

/// A delivery was acked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryAcked {
    /// The attempt that held it last; 0 before the first.
    pub attempt: u32,
    /// Who acked it.
    pub settler: Settler,
}

/// A delivery was requeued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryReturned {
    /// The attempt that ended.
    pub attempt: u32,
    /// Why it was requeued.
    pub cause: RedeliveryCause,
}

/// A delivery became a dead letter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryDead {
    /// The attempt that ended.
    pub attempt: u32,
    /// Why this attempt failed.
    pub cause: RedeliveryCause,
}

/// A delivery was held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryHeld {
    /// The attempt whose turn was cancelled.
    pub attempt: u32,
}

/// A turn began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnBegun {
    /// The purpose of the turn.
    pub kind: turn::Kind,
    /// The session epoch in which it began.
    pub session_epoch: u64,
}

/// A turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnEnded {
    /// How it ended.
    pub outcome: Outcome,
    /// The session epoch in which it began.
    pub session_epoch: u64,
}

/// A harness attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarnessAttached {
    /// The new session epoch.
    pub session_epoch: u64,
}

/// A harness was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarnessLost {
    /// The session epoch that ended.
    pub session_epoch: u64,
    /// Why it ended.
    pub loss: HarnessLoss,
}

/// An agent was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentCreated {
    /// Who declared it.
    pub source: Source,
}

/// An agent was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentChanged {
    /// What changed.
    pub change: AgentChange,
}

/// An agent was parked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentParked {
    /// The outcome that caused the park.
    pub cause: Outcome,
    /// When the park ends; `None` if it waits for a login.
    pub until_time: Option<WallTime>,
}

/// The operator gave a harness a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandGiven {
    /// What was asked of the harness.
    pub kind: command::Kind,
    /// The command; `None` for a login dialogue.
    pub command_id: Option<CommandId>,
}

/// A command or a login dialogue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandClosed {
    /// Whether it was carried out.
    pub done: bool,
    /// The command; `None` for a login dialogue.
    pub command_id: Option<CommandId>,
}

/// A call was refused by policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallRefused {
    /// Why it was refused.
    pub reason: Reason,
}

/// A reminder was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReminderSet {
    /// When it is due.
    pub due_time: WallTime,
}

/// A harness reported another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HarnessStateChanged {
    /// The new state.
    pub state: HarnessState,
}

/// A schedule was created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleCreated {
    /// The schedule.
    pub schedule_id: ScheduleId,
}

/// What changed in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// Its text, its targets or its times.
    Edited,
    /// The operator paused it.
    Paused,
    /// The operator resumed it.
    Resumed,
}

/// A schedule was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleChanged {
    /// The schedule.
    pub schedule_id: ScheduleId,
    /// What changed.
    pub change: ScheduleChange,
}

/// A schedule fired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleFired {
    /// The schedule.
    pub schedule_id: ScheduleId,
}

/// A schedule ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduleEnded {
    /// The schedule.
    pub schedule_id: ScheduleId,
}
