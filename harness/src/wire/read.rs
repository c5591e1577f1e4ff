//! Values of `hive-core` from the broker's answers.
//!
//! Invariant: a field that the harness does not need makes no answer unreadable. An unknown enum
//! value is read as the one that claims least.

use hive_core::agent::Agent;
use hive_core::command::Command;
use hive_core::delivery::Delivery;
use hive_core::id::TurnId;
use hive_core::message::Origin;
use hive_core::name::AgentName;
use hive_core::park;
use hive_core::trace::TraceContext;
use hive_core::tree::Kin;
use hive_proto::convert::time::optional_span;
use hive_proto::convert::{FromWire, Invalid, id, required};
use hive_proto::v1;

use crate::turn::input::{Begun, Opened};

/// The name of an origin that this version does not know.
const UNKNOWN: &str = "unknown";

/// Reads the agent of a session.
pub fn agent(mut wire: v1::Agent) -> Result<Agent, Invalid> {
    replace_unknown(&mut wire.source, v1::AgentSource::Runtime);
    replace_unknown(&mut wire.state, v1::HarnessState::Offline);
    forget_unknown::<v1::Isolation>(&mut wire.isolation);
    replace_unknown(&mut wire.kick_on_start, v1::KickOnStart::Never);
    wire.state_time.get_or_insert_default();
    // An agent without a policy may use no tool.
    wire.policy.get_or_insert_default();
    let park = park(wire.park.take());
    Ok(Agent { park, ..Agent::from_wire(wire)? })
}

/// Reads a park. A park with an unknown cause still counts: the agent starts no turns.
pub(super) fn park(wire: Option<v1::Park>) -> Option<park::View> {
    let mut wire = wire?;
    replace_unknown(&mut wire.cause, v1::TurnOutcome::Unavailable);
    if optional_span(wire.remaining, "remaining").is_err() {
        wire.remaining = None;
    }
    log_unreadable(park::View::from_wire(wire), "the agent's park")
}

/// Reads the parent and the children of an agent, without children that cannot be read.
pub(super) fn kin(wire: Option<v1::Kin>) -> Kin {
    let mut wire = wire.unwrap_or_default();
    wire.children.retain(|child| AgentName::parse(&child.name).is_ok());
    log_unreadable(Kin::from_wire(wire), "the agent's kin").unwrap_or_default()
}

/// Reads a command; the error is the number of one that this version does not know.
pub(super) fn command(wire: v1::Command) -> Result<Command, u64> {
    let id = wire.id;
    Command::from_wire(wire).map_err(|_| id)
}

/// Reads the beginning of a turn.
pub fn begun(wire: v1::BeginTurnResponse) -> Result<Begun, Invalid> {
    let v1::BeginTurnResponse {
        turn,
        delivery,
        pending_count,
        already_sent,
        already_asked,
        already_reminded,
        commands,
    } = wire;
    let mut delivery = required(delivery, "delivery")?;
    amend_delivery(&mut delivery);
    let Opened { turn_id, trace } = opened(turn)?;
    Ok(Begun {
        turn_id,
        trace,
        delivery: Delivery::from_wire(delivery).map_err(|fault| fault.within("delivery"))?,
        pending_count,
        already_sent: read_each(already_sent, amend_message, "a message of an earlier attempt"),
        already_asked: read_each(already_asked, amend_question, "a question of an earlier attempt"),
        already_reminded: read_each(
            already_reminded,
            amend_reminder,
            "a reminder of an earlier attempt",
        ),
        // The session's stream brings every command too, and there an unknown one is refused.
        commands: commands.into_iter().filter_map(|wire| command(wire).ok()).collect(),
        agenda: None,
    })
}

/// Reads a turn that is open.
pub(super) fn opened(turn: Option<v1::Turn>) -> Result<Opened, Invalid> {
    let turn = required(turn, "turn")?;
    let turn_id = id(turn.id, TurnId::new, "turn.id")?.get();
    Ok(Opened { turn_id, trace: TraceContext::parse(&turn.traceparent) })
}

/// Returns the value, or logs that it cannot be read.
pub(super) fn log_unreadable<T>(read: Result<T, Invalid>, what: &str) -> Option<T> {
    read.inspect_err(|fault| tracing::warn!(%fault, "{what} cannot be read and is passed over"))
        .ok()
}

/// Reads the values, without those that cannot be read.
fn read_each<C: FromWire>(wires: Vec<C::Wire>, amend: fn(&mut C::Wire), what: &str) -> Vec<C> {
    let read = |mut wire| {
        amend(&mut wire);
        log_unreadable(C::from_wire(wire), what)
    };
    wires.into_iter().filter_map(read).collect()
}

/// Replaces an enum value that is not set or not known.
fn replace_unknown<W: TryFrom<i32> + Into<i32>>(number: &mut i32, otherwise: W) {
    if *number == 0 || W::try_from(*number).is_err() {
        *number = otherwise.into();
    }
}

