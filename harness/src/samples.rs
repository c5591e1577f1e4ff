//! Messages and turns that tests begin with.

use hive_core::delivery::{Delivery, Lane, State};
use hive_core::id::MessageId;
use hive_core::message::{Message, Origin};
use hive_core::name::AgentName;
use hive_core::time::WallTime;

use crate::turn::input::Begun;

/// A message with nothing but a text.
pub(crate) fn message(id: u64, origin: Origin, body: &str) -> Message {
    Message {
        id: MessageId::new(id).expect("an id"),
        origin,
        recipients: Vec::new(),
        recipient_count: 1,
        body: body.to_owned(),
        in_reply_to: None,
        accept_time: WallTime(0),
        system_kind: None,
        broadcast: false,
        turn_id: None,
        coalescing_key: None,
        question_id: None,
        reminder_id: None,
        traceparent: None,
    }
}

/// The origin of a message of this agent.
pub(crate) fn agent(name: &str) -> Origin {
    Origin::Agent(AgentName::parse(name).expect("a name"))
}

/// The first attempt at a message.
pub(crate) fn begun(turn_id: u64, message: Message) -> Begun {
    Begun {
        turn_id,
        trace: None,
        delivery: Delivery {
            message,
            agent: "bob".to_owned(),
            lane: Lane::Normal,
            state: State::Leased,
            attempt: 1,
            cause: None,
            last_error: String::new(),
            output_tail: String::new(),
            turn_id: None,
            not_before: None,
            state_time: WallTime(0),
            settled_by: String::new(),
        },
        pending_count: 0,
        already_sent: Vec::new(),
        already_asked: Vec::new(),
        already_reminded: Vec::new(),
        commands: Vec::new(),
        agenda: None,
    }
}
