//! Effects: what an agent asks for, in the types of the engine.

use std::time::Duration;

use hive_core::agent::{Policy, PolicyPart};
use hive_core::effect::Effect;
use hive_core::id::ScheduleId;
use hive_core::name::AgentName;
use hive_core::schedule::{Edit, Terms};
use hive_core::time::WallTime;
use hive_history as history;

use crate::serve::name;

/// Returns a policy with this number as this part, which is one of
/// [`PARTS`](crate::approvals::PARTS).
pub(crate) fn policy(part: PolicyPart, number: u32) -> Policy {
    let (mut from, mut policy) = (Policy::default(), Policy::default());
    (from.sends_per_minute_max, from.reminders_pending_max) = (Some(number), Some(number));
    part.copy(&from, &mut policy);
    policy
}

/// Returns the effect that creates a schedule, or changes this one.
pub(crate) fn schedule(id: Option<ScheduleId>, terms: history::Terms) -> Effect {
    let history::Terms {
        body,
        targets_add,
        targets_remove,
        first_time,
        interval_s,
        zone,
        late_max_s,
    } = terms;
    let names = |names: Vec<String>| -> Vec<AgentName> {
        names.iter().map(|target| name(target)).collect()
    };
    let (first_time, interval) = (first_time.map(WallTime), interval_s.map(Duration::from_secs));
    let late_max = late_max_s.map(Duration::from_secs);
    let (targets_add, targets_remove) = (names(targets_add), names(targets_remove));
    match id {
        Some(id) => {
            let edit =
                Edit { body, targets_add, targets_remove, first_time, interval, zone, late_max };
            Effect::ChangeSchedule { id, edit }
        }
        None => Effect::CreateSchedule {
            terms: Terms {
                body: body.unwrap_or_default(),
                targets: targets_add,
                first_time: first_time.unwrap_or(WallTime(0)),
                interval,
                zone: zone.unwrap_or_default(),
                late_max: late_max.filter(|late| !late.is_zero()),
            },
        },
    }
}
