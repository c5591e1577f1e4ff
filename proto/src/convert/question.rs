//! Questions and answers.

use hive_core::id::{MessageId, QuestionId, TurnId, number};
use hive_core::question::{Answer, Question, State, Wording};

use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{Invalid, id, optional_id, same_values, value};
use crate::v1;

same_values!(v1::QuestionState, State { Open, Answered, Expired, Cancelled });

/// Parses the states in a filter; empty means all.
pub fn states(numbers: &[i32], path: &str) -> Result<Vec<State>, Invalid> {
    numbers.iter().map(|number| value::<v1::QuestionState, State>(*number, path)).collect()
}

impl From<Answer> for v1::Answer {
    fn from(answer: Answer) -> Self {
        let Answer { choices, text } = answer;
        Self { choices, text }
    }
}

impl From<v1::Answer> for Answer {
    fn from(wire: v1::Answer) -> Self {
        let v1::Answer { choices, text } = wire;
        Self { choices, text }
    }
}

impl From<Question> for v1::Question {
    fn from(question: Question) -> Self {
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
        } = question;
        Self {
            id: id.get(),
            asker,
            target,
            text,
            options,
            multi,
            state: v1::QuestionState::from(state).into(),
            create_time: Some(timestamp(create_time)),
            deadline_time: deadline_time.map(timestamp),
            answer: answer.map(v1::Answer::from),
            closed_by,
            operator_override,
            close_time: close_time.map(timestamp),
            turn_id: number(turn_id, TurnId::get),
            message_id: number(message_id, MessageId::get),
        }
    }
}

impl TryFrom<v1::Question> for Question {
    type Error = Invalid;
    fn try_from(wire: v1::Question) -> Result<Self, Invalid> {
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
        } = wire;
        Ok(Self {
            id: id(number, QuestionId::new, "id")?,
            asker,
            target,
            wording: Wording { text, options, multi },
            state: value::<v1::QuestionState, _>(state, "state")?,
            create_time: required_wall_time(create_time, "create_time")?,
            deadline_time: optional_wall_time(deadline_time, "deadline_time")?,
            answer: answer.map(Answer::from),
            closed_by,
            operator_override,
            close_time: optional_wall_time(close_time, "close_time")?,
            turn_id: optional_id(turn_id, TurnId::new, "turn_id")?,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
        })
    }
}
