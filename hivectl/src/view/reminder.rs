//! A reminder: mail that an agent sends to itself for later.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{from_wire, same};
use super::{Iso, Word, id, word};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Row, Text, time};

/// One reminder.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Reminder {
    /// The id of the reminder.
    id: u64,
    /// The agent that set the reminder.
    agent: String,
    /// The text.
    body: String,
    /// The state of the reminder.
    #[schemars(with = "Word<v1::ReminderState>")]
    state: Option<String>,
    /// When it was set.
    #[serde(with = "Iso")]
    create_time: Option<WallTime>,
    /// When it fires.
    #[serde(with = "Iso")]
    due_time: Option<WallTime>,
    /// When it fired or was cancelled.
    #[serde(with = "Iso")]
    close_time: Option<WallTime>,
    /// The message that it became.
    message_id: Option<u64>,
    /// The turn that set it.
    turn_id: Option<u64>,
}

from_wire! {
    Reminder => Reminder {
        same => id, agent, body;
        id => message_id, turn_id;
        time::from_wire => create_time, due_time, close_time;
        word::<v1::ReminderState> => state;
    }
}

impl Reminder {
    fn due_cell(&self, style: &Style) -> String {
        if self.state.as_deref() == Some("pending") {
            style.until(self.due_time)
        } else {
            style.time(self.due_time)
        }
    }
}

impl Row for Reminder {
    const HEADER: &'static [&'static str] =
        &["ID", "AGENT", "SET", "STATE", "DUE", "MESSAGE", "BODY"];
    const NONE: &'static str = "no reminders";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.id.to_string(),
            visible_line(&self.agent),
            style.time(self.create_time),
            self.state.clone().unwrap_or_else(|| "-".to_owned()),
            self.due_cell(style),
            super::cell(self.message_id.as_ref()),
            visible_line(self.body.trim_end()),
        ]
    }
}

/// The sentence for a reminder that was just cancelled.
impl Text for Reminder {
    fn text(&self, _: &Style) -> String {
        format!(
            "reminder {} of {} {}",
            self.id,
            visible_line(&self.agent),
            self.state.as_deref().unwrap_or("-")
        )
    }
}
