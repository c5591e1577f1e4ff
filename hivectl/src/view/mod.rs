//! What is shown: each resource of the contract as the flat record that tables and JSON have in common.
//!
//! What it is not: it knows nothing of the wire beyond reading it, and drops nothing; the messages are taken apart field by field, so a new
//! field of the contract breaks this build until it is shown. Values that a newer broker knows and this program does not are shown as numbers.
//!
//! Invariant: the field names here are the documented JSON; they are changed by a new schema version only.

pub(crate) mod agent;
pub(crate) mod delivery;
pub(crate) mod done;
pub(crate) mod event;
pub(crate) mod finding;
pub(crate) mod hit;
pub(crate) mod hop;
pub(crate) mod loose_end;
pub(crate) mod message;
pub(crate) mod question;
pub(crate) mod receipt;
pub(crate) mod reminder;
pub(crate) mod search_words;
pub(crate) mod status;
pub(crate) mod topology;
pub(crate) mod turn;
pub(crate) mod turn_event;

use hive_core::time::WallTime;
use serde::Serializer;

use crate::output::time;

/// The word for a value of an enumeration: `DELIVERY_STATE_READY` is `ready`; `None` for the unspecified one.
fn word<E: TryFrom<i32>>(value: i32, name: impl Fn(&E) -> &'static str, prefix: &str) -> Option<String> {
    let Ok(known) = E::try_from(value) else { return Some(format!("unknown_{value}")) };
    let name = name(&known);
    let word = name.strip_prefix(prefix).unwrap_or(name).to_ascii_lowercase();
    (word != "unspecified").then_some(word)
}

/// An id; `None` for 0, which is none.
fn id(id: u64) -> Option<u64> {
    (id != 0).then_some(id)
}

/// A text; `None` for the empty one.
fn text(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A cell for something that may be absent.
fn cell<T: ToString>(value: Option<&T>) -> String {
    value.map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// A time as JSON.
fn iso<S: Serializer>(time: &Option<WallTime>, serializer: S) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => serializer.serialize_str(&time::iso(*time)),
        None => serializer.serialize_none(),
    }
}

/// So many of something, in words.
fn counted(count: u64, noun: &str, plural: &str) -> String {
    format!("{count} {}", if count == 1 { noun } else { plural })
}

/// Lines of `name  value`, the names as wide as the widest.
fn fields(rows: &[(&str, String)]) -> String {
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let lines: Vec<String> = rows.iter().map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned()).collect();
    lines.join("\n")
}
