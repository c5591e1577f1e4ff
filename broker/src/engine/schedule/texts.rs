//! Texts of schedules: the messages to targets, and the notice of an end.

use crate::engine::mail::text::{format_time, quoted};
use crate::store::schedule::{ScheduleRow, TargetRow};

use super::fire::Firing;

/// Most bytes of a message before the text of its schedule.
pub(crate) const HEAD_BYTES_MAX: usize = 256;

/// Returns the message of a firing, which states that this number of due times was skipped.
pub(super) fn message(row: &ScheduleRow, firing: &Firing, skipped: u64) -> String {
    let times = match skipped {
        0 => String::new(),
        1 => " 1 earlier due time was skipped.".to_owned(),
        more => format!(" {more} earlier due times were skipped."),
    };
    format!("Schedule {} of {}, {}.{times}\n\n{}", row.id, row.owner_name, why(firing), row.body)
}

/// Returns why a schedule fires, in a few words.
pub(super) fn why(firing: &Firing) -> String {
    match firing {
        Firing::Due { due, .. } => format!("for {}", format_time(due.time)),
        Firing::Now => "fired by hand".to_owned(),
    }
}

/// Returns the notice of an end, with the targets that have missed due times.
pub(super) fn ended(row: &ScheduleRow, cause: &str, missed: &[TargetRow]) -> String {
    let mut text = format!("Your schedule {} has ended: {cause}.", row.id);
    for TargetRow { name, skipped, .. } in missed {
        let times = if *skipped == 1 { "due time" } else { "due times" };
        text.push_str(&format!(" {name} got no message for the last {skipped} {times}."));
    }
    format!("{text} Its text was:\n\n{}", quoted(&row.body))
}
