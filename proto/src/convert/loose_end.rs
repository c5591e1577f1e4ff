//! Loose ends.

use hive_core::loose_end::{Kind, LooseEnd};

use super::time::{optional_wall_time, required_wall_time, timestamp};
use super::{FromWire, IntoWire, Invalid, id, same_values, value};
use crate::v1;

same_values!(
    v1::LooseEndKind,
    Kind { QuestionAsked, QuestionOwed, Reminder, DeadLetter, External, Approval }
);

impl IntoWire for LooseEnd {
    type Wire = v1::LooseEnd;
    fn into_wire(self) -> v1::LooseEnd {
        let LooseEnd { kind, id, agent, peer, text, create_time, due_time, key } = self;
        v1::LooseEnd {
            kind: kind.into_wire().into(),
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

impl FromWire for LooseEnd {
    type Wire = v1::LooseEnd;
    fn from_wire(wire: v1::LooseEnd) -> Result<Self, Invalid> {
        let v1::LooseEnd { kind, id: number, agent, peer, text, create_time, due_time, key } = wire;
        Ok(Self {
            kind: value(kind, "kind")?,
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
