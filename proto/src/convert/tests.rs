//! Round trips of every type of `hive-core`: core -> wire -> bytes -> wire -> core returns the same
//! value. Also checks that invalid input is refused.

use std::time::Duration;

use hive_core::agent::{Agent, Isolation, Policy};
use hive_core::command::{self, Command, Order};
use hive_core::delivery::{Delivery, RedeliveryCause, State};
use hive_core::event::{self, Event};
use hive_core::limits::{Backoff, Limits};
use hive_core::loose_end::{self, LooseEnd};
use hive_core::message::{Message, Recipient, SystemKind};
use hive_core::park;
use hive_core::question::{self, Question};
use hive_core::reason::Reason;
use hive_core::reminder::{self, Reminder};
use hive_core::time::WallTime;
use hive_core::tree::{Found, Kin};
use hive_core::turn::{Kind, Outcome, ToolUse, Turn, Usage};
use proptest::prelude::*;

use super::{Invalid, delivery, optional_value, request, strategies, time, value};
use crate::v1;

/// Encodes a protobuf message to bytes and decodes it again.
fn through_bytes<W: prost::Message + Default>(wire: &W) -> W {
    W::decode(wire.encode_to_vec().as_slice()).expect("what was encoded can be decoded")
}

/// Returns each number from 0 to 199 that is a value of this enum on the wire, with its core value.
fn values<W: TryFrom<i32>, C: TryFrom<W, Error = Invalid>>() -> Vec<(i32, C)> {
    (0..200)
        .filter_map(|number| value::<W, C>(number, "x").ok().map(|value| (number, value)))
        .collect()
}

proptest! {
    #[test]
    fn messages(core in strategies::message()) {
        prop_assert_eq!(Message::try_from(through_bytes(&v1::Message::from(core.clone()))), Ok(core));
    }

    #[test]
    fn recipients(core in strategies::recipient()) {
        prop_assert_eq!(Recipient::try_from(through_bytes(&v1::Recipient::from(core.clone()))), Ok(core));
    }

    #[test]
    fn deliveries(core in strategies::delivery()) {
        prop_assert_eq!(Delivery::try_from(through_bytes(&v1::Delivery::from(core.clone()))), Ok(core));
    }

    #[test]
    fn turns(core in strategies::turn()) {
        prop_assert_eq!(Turn::try_from(through_bytes(&v1::Turn::from(core.clone()))), Ok(core));
    }

    #[test]
    fn tool_uses(core in strategies::tool_use()) {
        prop_assert_eq!(ToolUse::from(through_bytes(&v1::ToolUse::from(core.clone()))), core);
    }

    #[test]
    fn usages(core in strategies::usage()) {
        prop_assert_eq!(Usage::from(through_bytes(&v1::TurnUsage::from(core))), core);
    }

    #[test]
    fn parks(core in strategies::park()) {
        prop_assert_eq!(park::View::try_from(through_bytes(&v1::Park::from(core.clone()))), Ok(core));
    }

    #[test]
    fn agents(core in strategies::agent()) {
        prop_assert_eq!(Agent::try_from(through_bytes(&v1::Agent::from(core.clone()))), Ok(core));
    }

    #[test]
    fn backoffs(base in any::<u32>(), max in any::<u32>()) {
        let core = Backoff { base: Duration::from_millis(base.into()), max: Duration::from_millis(max.into()) };
        prop_assert_eq!(Backoff::try_from(through_bytes(&v1::Backoff::from(core))), Ok(core));
    }

    #[test]
    fn kin(core in strategies::kin()) {
        prop_assert_eq!(Kin::try_from(through_bytes(&v1::Kin::from(core.clone()))), Ok(core));
    }

    #[test]
    fn found_agents(core in strategies::found()) {
        prop_assert_eq!(Found::try_from(through_bytes(&v1::FoundAgent::from(core.clone()))), Ok(core));
    }

    #[test]
    fn policies(core in strategies::policy()) {
        prop_assert_eq!(Policy::from(through_bytes(&v1::Policy::from(core.clone()))), core);
    }

    #[test]
    fn commands(core in strategies::command()) {
        prop_assert_eq!(Command::try_from(through_bytes(&v1::Command::from(core.clone()))), Ok(core));
    }

    #[test]
    fn orders(core in strategies::order()) {
        prop_assert_eq!(Order::try_from(v1::command::Command::from(core.clone())), Ok(core));
    }

    #[test]
    fn events(core in strategies::event()) {
        prop_assert_eq!(Event::try_from(through_bytes(&v1::Event::from(core.clone()))), Ok(core));
    }

    #[test]
    fn questions(core in strategies::question()) {
        prop_assert_eq!(Question::try_from(through_bytes(&v1::Question::from(core.clone()))), Ok(core));
    }

    #[test]
    fn reminders(core in strategies::reminder()) {
        prop_assert_eq!(Reminder::try_from(through_bytes(&v1::Reminder::from(core.clone()))), Ok(core));
    }

    #[test]
    fn loose_ends(core in strategies::loose_end()) {
        prop_assert_eq!(LooseEnd::try_from(through_bytes(&v1::LooseEnd::from(core.clone()))), Ok(core));
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
            && let Err(fault) = Delivery::try_from(wire)
        {
            prop_assert!(!fault.path.is_empty());
        }
    }
}

