//! Schedules: mail that an agent has sent to its targets again and again, in its own name.
//!
//! ```text
//!   approval ──► ACTIVE ◄──► PAUSED, by the operator alone
//!                   ╰──────────┴──► ENDED: cancelled, no due time or no target left, owner retired
//! ```
//!
//! Invariant: an ended schedule never changes again.

mod timetable;

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{MessageId, ScheduleId};
use crate::limits::{
    REMINDER_DELAY_MAX, SCHEDULE_BODY_LINES_MAX, SCHEDULE_INTERVAL_MIN, SCHEDULE_LATE_MIN,
    SCHEDULE_TARGETS_MAX,
};
use crate::name::AgentName;
use crate::time::WallTime;
pub use timetable::{Due, Timetable, UnknownZone, Zone};

/// State of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It fires at its due times.
    Active,
    /// The operator paused it.
    Paused,
    /// It never fires again.
    Ended,
}

/// A schedule with its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// Unique id.
    pub id: ScheduleId,
    /// The agent that owns it.
    pub owner: AgentName,
    /// What it sends, and when.
    pub terms: Terms,
    /// The targets, in the order of `terms.targets`.
    pub targets: Vec<Target>,
    /// Current state.
    pub state: State,
    /// The next due time; `None` unless it is active.
    pub next_time: Option<WallTime>,
    /// When it was created.
    pub create_time: WallTime,
    /// When it ended.
    pub end_time: Option<WallTime>,
    /// Why it ended; empty before.
    pub end_cause: String,
}

/// An agent that gets the messages of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The agent.
    pub agent: AgentName,
    /// The last message that it got.
    pub message_id: Option<MessageId>,
    /// Due times after that message for which it got none.
    pub skipped_count: u64,
}

/// What a schedule sends, where to, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Terms {
    /// Text of its messages.
    pub body: String,
    /// The agents that get them, by name.
    pub targets: Vec<AgentName>,
    /// The first due time.
    pub first_time: WallTime,
    /// The time from one due time to the next; `None` for once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// The zone in which whole days are counted; empty for none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub zone: String,
    /// Most time after a due time at which its message is still sent; `None` for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late_max: Option<Duration>,
}

/// New values of terms; `None` and empty lists leave it as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Edit {
    /// The new text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Agents to add to the targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets_add: Vec<AgentName>,
    /// Agents to remove from the targets.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub targets_remove: Vec<AgentName>,
    /// A new first due time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_time: Option<WallTime>,
    /// The new interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<Duration>,
    /// The new zone, empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The new limit of lateness, zero for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_max: Option<Duration>,
}

impl Terms {
    /// Returns when it is due.
    ///
    /// # Errors
    ///
    /// This program does not know its zone.
    pub fn timetable(&self) -> Result<Timetable, UnknownZone> {
        let zone = if self.zone.is_empty() { None } else { Some(Zone::parse(&self.zone)?) };
        Ok(Timetable { first: self.first_time, every: self.interval, zone })
    }

    /// Checks what does not depend on the agents of the hive and on the time.
    pub fn check(&self) -> Result<(), Fault> {
        let Self { body, targets, first_time: _, interval, zone: _, late_max } = self;
        if body.trim().is_empty() {
            return Err(Fault::NoBody);
        }
        // A diff shows it line by line, and must show all of it.
        let hidden = |c: char| {
            (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{2028}' | '\u{2029}')
        };
        if body.contains(hidden) {
            return Err(Fault::Control);
        }
        let lines = body.lines().count();
        if lines > SCHEDULE_BODY_LINES_MAX {
            return Err(Fault::Lines(lines));
        }
        if targets.is_empty() || targets.len() > SCHEDULE_TARGETS_MAX {
            return Err(Fault::Targets(targets.len()));
        }
        if let Some(double) =
            targets.iter().enumerate().find(|(at, name)| targets[..*at].contains(name))
        {
            return Err(Fault::Double(double.1.clone()));
        }
        let in_range = |span: &Duration, least| {
            (least..=REMINDER_DELAY_MAX).contains(span) && span.subsec_nanos() == 0
        };
        if interval.is_some_and(|interval| !in_range(&interval, SCHEDULE_INTERVAL_MIN)) {
            return Err(Fault::Interval);
        }
        if late_max.is_some_and(|late| !in_range(&late, SCHEDULE_LATE_MIN)) {
            return Err(Fault::Late);
        }
        self.timetable().map(drop).map_err(Fault::Zone)
    }
}

impl Edit {
    /// Returns whether it changes nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the terms with these values.
    ///
    /// # Errors
    ///
    /// It adds a target that there is already, or removes one that there is not.
    pub fn of(&self, terms: &Terms) -> Result<Terms, Fault> {
        let Self { body, targets_add, targets_remove, first_time, interval, zone, late_max } = self;
        let mut targets = terms.targets.clone();
        for name in targets_remove {
            let before = targets.len();
            targets.retain(|target| target != name);
            if targets.len() == before {
                return Err(Fault::NoTarget(name.clone()));
            }
        }
        targets.extend(targets_add.iter().cloned());
        targets.sort();
        Ok(Terms {
            body: body.clone().unwrap_or_else(|| terms.body.clone()),
            targets,
            first_time: first_time.unwrap_or(terms.first_time),
            interval: interval.or(terms.interval),
            zone: zone.clone().unwrap_or_else(|| terms.zone.clone()),
            late_max: late_max
                .map_or(terms.late_max, |late| Some(late).filter(|late| !late.is_zero())),
        })
    }
}

/// Why there can be no such schedule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The text is empty.
    #[error("a schedule needs a text")]
    NoBody,
    /// The text has characters that a diff could not show.
    #[error("the text has control characters; only line ends and tabs are allowed")]
    Control,
    /// The text has too many lines.
    #[error(
        "the text has {0} lines; at most {SCHEDULE_BODY_LINES_MAX} are allowed, because the operator reads each of them"
    )]
    Lines(usize),
    /// It has no target or too many.
    #[error("it has {0} targets; 1 to {SCHEDULE_TARGETS_MAX} are allowed")]
    Targets(usize),
    /// A target is named twice.
    #[error("the target `{0}` is named twice")]
    Double(AgentName),
    /// A target to remove is none.
    #[error("`{0}` is not among its targets")]
    NoTarget(AgentName),
    /// The interval is too short, too long or not in seconds.
    #[error(
        "the interval must be whole seconds, from {} s to {} s",
        SCHEDULE_INTERVAL_MIN.as_secs(),
        REMINDER_DELAY_MAX.as_secs()
    )]
    Interval,
    /// The limit of lateness is too short, too long or not in seconds.
    #[error(
        "`late_max` must be whole seconds, from {} s to {} s",
        SCHEDULE_LATE_MIN.as_secs(),
        REMINDER_DELAY_MAX.as_secs()
    )]
    Late,
    /// The zone is unknown.
    #[error("the zone is not known: {0}")]
    Zone(UnknownZone),
    /// It is due at times that have passed alone.
    #[error("none of its due times is in the future")]
    Past,
    /// The first time is too far ahead.
    #[error("`first_time` is more than {} days ahead", REMINDER_DELAY_MAX.as_secs() / (24 * 3600))]
    Far,
}

