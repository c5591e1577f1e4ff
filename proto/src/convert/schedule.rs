//! Schedules.

use hive_core::id::{MessageId, ScheduleId, number};
use hive_core::name::AgentName;
use hive_core::schedule::{Edit, Schedule, State, Target, Terms};

use super::message::agent_name;
use super::time::{duration, optional_span, optional_wall_time, required_wall_time, timestamp};
use super::{FromWire, IntoWire, Invalid, id, optional_id, same_values, value};
use crate::v1;

same_values!(v1::ScheduleState, State { Active, Paused, Ended });

/// Parses the states in a filter; empty means the default of the list.
pub fn states(numbers: &[i32], path: &str) -> Result<Vec<State>, Invalid> {
    numbers.iter().map(|number| value::<State>(*number, path)).collect()
}

fn names(wire: &[String], path: &str) -> Result<Vec<AgentName>, Invalid> {
    let name = |(at, name): (usize, &String)| agent_name(name, &format!("{path}[{at}]"));
    wire.iter().enumerate().map(name).collect()
}

fn texts(names: Vec<AgentName>) -> Vec<String> {
    names.into_iter().map(String::from).collect()
}

impl IntoWire for Terms {
    type Wire = v1::CreateScheduleEffect;
    fn into_wire(self) -> v1::CreateScheduleEffect {
        let Terms { body, targets, first_time, interval, zone, late_max } = self;
        v1::CreateScheduleEffect {
            body,
            targets: texts(targets),
            first_time: Some(timestamp(first_time)),
            interval: interval.map(duration),
            zone,
            late_max: late_max.map(duration),
        }
    }
}

impl FromWire for Terms {
    type Wire = v1::CreateScheduleEffect;
    fn from_wire(wire: v1::CreateScheduleEffect) -> Result<Self, Invalid> {
        let v1::CreateScheduleEffect { body, targets, first_time, interval, zone, late_max } = wire;
        let mut targets = names(&targets, "targets")?;
        targets.sort();
        Ok(Self {
            body,
            targets,
            first_time: required_wall_time(first_time, "first_time")?,
            interval: optional_span(interval, "interval")?,
            zone,
            late_max: optional_span(late_max, "late_max")?,
        })
    }
}

/// Converts a change of a schedule to the wire.
#[must_use]
pub fn change(id: ScheduleId, edit: Edit) -> v1::ChangeScheduleEffect {
    let Edit { body, targets_add, targets_remove, first_time, interval, zone, late_max } = edit;
    v1::ChangeScheduleEffect {
        schedule_id: id.get(),
        body,
        targets_add: texts(targets_add),
        targets_remove: texts(targets_remove),
        first_time: first_time.map(timestamp),
        interval: interval.map(duration),
        zone,
        late_max: late_max.map(duration),
    }
}

/// Converts a change of a schedule from the wire.
pub fn changed(wire: v1::ChangeScheduleEffect) -> Result<(ScheduleId, Edit), Invalid> {
    let v1::ChangeScheduleEffect {
        schedule_id,
        body,
        targets_add,
        targets_remove,
        first_time,
        interval,
        zone,
        late_max,
    } = wire;
    let edit = Edit {
        body,
        targets_add: names(&targets_add, "targets_add")?,
        targets_remove: names(&targets_remove, "targets_remove")?,
        first_time: optional_wall_time(first_time, "first_time")?,
        interval: optional_span(interval, "interval")?,
        zone,
        late_max: optional_span(late_max, "late_max")?,
    };
    Ok((id(schedule_id, ScheduleId::new, "schedule_id")?, edit))
}

impl IntoWire for Target {
    type Wire = v1::ScheduleTarget;
    fn into_wire(self) -> v1::ScheduleTarget {
        let Target { agent, message_id, skipped_count } = self;
        let message_id = number(message_id, MessageId::get);
        v1::ScheduleTarget { agent: agent.into(), message_id, skipped_count }
    }
}

impl FromWire for Target {
    type Wire = v1::ScheduleTarget;
    fn from_wire(wire: v1::ScheduleTarget) -> Result<Self, Invalid> {
        let v1::ScheduleTarget { agent, message_id, skipped_count } = wire;
        Ok(Self {
            agent: agent_name(&agent, "agent")?,
            message_id: optional_id(message_id, MessageId::new, "message_id")?,
            skipped_count,
        })
    }
}

impl IntoWire for Schedule {
    type Wire = v1::Schedule;
    fn into_wire(self) -> v1::Schedule {
        let Schedule {
            id,
            owner,
            terms: Terms { body, targets: _, first_time, interval, zone, late_max },
            targets,
            state,
            next_time,
            create_time,
            end_time,
            end_cause,
        } = self;
        v1::Schedule {
            id: id.get(),
            owner: owner.into(),
            body,
            targets: targets.into_iter().map(IntoWire::into_wire).collect(),
            state: state.into_wire().into(),
            first_time: Some(timestamp(first_time)),
            interval: interval.map(duration),
            zone,
            late_max: late_max.map(duration),
            next_time: next_time.map(timestamp),
            create_time: Some(timestamp(create_time)),
            end_time: end_time.map(timestamp),
            end_cause,
        }
    }
}

impl FromWire for Schedule {
    type Wire = v1::Schedule;
    fn from_wire(wire: v1::Schedule) -> Result<Self, Invalid> {
        let v1::Schedule {
            id: number,
            owner,
            body,
            targets,
            state,
            first_time,
            interval,
            zone,
            late_max,
            next_time,
            create_time,
            end_time,
            end_cause,
        } = wire;
        let target = |(at, wire)| {
            Target::from_wire(wire).map_err(|fault| fault.within(&format!("targets[{at}]")))
        };
        let targets = targets.into_iter().enumerate().map(target).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            id: id(number, ScheduleId::new, "id")?,
            owner: agent_name(&owner, "owner")?,
            terms: Terms {
                body,
                targets: targets.iter().map(|target| target.agent.clone()).collect(),
                first_time: required_wall_time(first_time, "first_time")?,
                interval: optional_span(interval, "interval")?,
                zone,
                late_max: optional_span(late_max, "late_max")?,
            },
            targets,
            state: value(state, "state")?,
            next_time: optional_wall_time(next_time, "next_time")?,
            create_time: required_wall_time(create_time, "create_time")?,
            end_time: optional_wall_time(end_time, "end_time")?,
            end_cause,
        })
    }
}
