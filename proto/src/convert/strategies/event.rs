//! Events of every kind.

use hive_core::event::{self, Event};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{message_id, question_id, reminder_id, text, turn_id, wall_time};

fn event_kind() -> impl Strategy<Value = event::Kind> {
    use event::Kind;
    select(vec![
        Kind::MessageAccepted,
        Kind::DeliveryLeased,
        Kind::DeliveryAcked,
        Kind::DeliveryReturned,
        Kind::DeliveryDead,
        Kind::DeliveryHeld,
        Kind::DeliveryReleased,
        Kind::DeliveryRedriven,
        Kind::DeliveryDropped,
        Kind::DeliverySuperseded,
        Kind::TurnBegun,
        Kind::TurnEnded,
        Kind::HarnessAttached,
        Kind::HarnessLost,
        Kind::AgentCreated,
        Kind::AgentChanged,
        Kind::AgentRetired,
        Kind::StatusChanged,
        Kind::AgentParked,
        Kind::CommandGiven,
        Kind::CommandClosed,
        Kind::Refused,
        Kind::QuestionAsked,
        Kind::QuestionAnswered,
        Kind::QuestionExpired,
        Kind::QuestionCancelled,
        Kind::ReminderSet,
        Kind::ReminderFired,
        Kind::ReminderCancelled,
        Kind::AgentStopped,
        Kind::AgentStarted,
        Kind::AgentPurged,
        Kind::PurgeFinished,
        Kind::HarnessStateChanged,
        Kind::LogBegun,
    ])
}

pub(in crate::convert) fn event() -> impl Strategy<Value = Event> {
    (
        (
            any::<u64>(),
            event_kind(),
            wall_time(),
            text(),
            option::of(message_id()),
            option::of(turn_id()),
            text(),
        ),
        (option::of(question_id()), option::of(reminder_id())),
    )
        .prop_map(
            |(
                (sequence, kind, time, agent, message_id, turn_id, detail),
                (question_id, reminder_id),
            )| Event {
                sequence,
                kind,
                time,
                agent,
                message_id,
                turn_id,
                detail,
                question_id,
                reminder_id,
            },
        )
}