/// Removes an enum value that is not known.
fn forget_unknown<W: TryFrom<i32>>(number: &mut Option<i32>) {
    *number = number.filter(|number| *number != 0 && W::try_from(*number).is_ok());
}

fn amend_message(wire: &mut v1::Message) {
    forget_unknown::<v1::SystemKind>(&mut wire.system_kind);
    wire.accept_time.get_or_insert_default();
    if wire.origin.clone().is_none_or(|origin| Origin::from_wire(origin).is_err()) {
        // Of all origins this one is trusted least.
        let kind = v1::OriginKind::External.into();
        wire.origin = Some(v1::Origin { kind, name: UNKNOWN.to_owned() });
    }
}

fn amend_delivery(wire: &mut v1::Delivery) {
    replace_unknown(&mut wire.lane, v1::Lane::Normal);
    replace_unknown(&mut wire.state, v1::DeliveryState::Leased);
    forget_unknown::<v1::RedeliveryCause>(&mut wire.redelivery_cause);
    wire.state_time.get_or_insert_default();
    if let Some(message) = &mut wire.message {
        amend_message(message);
    }
}

fn amend_question(wire: &mut v1::Question) {
    replace_unknown(&mut wire.state, v1::QuestionState::Open);
    wire.create_time.get_or_insert_default();
}

fn amend_reminder(wire: &mut v1::Reminder) {
    replace_unknown(&mut wire.state, v1::ReminderState::Pending);
    wire.create_time.get_or_insert_default();
}

#[cfg(test)]
mod tests {
    use hive_core::turn::Outcome;

    use super::*;

    /// A number that no enum of the contract has.
    const NEWER: i32 = 9_999;

    fn message(id: u64, origin: v1::Origin) -> v1::Message {
        let system_kind = Some(NEWER);
        v1::Message { id, origin: Some(origin), system_kind, ..v1::Message::default() }
    }

    #[test]
    fn an_agent_with_values_of_a_newer_broker_is_read() {
        let broken = Some(prost_types::Duration { seconds: 1, nanos: -1 });
        let read = agent(v1::Agent {
            name: "bob".into(),
            source: NEWER,
            state: NEWER,
            isolation: Some(NEWER),
            kick_on_start: NEWER,
            park: Some(v1::Park { cause: NEWER, remaining: broken, ..v1::Park::default() }),
            stopped: true,
            ..v1::Agent::default()
        })
        .expect("readable");
        assert!(read.stopped && read.policy.tool_groups.is_empty());
        let park = read.park.expect("a park");
        assert_eq!((park.cause, park.remaining), (Outcome::Unavailable, None));
        let fault = agent(v1::Agent::default()).expect_err("an agent has a name");
        assert_eq!(fault.path, "name");
    }

    #[test]
    fn a_turn_with_values_of_a_newer_broker_is_read() {
        let newer = v1::Origin { kind: NEWER, name: "Any Thing".into() };
        let delivery = v1::Delivery {
            message: Some(message(17, newer.clone())),
            lane: NEWER,
            state: NEWER,
            redelivery_cause: Some(NEWER),
            ..v1::Delivery::default()
        };
        let question = v1::Question { id: 5, state: NEWER, ..v1::Question::default() };
        let due_time = Some(prost_types::Timestamp::default());
        let reminder = v1::Reminder {
            id: 6,
            agent: "bob".into(),
            state: NEWER,
            due_time,
            ..v1::Reminder::default()
        };
        let wire = v1::BeginTurnResponse {
            turn: Some(v1::Turn { id: 7, kind: NEWER, ..v1::Turn::default() }),
            delivery: Some(delivery),
            // The second cannot be read at all.
            already_sent: vec![message(18, newer.clone()), message(0, newer)],
            already_asked: vec![question],
            already_reminded: vec![reminder],
            commands: vec![v1::Command { id: 30, command: None, create_time: None }],
            pending_count: 1,
        };
        let read = begun(wire.clone()).expect("readable");
        let message = &read.delivery.message;
        assert_eq!((read.turn_id, message.id.get(), message.system_kind), (7, 17, None));
        assert!(matches!(&message.origin, Origin::External(label) if label.as_str() == UNKNOWN));
        assert_eq!((read.delivery.cause, read.commands.len()), (None, 0));
        let earlier =
            (read.already_sent.len(), read.already_asked.len(), read.already_reminded.len());
        assert_eq!(earlier, (1, 1, 1));
        let fault = begun(v1::BeginTurnResponse { turn: None, ..wire }).expect_err("no turn");
        assert_eq!(fault.path, "turn");
    }

    #[test]
    fn a_command_of_a_newer_broker_is_known_by_its_number() {
        let wire = v1::Command { id: 30, command: None, create_time: None };
        assert_eq!(command(wire), Err(30));
    }
}
