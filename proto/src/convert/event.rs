//! Events of the log.

mod facts;

use hive_core::event::{Event, Kind};
use hive_core::id::{MessageId, QuestionId, ReminderId, TurnId, number};

use super::time::{required_wall_time, timestamp};
use super::{FromWire, IntoWire, Invalid, optional_id, same_values, value};
use crate::v1;

same_values!(
    v1::EventKind,
    Kind {
        MessageAccepted,
        DeliveryLeased,
        DeliveryAcked,
        DeliveryReturned,
        DeliveryDead,
        DeliveryHeld,
        DeliveryReleased,
        DeliveryRedriven,
        DeliveryDropped,
        DeliverySuperseded,
        TurnBegun,
        TurnEnded,
        HarnessAttached,
        HarnessLost,
        AgentCreated,
        AgentChanged,
        AgentRetired,
        StatusChanged,
        AgentParked,
        CommandGiven,
        CommandClosed,
        Refused,
        QuestionAsked,
        QuestionAnswered,
        QuestionExpired,
        QuestionCancelled,
        ReminderSet,
        ReminderFired,
        ReminderCancelled,
        AgentStopped,
        AgentStarted,
        RestartRequested,
        HarnessCrashed,
        LogsRead,
        ActionBegun,
        ActionEnded,
        ScheduleCreated,
        ScheduleChanged,
        ScheduleFired,
        ScheduleEnded,
        AgentPurged,
        PurgeFinished,
        HarnessStateChanged,
        LogBegun,
    }
);

impl IntoWire for Event {
    type Wire = v1::Event;
    fn into_wire(self) -> v1::Event {
        let Event {
            sequence,
            facts,
            time,
            agent,
            message_id,
            turn_id,
            detail,
            question_id,
            reminder_id,
        } = self;
        v1::Event {
            sequence,
            kind: facts.kind().into_wire().into(),
            time: Some(timestamp(time)),
            agent,
            message_id: number(message_id, MessageId::get),
            turn_id: number(turn_id, TurnId::get),
            detail,
            question_id: number(question_id, QuestionId::get),
            reminder_id: number(reminder_id, ReminderId::get),
            facts: facts::to_wire(facts),
        }
    }
}

impl FromWire for Event {
    type Wire = v1::Event;
    fn from_wire(wire: v1::Event) -> Result<Self, Invalid> {
        let v1::Event {
            sequence,
            kind,
            time,
            agent,
            message_id,
            turn_id,
            detail,
            question_id,
            reminder_id,
            facts,
        } = wire;
        Ok(Self {
            sequence,
            facts: facts::from_wire(value(kind, "kind")?, facts)?,
            time: required_wall_time(time, "time")?,
            agent,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
            turn_id: optional_id(turn_id, TurnId::new, "turn_id")?,
            detail,
            question_id: optional_id(question_id, QuestionId::new, "question_id")?,
            reminder_id: optional_id(reminder_id, ReminderId::new, "reminder_id")?,
        })
    }
}
