//! Events of every kind.

use hive_core::agent::Source;
use hive_core::event::{
    AgentChange, AgentChanged, AgentCreated, AgentParked, CallRefused, CommandClosed, CommandGiven,
    DeliveryAcked, DeliveryDead, DeliveryHeld, DeliveryLeased, DeliveryReturned, Event, Facts,
    HarnessAttached, HarnessLoss, HarnessLost, HarnessStateChanged, Kind, ReminderSet,
    ScheduleChange, ScheduleChanged, ScheduleCreated, ScheduleEnded, ScheduleFired, Settler,
    TurnBegun, TurnEnded,
};
use hive_core::reason::Reason;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::schedule::schedule_id;
use super::turn::{outcome, turn_kind};
use super::{
    command_id, harness_state, message_id, question_id, redelivery_cause, reminder_id, text,
    turn_id, wall_time,
};

/// Generates each kind, with facts and without.
fn facts() -> impl Strategy<Value = Facts> {
    let without = select(Kind::ALL).prop_map(Facts::unknown);
    prop_oneof![without, of_delivery(), of_turn_and_harness(), of_the_operator(), of_schedules()]
}

fn of_delivery() -> impl Strategy<Value = Facts> {
    let attempt = any::<u32>();
    let settler = select(vec![Settler::Holder, Settler::Operator]);
    prop_oneof![
        (attempt, option::of(redelivery_cause())).prop_map(|(attempt, cause)| DeliveryLeased {
            attempt,
            cause
        }
        .into()),
        (attempt, settler).prop_map(|(attempt, settler)| DeliveryAcked { attempt, settler }.into()),
        (attempt, redelivery_cause()).prop_map(|(attempt, cause)| DeliveryReturned {
            attempt,
            cause
        }
        .into()),
        (attempt, redelivery_cause())
            .prop_map(|(attempt, cause)| DeliveryDead { attempt, cause }.into()),
        attempt.prop_map(|attempt| DeliveryHeld { attempt }.into()),
    ]
}

fn of_turn_and_harness() -> impl Strategy<Value = Facts> {
    let epoch = any::<u64>();
    let loss = select(vec![HarnessLoss::TakenOver, HarnessLoss::StayedAway, HarnessLoss::Restored]);
    prop_oneof![
        (turn_kind(), epoch)
            .prop_map(|(kind, session_epoch)| TurnBegun { kind, session_epoch }.into()),
        (outcome(), epoch).prop_map(|(outcome, session_epoch)| TurnEnded {
            outcome,
            session_epoch
        }
        .into()),
        epoch.prop_map(|session_epoch| HarnessAttached { session_epoch }.into()),
        (epoch, loss).prop_map(|(session_epoch, loss)| HarnessLost { session_epoch, loss }.into()),
        (outcome(), option::of(wall_time())).prop_map(|(cause, until_time)| AgentParked {
            cause,
            until_time
        }
        .into()),
        harness_state().prop_map(|state| HarnessStateChanged { state }.into()),
    ]
}

fn of_the_operator() -> impl Strategy<Value = Facts> {
    use hive_core::command::Kind as Asked;
    let change = select(vec![
        AgentChange::Model,
        AgentChange::Parent,
        AgentChange::Policy,
        AgentChange::File,
        AgentChange::Role,
    ]);
    let asked = select(vec![
        Asked::CancelTurn,
        Asked::StartNewSession,
        Asked::SetModel,
        Asked::RestartHarness,
        Asked::CompactSession,
        Asked::Login,
    ]);
    prop_oneof![
        select(vec![Source::File, Source::Runtime])
            .prop_map(|source| AgentCreated { source }.into()),
        change.prop_map(|change| AgentChanged { change }.into()),
        (asked, option::of(command_id())).prop_map(|(kind, command_id)| CommandGiven {
            kind,
            command_id
        }
        .into()),
        (any::<bool>(), option::of(command_id())).prop_map(|(done, command_id)| CommandClosed {
            done,
            command_id
        }
        .into()),
        select(Reason::ALL).prop_map(|reason| CallRefused { reason }.into()),
        wall_time().prop_map(|due_time| ReminderSet { due_time }.into()),
    ]
}

fn of_schedules() -> impl Strategy<Value = Facts> {
    let changes = vec![ScheduleChange::Edited, ScheduleChange::Paused, ScheduleChange::Resumed];
    prop_oneof![
        schedule_id().prop_map(|schedule_id| ScheduleCreated { schedule_id }.into()),
        (schedule_id(), select(changes)).prop_map(|(schedule_id, change)| ScheduleChanged {
            schedule_id,
            change
        }
        .into()),
        schedule_id().prop_map(|schedule_id| ScheduleFired { schedule_id }.into()),
        schedule_id().prop_map(|schedule_id| ScheduleEnded { schedule_id }.into()),
    ]
}

pub(in crate::convert) fn event() -> impl Strategy<Value = Event> {
    (
        (
            any::<u64>(),
            facts(),
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
                (sequence, facts, time, agent, message_id, turn_id, detail),
                (question_id, reminder_id),
            )| Event {
                sequence,
                facts,
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
