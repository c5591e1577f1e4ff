//! Round trips of every type of `hive-core`: core -> wire -> bytes -> wire -> core returns the same
//! value. Also checks that invalid input is refused.

use std::time::Duration;

use hive_core::agent::{Agent, Isolation};
use hive_core::command::{self, Command, Order};
use hive_core::delivery::{Delivery, RedeliveryCause, State};
use hive_core::effect;
use hive_core::event::{self, Event};
use hive_core::limits::{Backoff, Limits};
use hive_core::loose_end::{self, LooseEnd};
use hive_core::message::{Message, Recipient, SystemKind};
use hive_core::park;
use hive_core::question::{self, Question};
use hive_core::reason::Reason;
use hive_core::reminder::{self, Reminder};
use hive_core::schedule::{self, Schedule};
use hive_core::time::WallTime;
use hive_core::tree::{Found, Kin};
use hive_core::turn::{Kind, Outcome, Turn};
use proptest::prelude::*;

use super::{
    FromWire, IntoWire as _, Invalid, agent, delivery, optional_value, request, strategies, time,
    turn, value,
};
use crate::v1;

/// Encodes a protobuf message to bytes and decodes it again.
fn through_bytes<W: prost::Message + Default>(wire: &W) -> W {
    W::decode(wire.encode_to_vec().as_slice()).expect("what was encoded can be decoded")
}

/// Returns each number from 0 to 199 that is a value of this enum on the wire, with its core value.
fn values<C: FromWire<Wire: TryFrom<i32>>>() -> Vec<(i32, C)> {
    (0..200).filter_map(|number| value(number, "x").ok().map(|value| (number, value))).collect()
}

