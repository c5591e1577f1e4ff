//! One hop of a message's journey.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Iso, Word};
use crate::output::Row;
use crate::output::style::Style;

/// One hop.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Hop {
    /// The time of the event.
    #[serde(with = "Iso")]
    pub(crate) time: Option<WallTime>,
    /// The event's sequence number.
    pub(crate) sequence: u64,
    /// The event's kind.
    #[schemars(with = "Word<v1::EventKind>")]
    pub(crate) kind: Option<String>,
    /// The agent concerned, or `operator`.
    pub(crate) agent: Option<String>,
    /// The message concerned.
    pub(crate) message_id: Option<u64>,
    /// The turn concerned.
    pub(crate) turn_id: Option<u64>,
    /// The question concerned.
    pub(crate) question_id: Option<u64>,
    /// The reminder concerned.
    pub(crate) reminder_id: Option<u64>,
    /// A description of the event, for a person.
    pub(crate) what: String,
    /// Milliseconds since the first hop.
    pub(crate) after_ms: u64,
    /// The id of the trace that the message was sent in; only of a hop that is its acceptance.
    pub(crate) trace_id: Option<String>,
}

impl Row for Hop {
    const HEADER: &'static [&'static str] = &["TIME", "AFTER", "WHAT"];
    const NONE: &'static str = "nothing is known of its journey any more";

    fn cells(&self, style: &Style) -> Vec<String> {
        let after = crate::output::time::span(
            WallTime(0),
            WallTime(i64::try_from(self.after_ms).unwrap_or(i64::MAX)),
        );
        vec![style.time(self.time), format!("+{after}"), self.what.clone()]
    }
}
