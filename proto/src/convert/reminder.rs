//! Reminders.

use hive_core::id::{MessageId, ReminderId, TurnId, number};
use hive_core::reminder::{Reminder, State};

use super::message::agent_name;
use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{FromWire, IntoWire, Invalid, id, optional_id, same_values, value};
use crate::v1;

same_values!(v1::ReminderState, State { Pending, Fired, Cancelled });

/// Parses the states in a filter; empty means the default of the list.
pub fn states(numbers: &[i32], path: &str) -> Result<Vec<State>, Invalid> {
    numbers.iter().map(|number| value::<State>(*number, path)).collect()
}

impl IntoWire for Reminder {
    type Wire = v1::Reminder;
    fn into_wire(self) -> v1::Reminder {
        let Reminder {
            id,
            agent,
            body,
            state,
            create_time,
            due_time,
            close_time,
            message_id,
            turn_id,
        } = self;
        v1::Reminder {
            id: id.get(),
            agent: agent.into(),
            body,
            state: state.into_wire().into(),
            create_time: Some(timestamp(create_time)),
            due_time: Some(timestamp(due_time)),
            close_time: close_time.map(timestamp),
            message_id: number(message_id, MessageId::get),
            turn_id: number(turn_id, TurnId::get),
        }
    }
}

impl FromWire for Reminder {
    type Wire = v1::Reminder;
    fn from_wire(wire: v1::Reminder) -> Result<Self, Invalid> {
        let v1::Reminder {
            id: number,
            agent,
            body,
            state,
            create_time,
            due_time,
            close_time,
            message_id,
            turn_id,
        } = wire;
        Ok(Self {
            id: id(number, ReminderId::new, "id")?,
            agent: agent_name(&agent, "agent")?,
            body,
            state: value(state, "state")?,
            create_time: required_wall_time(create_time, "create_time")?,
            due_time: required_wall_time(due_time, "due_time")?,
            close_time: optional_wall_time(close_time, "close_time")?,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
            turn_id: optional_id(turn_id, TurnId::new, "turn_id")?,
        })
    }
}
