//! Loose ends.

use hive_core::loose_end::{Kind, LooseEnd};

use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{Invalid, id, same_values, value};
use crate::v1;

same_values!(
    v1::LooseEndKind,
    Kind { QuestionAsked, QuestionOwed, Reminder, DeadLetter, External }
);

impl From<LooseEnd> for v1::LooseEnd {
    fn from(loose_end: LooseEnd) -> Self {
        let LooseEnd { kind, id, agent, peer, text, create_time, due_time, key } = loose_end;
        Self {
            kind: v1::LooseEndKind::from(kind).into(),
            id,
            agent,
            peer,
            text,
            create_time: Some(timestamp(create_time)),
            due_time: due_time.map(timestamp),
            key,
        }
    }
}

impl TryFrom<v1::LooseEnd> for LooseEnd {
    type Error = Invalid;
    fn try_from(wire: v1::LooseEnd) -> Result<Self, Invalid> {
        let v1::LooseEnd { kind, id: number, agent, peer, text, create_time, due_time, key } = wire;
        Ok(Self {
            kind: value::<v1::LooseEndKind, _>(kind, "kind")?,
            id: id(number, |number| (number > 0).then_some(number), "id")?,
            agent,
            peer,
            text,
            create_time: required_wall_time(create_time, "create_time")?,
            due_time: optional_wall_time(due_time, "due_time")?,
            key,
        })
    }
}
