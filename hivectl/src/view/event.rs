//! An event: a committed fact.

pub(super) mod facts;

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use self::facts::Facts;
use super::wire::{from_wire, optional, same};
use super::{Iso, Word, cell, id, line_cell, prefixed, text, word};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Row, Text, time};

/// One event.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Event {
    /// Its number in the log.
    pub(crate) sequence: u64,
    /// The kind of the event.
    #[schemars(with = "Word<v1::EventKind>")]
    pub(crate) kind: Option<String>,
    /// The time of the event.
    #[serde(with = "Iso")]
    pub(crate) time: Option<WallTime>,
    /// The agent concerned, or `operator`.
    pub(crate) agent: Option<String>,
    /// The message concerned.
    pub(crate) message_id: Option<u64>,
    /// The turn concerned.
    pub(crate) turn_id: Option<u64>,
    /// More about it, for a person.
    pub(crate) detail: Option<String>,
    /// The question concerned.
    pub(crate) question_id: Option<u64>,
    /// The reminder concerned.
    pub(crate) reminder_id: Option<u64>,
    /// What programs may know besides the ids, by its kind; none for the other kinds, and if the
    /// broker that wrote the event did not store facts.
    pub(crate) facts: Option<Facts>,
}

from_wire! {
    Event => Event {
        same => sequence;
        text => agent, detail;
        id => message_id, turn_id, question_id, reminder_id;
        time::from_wire => time;
        word::<v1::EventKind> => kind;
        optional => facts;
    }
}

impl Event {
    /// Returns the question, reminder or schedule that it concerns, and its detail.
    fn more(&self) -> String {
        let question = self.question_id.map(|id| format!("question {id}"));
        let reminder = self.reminder_id.map(|id| format!("reminder {id}"));
        let schedule = self.facts.as_ref().and_then(Facts::schedule_id);
        let schedule = schedule.map(|id| format!("schedule {id}"));
        let detail = self.detail.as_deref().map(visible_line);
        [question, reminder, schedule, detail].into_iter().flatten().collect::<Vec<_>>().join("  ")
    }
}

impl Row for Event {
    const HEADER: &'static [&'static str] =
        &["SEQ", "TIME", "EVENT", "AGENT", "MESSAGE", "TURN", "DETAIL"];
    const NONE: &'static str = "no events";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.sequence.to_string(),
            style.time(self.time),
            cell(self.kind.as_ref()),
            line_cell(&self.agent),
            cell(self.message_id.as_ref()),
            cell(self.turn_id.as_ref()),
            self.more(),
        ]
    }
}

impl Text for Event {
    fn text(&self, style: &Style) -> String {
        let agent = prefixed("  ", &self.agent);
        let message = self.message_id.map(|id| format!("  message {id}")).unwrap_or_default();
        let turn = self.turn_id.map(|id| format!("  turn {id}")).unwrap_or_default();
        let more = self.more();
        let detail = if more.is_empty() { more } else { format!("  {more}") };
        let kind = style.head(self.kind.as_deref().unwrap_or("-"));
        format!(
            "{}  {}  {kind}{agent}{message}{turn}{detail}",
            self.sequence,
            style.time(self.time)
        )
    }
}
