//! The nouns that come back from the broker: a client reads them from the wire, and they go onto it
//! again.
//!
//! What it is not: requests, which are in `requests`. Invariant: a noun that was read is the same
//! after another round over the wire, and one that cannot be read is refused with the path of its
//! field.

use hive_core::agent::Agent;
use hive_core::command::Command;
use hive_core::delivery::Delivery;
use hive_core::event::Event;
use hive_core::loose_end::LooseEnd;
use hive_core::message::Message;
use hive_core::park;
use hive_core::question::Question;
use hive_core::reminder::Reminder;
use hive_core::schedule::Schedule;
use hive_core::turn::Turn;
use hive_proto::convert::{FromWire, IntoWire};
use hive_proto::v1;

use crate::requests::{decoded, refused};

/// A noun and its check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noun {
    pub(crate) check: fn(&[u8]),
}

fn round<W, C>(bytes: &[u8])
where
    W: prost::Message + Default + PartialEq + std::fmt::Debug,
    C: FromWire<Wire = W> + IntoWire<Wire = W> + Clone + PartialEq + std::fmt::Debug,
{
    let Some(wire) = decoded::<W>(bytes) else { return };
    match C::from_wire(wire) {
        Ok(core) => assert_eq!(
            C::from_wire(core.clone().into_wire()),
            Ok(core),
            "another value after a round over the wire"
        ),
        Err(fault) => refused(&fault),
    }
}

pub(crate) const ALL: [Noun; 11] = [
    Noun { check: round::<v1::Message, Message> },
    Noun { check: round::<v1::Schedule, Schedule> },
    Noun { check: round::<v1::Delivery, Delivery> },
    Noun { check: round::<v1::Turn, Turn> },
    Noun { check: round::<v1::Question, Question> },
    Noun { check: round::<v1::Reminder, Reminder> },
    Noun { check: round::<v1::Event, Event> },
    Noun { check: round::<v1::LooseEnd, LooseEnd> },
    Noun { check: round::<v1::Command, Command> },
    Noun { check: round::<v1::Agent, Agent> },
    Noun { check: round::<v1::Park, park::View> },
];
