//! Effects of questions on the wire.

use hive_history::Terms;
use hive_proto::v1;
use hive_proto::v1::effect::Effect;

use super::perform::span;
use super::seen::timestamp;

/// Returns the effect that changes a schedule, or creates one if its id is 0.
pub(super) fn schedule(schedule_id: u64, terms: Terms) -> v1::Effect {
    let Terms { body, targets_add, targets_remove, first_time, interval_s, zone, late_max_s } =
        terms;
    let first_time = first_time.map(timestamp);
    let interval = interval_s.map(|seconds| span(seconds * 1_000));
    let late_max = late_max_s.map(|seconds| span(seconds * 1_000));
    let effect = if schedule_id == 0 {
        Effect::CreateSchedule(v1::CreateScheduleEffect {
            body: body.unwrap_or_default(),
            targets: targets_add,
            first_time,
            interval,
            zone: zone.unwrap_or_default(),
            late_max: late_max.filter(|_| late_max_s != Some(0)),
        })
    } else {
        Effect::ChangeSchedule(v1::ChangeScheduleEffect {
            schedule_id,
            body,
            targets_add,
            targets_remove,
            first_time,
            interval,
            zone,
            late_max,
        })
    };
    v1::Effect { effect: Some(effect) }
}
