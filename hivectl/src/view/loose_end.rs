//! A loose end: something that an agent, or the operator, has open.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::wire::{from_wire, same};
use super::{Iso, Word, cell, line_cell, text, word};
use crate::output::style::Style;
use crate::output::text::visible_line;
use crate::output::{Row, time};

/// One loose end.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct LooseEnd {
    /// The kind of the loose end.
    #[schemars(with = "Word<v1::LooseEndKind>")]
    kind: Option<String>,
    /// Of the question, the reminder, the message or the published entry.
    id: u64,
    /// The owner; `operator` for the operator.
    pub(crate) agent: String,
    /// The other side.
    peer: Option<String>,
    /// The subject of the loose end.
    text: String,
    /// The time at which it was opened.
    #[serde(with = "Iso")]
    create_time: Option<WallTime>,
    /// When it ends by itself.
    #[serde(with = "Iso")]
    due_time: Option<WallTime>,
    /// The co-process's own name for it.
    key: Option<String>,
}

from_wire! {
    LooseEnd => LooseEnd {
        same => id, agent, text;
        text => peer, key;
        time::from_wire => create_time, due_time;
        word::<v1::LooseEndKind> => kind;
    }
}

impl Row for LooseEnd {
    const HEADER: &'static [&'static str] =
        &["ID", "AGENT", "KIND", "PEER", "SINCE", "DUE", "TEXT"];
    const NONE: &'static str = "no loose ends";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.id.to_string(),
            visible_line(&self.agent),
            cell(self.kind.as_ref()),
            line_cell(&self.peer),
            style.time(self.create_time),
            style.until(self.due_time),
            visible_line(self.text.trim_end()),
        ]
    }
}