/// The due time with which terms begin at a time: the first one that is still to come.
///
/// # Errors
///
/// There is none, or the first one is too far ahead.
pub fn begin(terms: &Terms, now: WallTime) -> Result<Due, Fault> {
    let timetable = terms.timetable().map_err(Fault::Zone)?;
    if terms.first_time.since(now) > REMINDER_DELAY_MAX {
        return Err(Fault::Far);
    }
    let next = timetable.last(now).map_or(0, |due| due.number + 1);
    timetable.at(next).ok_or(Fault::Past)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).expect("a name")
    }

    fn terms() -> Terms {
        Terms {
            body: "Report.\n\tBriefly.".to_owned(),
            targets: vec![name("ada"), name("bob")],
            first_time: WallTime(1_000_000),
            interval: Some(Duration::from_secs(60)),
            zone: String::new(),
            late_max: None,
        }
    }

    #[test]
    fn terms_are_checked() {
        assert_eq!(terms().check(), Ok(()));
        let minutes = |minutes| Some(Duration::from_secs(60 * minutes));
        let many = (0..17).map(|number| name(&format!("a{number}"))).collect();
        for (wrong, fault) in [
            (Terms { body: " \n".to_owned(), ..terms() }, Fault::NoBody),
            (Terms { body: "a\r".to_owned(), ..terms() }, Fault::Control),
            (Terms { body: "a\u{2028}b".to_owned(), ..terms() }, Fault::Control),
            (Terms { body: "a\n".repeat(201), ..terms() }, Fault::Lines(201)),
            (Terms { targets: Vec::new(), ..terms() }, Fault::Targets(0)),
            (Terms { targets: many, ..terms() }, Fault::Targets(17)),
            (Terms { targets: vec![name("ada"); 2], ..terms() }, Fault::Double(name("ada"))),
            (Terms { interval: Some(Duration::from_secs(59)), ..terms() }, Fault::Interval),
            (Terms { interval: Some(Duration::from_millis(60_500)), ..terms() }, Fault::Interval),
            (Terms { interval: minutes(u64::MAX / 60), ..terms() }, Fault::Interval),
            (Terms { late_max: Some(Duration::from_secs(1)), ..terms() }, Fault::Late),
            (Terms { zone: "Mars/Base".to_owned(), ..terms() }, Fault::Zone(UnknownZone)),
        ] {
            assert_eq!(wrong.check(), Err(fault), "{wrong:?}");
        }
    }

    #[test]
    fn an_edit_changes_what_it_names() {
        assert_eq!(Edit::default().of(&terms()), Ok(terms()));
        let edit = Edit {
            targets_add: vec![name("aa")],
            targets_remove: vec![name("bob")],
            late_max: Some(Duration::from_secs(90)),
            ..Edit::default()
        };
        let edited = edit.of(&terms()).expect("the terms");
        assert_eq!(edited.targets, [name("aa"), name("ada")]);
        assert_eq!((edited.late_max, edited.body), (edit.late_max, terms().body));
        let unlimited = Edit { late_max: Some(Duration::ZERO), ..Edit::default() };
        assert_eq!(unlimited.of(&Terms { late_max: edit.late_max, ..terms() }), Ok(terms()));
        let none = Edit { targets_remove: vec![name("cy")], ..Edit::default() };
        assert_eq!(none.of(&terms()), Err(Fault::NoTarget(name("cy"))));
        let again = Edit { targets_add: vec![name("ada")], ..Edit::default() };
        assert_eq!(
            again.of(&terms()).and_then(|terms| terms.check()),
            Err(Fault::Double(name("ada")))
        );
    }

    #[test]
    fn they_begin_with_the_first_due_time_to_come() {
        let first = Due { number: 0, time: WallTime(1_000_000) };
        assert_eq!(begin(&terms(), WallTime(999_999)), Ok(first));
        let second = Due { number: 1, time: WallTime(1_060_000) };
        assert_eq!(begin(&terms(), WallTime(1_000_000)), Ok(second));
        let once = Terms { interval: None, ..terms() };
        assert_eq!(begin(&once, WallTime(1_000_000)), Err(Fault::Past));
        assert_eq!(begin(&once, WallTime(i64::MIN / 2)), Err(Fault::Far));
    }
}
