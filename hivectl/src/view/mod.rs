//! Views: each resource of the contract as the flat record of tables and JSON.
//!
//! What it is not: a filter. Messages are destructured field by field, so a new field of the
//! contract breaks this build until it is shown. Values that only a newer broker knows are shown as
//! numbers.
//!
//! Invariant: the field names here are the documented JSON; they are changed by a new schema
//! version only.

pub(crate) mod agent;
pub(crate) mod approval;
pub(crate) mod backup;
pub(crate) mod bundle;
pub(crate) mod bundled;
pub(crate) mod check;
pub(crate) mod config_key;
pub(crate) mod delivery;
pub(crate) mod done;
pub(crate) mod event;
pub(crate) mod finding;
pub(crate) mod firing;
pub(crate) mod hit;
pub(crate) mod hop;
pub(crate) mod isolation;
pub(crate) mod loose_end;
pub(crate) mod message;
pub(crate) mod question;
pub(crate) mod receipt;
pub(crate) mod reminder;
pub(crate) mod restored;
mod said;
pub(crate) mod schedule;
pub(crate) mod search_words;
pub(crate) mod status;
pub(crate) mod thread;
pub(crate) mod topology;
pub(crate) mod turn;
pub(crate) mod turn_event;
pub(crate) mod turn_stats;
mod usage;
mod wire;
mod word;

use std::borrow::Cow;

use hive_core::time::WallTime;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serializer;

use self::word::{Word, optional_word, word};
use crate::output::text::visible_line;
use crate::output::{View, time};

macro_rules! schemas {
    ($($view:ty = $name:literal,)*) => {
        $(impl View for $view {
            const SCHEMA: &'static str = $name;
        })*
    };
}

schemas! {
    agent::Agent = "hive.agent.v1",
    backup::Backup = "hive.backup.v1",
    bundle::Bundle = "hive.bundle.v1",
    check::Check = "hive.check.v1",
    config_key::ConfigKey = "hive.config_key.v1",
    delivery::DeadLetter = "hive.delivery.v1",
    delivery::Delivery = "hive.delivery.v1",
    done::Done = "hive.done.v1",
    event::Event = "hive.event.v1",
    finding::Finding = "hive.finding.v1",
    firing::Firing = "hive.firing.v1",
    hit::Hit = "hive.hit.v1",
    hop::Hop = "hive.hop.v1",
    loose_end::LooseEnd = "hive.loose_end.v1",
    message::Message = "hive.message.v1",
    question::Closed = "hive.question.v1",
    question::Question = "hive.question.v1",
    receipt::Receipt = "hive.receipt.v1",
    reminder::Reminder = "hive.reminder.v1",
    restored::Restored = "hive.restored.v1",
    schedule::Changed = "hive.schedule.v1",
    schedule::Schedule = "hive.schedule.v1",
    status::Status = "hive.status.v1",
    thread::Thread = "hive.thread.v1",
    topology::Node = "hive.topology.v1",
    turn::Turn = "hive.turn.v1",
    turn_event::TurnEvent = "hive.turn_event.v1",
    turn_stats::TurnStats = "hive.turn_stats.v1",
}

/// Returns an id; `None` for 0, which is none.
fn id(id: u64) -> Option<u64> {
    (id != 0).then_some(id)
}

/// Returns a text; `None` for the empty one.
fn text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// Returns a cell for something that may be absent.
fn cell<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn line_cell(text: &Option<String>) -> String {
    text.as_deref().map_or_else(|| "-".to_owned(), visible_line)
}

fn prefixed(before: &str, text: &Option<String>) -> String {
    text.as_deref().map(|text| format!("{before}{}", visible_line(text))).unwrap_or_default()
}

/// A time as JSON: ISO 8601 in UTC, to the millisecond, or nothing.
#[derive(Debug)]
struct Iso;

impl Iso {
    fn serialize<S: Serializer>(time: &Option<WallTime>, serializer: S) -> Result<S::Ok, S::Error> {
        match time {
            Some(time) => serializer.serialize_str(&time::iso(*time)),
            None => serializer.serialize_none(),
        }
    }
}

impl JsonSchema for Iso {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "time".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "null"], "format": "date-time" })
    }
}

pub(crate) fn counted(count: impl TryInto<u64>, noun: &str, plural: &str) -> String {
    let count = count.try_into().unwrap_or(u64::MAX);
    format!("{count} {}", if count == 1 { noun } else { plural })
}

/// Lines of `name  value`, the names as wide as the widest.
fn fields(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows
        .iter()
        .map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}
