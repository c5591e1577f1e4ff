//! Schedules, and what is asked about them.

use std::time::Duration;

use hive_core::id::{NUMBER_MAX, ScheduleId};
use hive_core::schedule::{Edit, Schedule, State, Target, Terms};
use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::{agent_name, message_id, text, wall_time};

pub(super) fn schedule_id() -> impl Strategy<Value = ScheduleId> {
    (1..=NUMBER_MAX).prop_map(|number| ScheduleId::new(number).expect("not 0"))
}

fn span() -> impl Strategy<Value = Duration> {
    (0u64..1_000_000_000).prop_map(Duration::from_secs)
}

pub(super) fn terms() -> impl Strategy<Value = Terms> {
    let targets = btree_set(agent_name(), 0..4);
    let when = (wall_time(), option::of(span()), text(), option::of(span()));
    (text(), targets, when).prop_map(|(body, targets, (first_time, interval, zone, late_max))| {
        let targets = targets.into_iter().collect();
        Terms { body, targets, first_time, interval, zone, late_max }
    })
}

pub(super) fn edit() -> impl Strategy<Value = Edit> {
    let targets = (vec(agent_name(), 0..3), vec(agent_name(), 0..3));
    let when =
        (option::of(wall_time()), option::of(span()), option::of(text()), option::of(span()));
    (option::of(text()), targets, when).prop_map(
        |(body, (targets_add, targets_remove), (first_time, interval, zone, late_max))| Edit {
            body,
            targets_add,
            targets_remove,
            first_time,
            interval,
            zone,
            late_max,
        },
    )
}

fn target() -> impl Strategy<Value = Target> {
    (agent_name(), option::of(message_id()), any::<u64>())
        .prop_map(|(agent, message_id, skipped_count)| Target { agent, message_id, skipped_count })
}

pub(in crate::convert) fn schedule() -> impl Strategy<Value = Schedule> {
    let states = select(vec![State::Active, State::Paused, State::Ended]);
    let times = (option::of(wall_time()), wall_time(), option::of(wall_time()));
    (schedule_id(), agent_name(), terms(), vec(target(), 0..4), states, times, text()).prop_map(
        |(id, owner, terms, targets, state, (next_time, create_time, end_time), end_cause)| {
            let names = targets.iter().map(|target| target.agent.clone()).collect();
            Schedule {
                id,
                owner,
                terms: Terms { targets: names, ..terms },
                targets,
                state,
                next_time,
                create_time,
                end_time,
                end_cause,
            }
        },
    )
}
