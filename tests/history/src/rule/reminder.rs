//! A reminder fires exactly once, not early, and with its own text. A withdrawn one does not fire,
//! and the due time is the requested one.
//!
//! Silent: about the time of a delay if the clock was set, and about unfired reminders if not
//! everything is at rest.

use std::collections::HashMap;

use super::Found;
use crate::call::{Due, Op, Reply};
use crate::event::Mark;
use crate::index::Index;
use crate::last::{Message, ReminderState};
use crate::violation::Rule::FiresOnce;

/// A due reminder that has not fired after this many ms at rest was forgotten.
const LATE_MS: i64 = 2_000;
/// A longer body may have been spilled into a file.
const INLINE_BYTES: usize = 4096;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut fired: HashMap<u64, Vec<&Message>> = HashMap::new();
    for message in index.last.messages.iter().filter(|message| message.reminder != 0) {
        fired.entry(message.reminder).or_default().push(message);
    }
    for reminder in &index.last.reminders {
        let (id, messages) = (reminder.id, fired.remove(&reminder.id).unwrap_or_default());
        let ids: Vec<u64> = messages.iter().map(|message| message.id).collect();
        match reminder.state {
            ReminderState::Fired => {
                if ids != [reminder.message] {
                    found.add(
                        FiresOnce,
                        &[],
                        format!(
                            "reminder {id} fired as message {}, and there are {ids:?}",
                            reminder.message
                        ),
                    );
                }
                if reminder.closed < reminder.due {
                    found.add(
                        FiresOnce,
                        &[],
                        format!("reminder {id} fired {} ms early", reminder.due - reminder.closed),
                    );
                }
            }
            ReminderState::Pending | ReminderState::Cancelled => {
                if !ids.is_empty() {
                    found.add(
                        FiresOnce,
                        &[],
                        format!("reminder {id} is {:?} and fired as {ids:?}", reminder.state),
                    );
                }
            }
        }
        if index.last.at_rest
            && reminder.state == ReminderState::Pending
            && reminder.due + LATE_MS < index.last.wall
        {
            found.add(
                FiresOnce,
                &[],
                format!(
                    "reminder {id} has been due for {} ms and has not fired",
                    index.last.wall - reminder.due
                ),
            );
        }
        for message in messages {
            let own = message.recipients == [reminder.agent.clone()];
            if !own
                || (reminder.body.len() <= INLINE_BYTES && !message.body.contains(&reminder.body))
            {
                found.add(
                    FiresOnce,
                    &[],
                    format!(
                        "reminder {id} of {} fired as another message {}",
                        reminder.agent, message.id
                    ),
                );
            }
        }
    }
    for (id, messages) in fired {
        found.add(
            FiresOnce,
            &[],
            format!("reminder {id} fired {} times, and there is no such reminder", messages.len()),
        );
    }
    replies(index, found);
    early(index, found);
}

fn replies(index: &Index<'_>, found: &mut Found) {
    let clock_was_set = index.marks.iter().any(|(_, mark)| matches!(mark, Mark::ClockSet));
    let tolerance = i64::try_from(index.history.setting.tolerance_ms).unwrap_or(i64::MAX);
    for call in &index.calls {
        match (call.op, call.ok()) {
            (
                Op::Remind { due, .. },
                Some((till, Reply::Reminded { reminder, due: given, already: false })),
            ) => {
                let (least, most) = match due {
                    Due::At(time) => (*time, *time),
                    Due::After(delay) => {
                        let delay = i64::try_from(*delay).unwrap_or(i64::MAX);
                        (
                            index.wall(call.request_from) + delay - tolerance,
                            index.wall(till) + delay + tolerance,
                        )
                    }
                };
                let known = matches!(due, Due::At(_)) || !clock_was_set;
                if known && !(least..=most).contains(given) {
                    let what = format!(
                        "reminder {reminder} is due at {given}, and was wanted between {least} and {most}"
                    );
                    found.add(FiresOnce, &[call.from, till], what);
                }
            }
            (Op::CancelReminder { reminder }, Some((till, _))) => {
                let state = index
                    .last
                    .reminders
                    .iter()
                    .find(|known| known.id == *reminder)
                    .map(|known| known.state);
                if state != Some(ReminderState::Cancelled) {
                    found.add(
                        FiresOnce,
                        &[call.from, till],
                        format!("reminder {reminder} was withdrawn, and is {state:?}"),
                    );
                }
            }
            _ => {}
        }
    }
}

/// Checks that each reminder handed over had been due on the wall clock before.
fn early(index: &Index<'_>, found: &mut Found) {
    let due: HashMap<u64, i64> =
        index.last.reminders.iter().map(|reminder| (reminder.id, reminder.due)).collect();
    let tolerance = i64::try_from(index.history.setting.tolerance_ms).unwrap_or(i64::MAX);
    for hand in index.hands.iter().filter(|hand| hand.handed.reminder != 0) {
        let (id, wall) = (hand.handed.reminder, index.wall_max[hand.till]);
        if let Some(due) = due.get(&id)
            && wall + tolerance < *due
        {
            found.add(
                FiresOnce,
                &[hand.till],
                format!("reminder {id} was handed over {} ms before it was due", due - wall),
            );
        }
    }
}