proptest! {
    #[test]
    fn messages(core in strategies::message()) {
        prop_assert_eq!(Message::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn recipients(core in strategies::recipient()) {
        prop_assert_eq!(Recipient::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn deliveries(core in strategies::delivery()) {
        prop_assert_eq!(Delivery::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn turns(core in strategies::turn()) {
        prop_assert_eq!(Turn::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn tool_uses(core in strategies::tool_use()) {
        prop_assert_eq!(turn::tool_use(through_bytes(&core.clone().into_wire())), core);
    }

    #[test]
    fn usages(core in strategies::usage()) {
        prop_assert_eq!(turn::usage(through_bytes(&core.into_wire())), core);
    }

    #[test]
    fn parks(core in strategies::park()) {
        prop_assert_eq!(park::View::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn agents(core in strategies::agent()) {
        prop_assert_eq!(Agent::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn backoffs(base in any::<u32>(), max in any::<u32>()) {
        let core = Backoff { base: Duration::from_millis(base.into()), max: Duration::from_millis(max.into()) };
        prop_assert_eq!(Backoff::from_wire(through_bytes(&core.into_wire())), Ok(core));
    }

    #[test]
    fn kin(core in strategies::kin()) {
        prop_assert_eq!(Kin::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn found_agents(core in strategies::found()) {
        prop_assert_eq!(Found::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn policies(core in strategies::policy()) {
        prop_assert_eq!(agent::policy(through_bytes(&core.clone().into_wire())), core);
    }

    #[test]
    fn commands(core in strategies::command()) {
        prop_assert_eq!(Command::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn orders(core in strategies::order()) {
        prop_assert_eq!(Order::from_wire(core.clone().into_wire()), Ok(core));
    }

    #[test]
    fn events(core in strategies::event()) {
        prop_assert_eq!(Event::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn questions(core in strategies::question()) {
        prop_assert_eq!(Question::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn schedules(core in strategies::schedule()) {
        prop_assert_eq!(Schedule::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn reminders(core in strategies::reminder()) {
        prop_assert_eq!(Reminder::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn loose_ends(core in strategies::loose_end()) {
        prop_assert_eq!(LooseEnd::from_wire(through_bytes(&core.clone().into_wire())), Ok(core));
    }

    #[test]
    fn instants(core in strategies::wall_time()) {
        prop_assert_eq!(time::wall_time(through_bytes(&time::timestamp(core)), "at"), Ok(core));
    }

    #[test]
    fn spans(seconds in 0..315_576_000_000_u64, nanos in 0..1_000_000_000_u32) {
        let core = Duration::new(seconds, nanos);
        prop_assert_eq!(time::span(through_bytes(&time::duration(core)), "for"), Ok(core));
    }

    #[test]
    fn no_timestamp_panics_and_an_accepted_one_keeps_its_second(seconds in any::<i64>(), nanos in any::<i32>()) {
        let taken = time::wall_time(prost_types::Timestamp { seconds, nanos }, "at");
        prop_assert!(taken.is_err() || (0..1_000_000_000).contains(&nanos));
        if let Ok(time) = taken {
            prop_assert_eq!(time.0.div_euclid(1000), seconds);
        }
    }

    #[test]
    fn no_duration_panics_and_a_negative_one_is_refused(seconds in any::<i64>(), nanos in any::<i32>()) {
        let taken = time::span(prost_types::Duration { seconds, nanos }, "for");
        prop_assert!(taken.is_err() || (seconds >= 0 && nanos >= 0));
    }

    #[test]
    fn no_bytes_of_a_delivery_panic_and_a_refusal_names_a_path(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        // A decoded message is either converted or refused with the path of the invalid field.
        if let Ok(wire) = <v1::Delivery as prost::Message>::decode(bytes.as_slice())
            && let Err(fault) = Delivery::from_wire(wire)
        {
            prop_assert!(!fault.path.is_empty());
        }
    }
}

#[test]
fn every_enum_value_converts_and_unspecified_is_refused() {
    for (number, core) in values::<State>() {
        assert_eq!(i32::from(core.into_wire()), number);
    }
    for (number, core) in values::<Kind>() {
        assert_eq!(i32::from(core.into_wire()), number);
    }
    assert_eq!(values::<State>().len(), 7);
    assert_eq!(values::<RedeliveryCause>().len(), 12);
    assert_eq!(values::<Kind>().len(), 4);
    assert_eq!(values::<Outcome>().len(), 9);
    assert_eq!(values::<event::Kind>().len(), event::Kind::ALL.len());
    assert_eq!(values::<event::Settler>().len(), 2);
    assert_eq!(values::<event::HarnessLoss>().len(), 4);
    assert_eq!(values::<event::AgentChange>().len(), 5);
    assert_eq!(values::<command::Kind>().len(), 6);
    assert_eq!(values::<Reason>().len(), Reason::ALL.len());
    assert_eq!(values::<SystemKind>().len(), 18);
    assert_eq!(values::<Isolation>().len(), 5);
    assert_eq!(values::<question::State>().len(), 4);
    assert_eq!(values::<reminder::State>().len(), 3);
    assert_eq!(values::<schedule::State>().len(), 3);
    assert_eq!(values::<event::ScheduleChange>().len(), 3);
    assert_eq!(values::<loose_end::Kind>().len(), 6);
    assert_eq!(values::<effect::RunState>().len(), 4);
    for number in [0, -1, 99, i32::MAX] {
        assert!(value::<State>(number, "state").is_err(), "{number}");
    }
    assert_eq!(optional_value::<Isolation>(None, "isolation"), Ok(None));
    for number in [0, 99] {
        let read = optional_value::<Isolation>(Some(number), "isolation");
        assert!(read.is_err(), "{number}");
    }
}

#[test]
fn faults_name_the_field_from_the_outside_in() {
    let mut wire = v1::Delivery {
        message: Some(v1::Message {
            id: 7,
            origin: Some(v1::Origin {
                kind: v1::OriginKind::Agent.into(),
                name: "Not A Name".to_owned(),
            }),
            accept_time: Some(time::timestamp(WallTime(0))),
            ..v1::Message::default()
        }),
        ..v1::Delivery::default()
    };
    let fault = Delivery::from_wire(wire.clone()).expect_err("the name is invalid");
    assert_eq!(fault.path, "message.origin.name");
    wire.message = None;
    assert_eq!(Delivery::from_wire(wire), Err(Invalid::new("message", "must be set")));

    let missing = super::required_as::<Recipient>(Some(v1::Recipient { to: None }), "to")
        .expect_err("no recipient is set");
    assert_eq!(missing.path, "to");
    let status = tonic::Status::from(missing);
    assert_eq!(status.code(), tonic::Code::InvalidArgument);
    assert_eq!(crate::status::reason(&status), Some(Reason::FieldInvalid));
}

#[test]
fn an_event_has_the_facts_of_its_own_kind() {
    let facts = v1::DeliveryReturned { attempt: 2, cause: v1::RedeliveryCause::Nacked.into() };
    let wire = v1::Event {
        kind: v1::EventKind::DeliveryReturned.into(),
        time: Some(time::timestamp(WallTime(0))),
        facts: Some(v1::event::Facts::DeliveryReturned(facts)),
        ..v1::Event::default()
    };
    let core = Event::from_wire(wire.clone()).expect("both are of one kind");
    let returned = event::DeliveryReturned { attempt: 2, cause: RedeliveryCause::Nacked };
    assert_eq!(core.facts, event::Facts::DeliveryReturned(Some(returned)));
    let old = Event::from_wire(v1::Event { facts: None, ..wire.clone() }).expect("no facts");
    assert_eq!(old.facts, event::Facts::DeliveryReturned(None));
    let other = v1::Event { kind: v1::EventKind::DeliveryDead.into(), ..wire.clone() };
    assert_eq!(Event::from_wire(other).expect_err("another kind").path, "facts");
    let no_cause = v1::DeliveryReturned { attempt: 2, cause: 0 };
    let facts = Some(v1::event::Facts::DeliveryReturned(no_cause));
    let fault = Event::from_wire(v1::Event { facts, ..wire }).expect_err("the cause is not set");
    assert_eq!(fault.path, "delivery_returned.cause");
}

#[test]
fn missing_ids_and_invalid_keys_are_refused() {
    let turn = v1::Turn { id: 0, ..v1::Turn::default() };
    assert_eq!(Turn::from_wire(turn).expect_err("0 is no id").path, "id");
    let cancel = v1::command::Command::CancelTurn(v1::CancelTurn { turn_id: 0 });
    assert_eq!(Order::from_wire(cancel).expect_err("0 is no turn").path, "cancel_turn.turn_id");
    let key = v1::DeliveryKey { agent: "operator".to_owned(), message_id: 0 };
    assert_eq!(
        delivery::key(Some(key), "key").expect_err("0 is no message").path,
        "key.message_id"
    );
    let key = v1::DeliveryKey { agent: "Nobody!".to_owned(), message_id: 1 };
    assert_eq!(delivery::key(Some(key), "key").expect_err("the name is invalid").path, "key.agent");
    assert!(delivery::states(&[1, 0], "states").is_err());
}

#[test]
fn request_fields_have_bounds() {
    for bad in [String::new(), "a\nb".to_owned(), "a\u{7f}".to_owned(), "x".repeat(129)] {
        assert!(request::request_id(bad.clone()).is_err(), "{bad:?}");
    }
    assert_eq!(request::request_id("ü".repeat(128)), Ok("ü".repeat(128)));
    assert!(request::process_token("x".repeat(15), "process_token").is_err());
    assert!(request::process_token("x".repeat(16), "process_token").is_ok());
    assert_eq!(request::coalescing_key(String::new(), "coalescing_key"), Ok(None));
    assert_eq!(request::etag(String::new(), "etag"), Ok(None));
    assert_eq!(request::etag("x".repeat(128), "etag"), Ok(Some("x".repeat(128))));
    for bad in ["x".repeat(129), "a\nb".to_owned()] {
        assert!(request::etag(bad.clone(), "etag").is_err(), "{bad:?}");
    }
}

#[test]
fn an_unknown_case_of_a_recipient_is_unset_and_no_recipient() {
    // A case with the number 5, a message with a text.
    let later = [5 << 3 | 2, 3, 1 << 3 | 2, 1, b'a'];
    let recipient = <v1::Recipient as prost::Message>::decode(&later[..]).expect("it is decoded");
    assert_eq!(recipient.to, None);
    assert!(Recipient::from_wire(recipient).is_err());
}

#[test]
fn open_turns_are_lists() {
    let set =
        <prost_types::FileDescriptorSet as prost::Message>::decode(crate::FILE_DESCRIPTOR_SET)
            .expect("descriptors");
    for (message, field) in [
        ("Attached", "open_turns"),
        ("HeartbeatResponse", "open_turn_ids"),
        ("Agent", "open_turn_ids"),
    ] {
        let found = set
            .file
            .iter()
            .flat_map(|file| &file.message_type)
            .filter(|found| found.name() == message)
            .flat_map(|found| &found.field)
            .find(|found| found.name() == field)
            .expect(field);
        let repeated = prost_types::field_descriptor_proto::Label::Repeated;
        assert_eq!(found.label(), repeated, "{message}.{field}");
    }
}

#[test]
fn spans_have_bounds() {
    let (default, max) = (Duration::from_secs(60), Duration::from_secs(3600));
    let of = |seconds| {
        request::bounded_span(
            Some(prost_types::Duration { seconds, nanos: 0 }),
            default,
            max,
            "lease_duration",
        )
    };
    assert_eq!(request::bounded_span(None, default, max, "lease_duration"), Ok(default));
    assert_eq!(of(3600), Ok(max));
    assert!(of(3601).is_err());
    assert!(of(-1).is_err());
    assert_eq!(
        time::duration(Duration::MAX),
        prost_types::Duration { seconds: 315_576_000_000, nanos: 0 }
    );
}

#[test]
fn limits_are_converted_to_the_wire() {
    let shown = Limits::default().into_wire();
    assert_eq!(shown.body_bytes_max, 32 * 1024);
    assert_eq!(shown.harness_grace, Some(prost_types::Duration { seconds: 60, nanos: 0 }));
}
