//! A schedule: the text that an agent has sent again and again, its targets, and its due times.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{all, from_wire, millis, same};
use super::{Iso, Word, counted, fields, id, line_cell, prefixed, text, word};
use crate::output::style::Style;
use crate::output::text::{indented, visible_line};
use crate::output::{Row, Text, time};

/// Targets that a row of the table names.
const TARGETS_SHOWN: usize = 3;

/// One schedule.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Schedule {
    /// The id of the schedule.
    id: u64,
    /// The agent that owns it; its messages are in this agent's name.
    owner: String,
    /// The text of its messages.
    body: String,
    /// The agents that get its messages.
    targets: Vec<Target>,
    /// The state of the schedule.
    #[schemars(with = "Word<v1::ScheduleState>")]
    state: Option<String>,
    /// The first due time, from which all later ones are counted.
    #[serde(with = "Iso")]
    first_time: Option<WallTime>,
    /// The time from one due time to the next; none: it is due once.
    interval_ms: Option<u64>,
    /// The zone of the IANA database in which whole days are counted; none: a day has 24 hours.
    zone: Option<String>,
    /// Most time after a due time at which its message is still sent; none: any.
    late_max_ms: Option<u64>,
    /// The next due time; none while it is paused and once it has ended.
    #[serde(with = "Iso")]
    next_time: Option<WallTime>,
    /// When it was created.
    #[serde(with = "Iso")]
    create_time: Option<WallTime>,
    /// When it ended.
    #[serde(with = "Iso")]
    end_time: Option<WallTime>,
    /// Why it ended.
    end_cause: Option<String>,
}

/// An agent that gets the messages of a schedule.
#[derive(Clone, Debug, JsonSchema, Serialize)]
struct Target {
    /// The name of the agent.
    agent: String,
    /// The last message that it got; none: it got none.
    message_id: Option<u64>,
    /// Due times after that message for which it got none.
    skipped_count: u64,
}

from_wire! {
    Schedule => Schedule {
        same => id, owner, body;
        text => zone, end_cause;
        all => targets;
        time::from_wire => first_time, next_time, create_time, end_time;
        word::<v1::ScheduleState> => state;
    }
    without interval, late_max
    with
        interval_ms = |schedule: &v1::Schedule| schedule.interval.map(millis),
        late_max_ms = |schedule: &v1::Schedule| schedule.late_max.map(millis)
}

from_wire! {
    ScheduleTarget => Target {
        same => agent, skipped_count;
        id => message_id;
    }
}

impl Schedule {
    /// Returns its id and owner, for a sentence.
    pub(super) fn name(&self) -> String {
        format!("schedule {} of {}", self.id, visible_line(&self.owner))
    }

    /// Returns a predicate: its state, with the next due time or the cause of its end.
    pub(super) fn standing(&self, style: &Style) -> String {
        let state = self.state.as_deref().unwrap_or("-");
        match self.next_time {
            Some(time) => format!("is {state}, next due {}", style.until(Some(time))),
            None if state == "ended" => format!("has ended{}", prefixed(": ", &self.end_cause)),
            None => format!("is {state}"),
        }
    }

    fn state_cell(&self, style: &Style) -> String {
        let state = self.state.as_deref().unwrap_or("-");
        match state {
            "active" => style.good(state),
            "paused" => style.busy(state),
            _ => style.faint(state),
        }
    }

    fn every(&self) -> String {
        self.interval_ms.map_or_else(|| "once".to_owned(), |millis| time::exact(millis / 1_000))
    }

    /// Returns the names of its targets, the last ones as a number if there are many.
    fn targets_cell(&self) -> String {
        let shown =
            if self.targets.len() > TARGETS_SHOWN { TARGETS_SHOWN - 1 } else { TARGETS_SHOWN };
        let names: Vec<String> =
            self.targets.iter().take(shown).map(|target| visible_line(&target.agent)).collect();
        let more = match self.targets.len().saturating_sub(shown) {
            0 => String::new(),
            more => format!(" +{more}"),
        };
        format!("{}{more}", names.join(", "))
    }
}

impl Target {
    fn line(&self) -> String {
        let message = self.message_id.map_or_else(
            || "no message yet".to_owned(),
            |message_id| format!("last message {message_id}"),
        );
        let skipped = match self.skipped_count {
            0 => String::new(),
            count => format!(", {} skipped", counted(count, "due time", "due times")),
        };
        format!("{}: {message}{skipped}", visible_line(&self.agent))
    }
}

impl Row for Schedule {
    const HEADER: &'static [&'static str] =
        &["ID", "OWNER", "STATE", "NEXT", "EVERY", "TARGETS", "TEXT"];
    const NONE: &'static str = "no schedules";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.id.to_string(),
            visible_line(&self.owner),
            self.state_cell(style),
            style.until(self.next_time),
            self.every(),
            self.targets_cell(),
            visible_line(self.body.trim_end()),
        ]
    }
}

