//! Questions and answers.

use hive_core::id::{MessageId, QuestionId, TurnId, number};
use hive_core::question::{Answer, Question, State, Wording};

use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{FromWire, IntoWire, Invalid, id, optional_as, optional_id, same_values, value};
use crate::v1;

same_values!(v1::QuestionState, State { Open, Answered, Expired, Cancelled });

/// Parses the states in a filter; empty means all.
pub fn states(numbers: &[i32], path: &str) -> Result<Vec<State>, Invalid> {
    numbers.iter().map(|number| value::<State>(*number, path)).collect()
}

impl IntoWire for Answer {
    type Wire = v1::Answer;
    fn into_wire(self) -> v1::Answer {
        let Answer { choices, text } = self;
        v1::Answer { choices, text }
    }
}

/// Converts an answer from the wire.
#[must_use]
pub fn answer(wire: v1::Answer) -> Answer {
    let v1::Answer { choices, text } = wire;
    Answer { choices, text }
}

impl IntoWire for Question {
    type Wire = v1::Question;
    fn into_wire(self) -> v1::Question {
        let Question {
            id,
            asker,
            target,
            wording: Wording { text, options, multi },
            state,
            create_time,
            deadline_time,
            answer,
            closed_by,
            operator_override,
            close_time,
            turn_id,
            message_id,
            approval,
        } = self;
        v1::Question {
            id: id.get(),
            asker,
            target,
            text,
            options,
            multi,
            state: state.into_wire().into(),
            create_time: Some(timestamp(create_time)),
            deadline_time: deadline_time.map(timestamp),
            answer: answer.map(IntoWire::into_wire),
            closed_by,
            operator_override,
            close_time: close_time.map(timestamp),
            turn_id: number(turn_id, TurnId::get),
            message_id: number(message_id, MessageId::get),
            approval: approval.map(|approval| approval.into_wire()),
        }
    }
}

impl FromWire for Question {
    type Wire = v1::Question;
    fn from_wire(wire: v1::Question) -> Result<Self, Invalid> {
        let v1::Question {
            id: number,
            asker,
            target,
            text,
            options,
            multi,
            state,
            create_time,
            deadline_time,
            answer,
            closed_by,
            operator_override,
            close_time,
            turn_id,
            message_id,
            approval,
        } = wire;
        Ok(Self {
            id: id(number, QuestionId::new, "id")?,
            asker,
            target,
            wording: Wording { text, options, multi },
            state: value(state, "state")?,
            create_time: required_wall_time(create_time, "create_time")?,
            deadline_time: optional_wall_time(deadline_time, "deadline_time")?,
            answer: answer.map(self::answer),
            closed_by,
            operator_override,
            close_time: optional_wall_time(close_time, "close_time")?,
            turn_id: optional_id(turn_id, TurnId::new, "turn_id")?,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
            approval: optional_as(approval, "approval")?.map(Box::new),
        })
    }
}