#[test]
fn every_enum_value_converts_and_unspecified_is_refused() {
    for (number, core) in values::<v1::DeliveryState, State>() {
        assert_eq!(i32::from(v1::DeliveryState::from(core)), number);
    }
    for (number, core) in values::<v1::TurnKind, Kind>() {
        assert_eq!(i32::from(v1::TurnKind::from(core)), number);
    }
    assert_eq!(values::<v1::DeliveryState, State>().len(), 7);
    assert_eq!(values::<v1::RedeliveryCause, RedeliveryCause>().len(), 12);
    assert_eq!(values::<v1::TurnKind, Kind>().len(), 4);
    assert_eq!(values::<v1::TurnOutcome, Outcome>().len(), 9);
    assert_eq!(values::<v1::EventKind, event::Kind>().len(), event::Kind::ALL.len());
    assert_eq!(values::<v1::Settler, event::Settler>().len(), 2);
    assert_eq!(values::<v1::HarnessLoss, event::HarnessLoss>().len(), 3);
    assert_eq!(values::<v1::AgentChange, event::AgentChange>().len(), 4);
    assert_eq!(values::<v1::CommandKind, command::Kind>().len(), 6);
    assert_eq!(values::<v1::Reason, Reason>().len(), Reason::ALL.len());
    assert_eq!(values::<v1::SystemKind, SystemKind>().len(), 10);
    assert_eq!(values::<v1::Isolation, Isolation>().len(), 5);
    assert_eq!(values::<v1::QuestionState, question::State>().len(), 4);
    assert_eq!(values::<v1::ReminderState, reminder::State>().len(), 3);
    assert_eq!(values::<v1::LooseEndKind, loose_end::Kind>().len(), 5);
    for number in [0, -1, 99, i32::MAX] {
        assert!(value::<v1::DeliveryState, State>(number, "state").is_err(), "{number}");
    }
    assert_eq!(optional_value::<v1::Isolation, Isolation>(None, "isolation"), Ok(None));
    for number in [0, 99] {
        let read = optional_value::<v1::Isolation, Isolation>(Some(number), "isolation");
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
    let fault = Delivery::try_from(wire.clone()).expect_err("the name is invalid");
    assert_eq!(fault.path, "message.origin.name");
    wire.message = None;
    assert_eq!(Delivery::try_from(wire), Err(Invalid::new("message", "must be set")));

    let missing = super::required_as::<_, Recipient>(Some(v1::Recipient { to: None }), "to")
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
    let core = Event::try_from(wire.clone()).expect("both are of one kind");
    let returned = event::DeliveryReturned { attempt: 2, cause: RedeliveryCause::Nacked };
    assert_eq!(core.facts, event::Facts::DeliveryReturned(Some(returned)));
    let old = Event::try_from(v1::Event { facts: None, ..wire.clone() }).expect("no facts");
    assert_eq!(old.facts, event::Facts::DeliveryReturned(None));
    let other = v1::Event { kind: v1::EventKind::DeliveryDead.into(), ..wire.clone() };
    assert_eq!(Event::try_from(other).expect_err("another kind").path, "facts");
    let no_cause = v1::DeliveryReturned { attempt: 2, cause: 0 };
    let facts = Some(v1::event::Facts::DeliveryReturned(no_cause));
    let fault = Event::try_from(v1::Event { facts, ..wire }).expect_err("the cause is not set");
    assert_eq!(fault.path, "delivery_returned.cause");
}

#[test]
fn missing_ids_and_invalid_keys_are_refused() {
    let turn = v1::Turn { id: 0, ..v1::Turn::default() };
    assert_eq!(Turn::try_from(turn).expect_err("0 is no id").path, "id");
    let cancel = v1::command::Command::CancelTurn(v1::CancelTurn { turn_id: 0 });
    assert_eq!(Order::try_from(cancel).expect_err("0 is no turn").path, "cancel_turn.turn_id");
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
    assert!(Recipient::try_from(recipient).is_err());
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
    let shown = v1::Limits::from(&Limits::default());
    assert_eq!(shown.body_bytes_max, 32 * 1024);
    assert_eq!(shown.harness_grace, Some(prost_types::Duration { seconds: 60, nanos: 0 }));
}