impl Text for Schedule {
    fn text(&self, style: &Style) -> String {
        let next = match self.next_time {
            Some(time) => {
                let (then, left) = (style.time(Some(time)), style.until(Some(time)));
                if then == left { then } else { format!("{then} ({left})") }
            }
            None => "-".to_owned(),
        };
        let late = self.late_max_ms.map_or_else(
            || "any time after it is due".to_owned(),
            |millis| format!("at most {} after it is due", time::exact(millis / 1_000)),
        );
        let mut rows = vec![
            ("schedule", self.id.to_string()),
            ("owner", visible_line(&self.owner)),
            ("state", self.state_cell(style)),
            ("next", next),
            ("first", style.time(self.first_time)),
            ("every", self.every()),
            ("zone", line_cell(&self.zone)),
            ("sent", late),
            ("created", style.time(self.create_time)),
        ];
        if self.end_time.is_some() {
            let cause = prefixed(", ", &self.end_cause);
            rows.push(("ended", format!("{}{cause}", style.time(self.end_time))));
        }
        rows.extend(self.targets.iter().map(|target| ("target", target.line())));
        format!("{}\n\n{}", fields(&rows), indented(&style.body(&self.body), "    "))
    }
}

/// A schedule that was just changed: what it is now in a sentence; as JSON it is the schedule.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(transparent)]
pub(crate) struct Changed(pub(crate) Schedule);

impl Text for Changed {
    fn text(&self, style: &Style) -> String {
        format!("{} {}", self.0.name(), self.0.standing(style))
    }
}

#[cfg(test)]
mod tests {
    use prost_types::{Duration, Timestamp};

    use super::*;

    const FIRST: Option<Timestamp> = Some(Timestamp { seconds: 4_102_477_200, nanos: 0 });

    fn daily() -> v1::Schedule {
        let target = |agent: &str, message_id, skipped_count| v1::ScheduleTarget {
            agent: agent.to_owned(),
            message_id,
            skipped_count,
        };
        let mut daily = v1::Schedule {
            id: 12,
            owner: "ada".to_owned(),
            body: "Report.\nBriefly.\n".to_owned(),
            targets: vec![target("bob", 40, 2), target("cy", 0, 0)],
            first_time: FIRST,
            interval: Some(Duration { seconds: 86_400, nanos: 0 }),
            zone: "Europe/Berlin".to_owned(),
            late_max: Some(Duration { seconds: 5_400, nanos: 0 }),
            next_time: FIRST,
            create_time: FIRST,
            ..v1::Schedule::default()
        };
        daily.set_state(v1::ScheduleState::Active);
        daily
    }

    fn ended() -> v1::Schedule {
        let mut ended = v1::Schedule {
            next_time: None,
            end_time: FIRST,
            end_cause: "its owner was\nretired".to_owned(),
            interval: None,
            zone: String::new(),
            late_max: None,
            ..daily()
        };
        ended.set_state(v1::ScheduleState::Ended);
        ended
    }

    fn text(view: &impl Text) -> String {
        view.text(&Style::utc())
    }

    #[test]
    fn a_schedule_is_shown_with_its_text_and_targets() {
        insta::assert_snapshot!(text(&Schedule::from(daily())), @r"
        schedule  12
        owner     ada
        state     active
        next      2100-01-01 09:00
        first     2100-01-01 09:00
        every     1 d
        zone      Europe/Berlin
        sent      at most 1 h 30 min after it is due
        created   2100-01-01 09:00
        target    bob: last message 40, 2 due times skipped
        target    cy: no message yet

            Report.
            Briefly.
        ");
        insta::assert_snapshot!(text(&Schedule::from(ended())), @r"
        schedule  12
        owner     ada
        state     ended
        next      -
        first     2100-01-01 09:00
        every     once
        zone      -
        sent      any time after it is due
        created   2100-01-01 09:00
        ended     2100-01-01 09:00, its owner was⏎retired
        target    bob: last message 40, 2 due times skipped
        target    cy: no message yet

            Report.
            Briefly.
        ");
    }

    #[test]
    fn a_change_says_what_it_is_now() {
        let mut paused = v1::Schedule { next_time: None, ..daily() };
        paused.set_state(v1::ScheduleState::Paused);
        let changed = [daily(), paused, ended()].map(|now| text(&Changed(now.into())));
        assert_eq!(
            changed,
            [
                "schedule 12 of ada is active, next due 2100-01-01 09:00",
                "schedule 12 of ada is paused",
                "schedule 12 of ada has ended: its owner was⏎retired",
            ]
        );
    }

    #[test]
    fn a_row_names_some_targets_and_counts_the_others() {
        let with = |names: &[&str]| {
            let target = |name: &&str| v1::ScheduleTarget {
                agent: (*name).to_owned(),
                ..v1::ScheduleTarget::default()
            };
            let targets = names.iter().map(target).collect();
            Schedule::from(v1::Schedule { targets, ..daily() }).targets_cell()
        };
        assert_eq!(with(&["a"]), "a");
        assert_eq!(with(&["a", "b", "c"]), "a, b, c");
        assert_eq!(with(&["a", "b", "c", "d"]), "a, b +2");
    }
}
