//! A delivery: one message on its way to one recipient.

use hive_core::time::WallTime;
use hive_proto::v1;
use schemars::JsonSchema;
use serde::Serialize;

use super::message::Message;
use super::wire::{from_wire, present, same};
use super::{Iso, Word, fields, id, line_cell, optional_word, text, word};
use crate::output::style::Style;
use crate::output::text::{indented, visible_line};
use crate::output::{Row, Text, time};

/// One delivery.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Delivery {
    /// The agent whose inbox has the delivery; `operator` for the operator's.
    pub(crate) agent: String,
    /// The message of the delivery.
    pub(crate) message: Message,
    /// The state of the delivery.
    #[schemars(with = "Word<v1::DeliveryState>")]
    pub(crate) state: Option<String>,
    /// The order in which it is served.
    #[schemars(with = "Word<v1::Lane>")]
    lane: Option<String>,
    /// The number of its present or last attempt; 0 before the first.
    attempt: u32,
    /// Why it came back.
    #[schemars(with = "Word<v1::RedeliveryCause>")]
    redelivery_cause: Option<String>,
    /// The error of its last attempt.
    last_error: Option<String>,
    /// The end of that turn's output.
    output_tail: Option<String>,
    /// The turn that carries it, or carried it last.
    turn_id: Option<u64>,
    /// The earliest time of the next attempt.
    #[serde(with = "Iso")]
    not_before_time: Option<WallTime>,
    /// The start of this state.
    #[serde(with = "Iso")]
    state_time: Option<WallTime>,
    /// The caller that settled the delivery, if no turn did.
    settled_by: Option<String>,
}

from_wire! {
    Delivery => Delivery {
        same => agent, attempt;
        text => last_error, output_tail, settled_by;
        id => turn_id;
        time::from_wire => not_before_time, state_time;
        present => message;
        word::<v1::DeliveryState> => state;
        word::<v1::Lane> => lane;
        optional_word::<v1::RedeliveryCause> => redelivery_cause;
    }
}

impl Delivery {
    fn state_cell(&self, style: &Style) -> String {
        let state = self.state.as_deref().unwrap_or("-");
        match state {
            "dead" | "held" => style.bad(state),
            "leased" => style.busy(state),
            _ => state.to_owned(),
        }
    }
}

impl Row for Delivery {
    const HEADER: &'static [&'static str] = &["ID", "TIME", "FROM", "RE", "STATE", "TRY", "BODY"];
    const NONE: &'static str = "no mail";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.message.id.to_string(),
            style.time(self.message.accept_time),
            visible_line(&self.message.from),
            self.message.regarding(),
            self.state_cell(style),
            self.attempt.to_string(),
            self.message.preview(),
        ]
    }
}

impl Text for Delivery {
    fn text(&self, style: &Style) -> String {
        let mut rows = vec![
            ("message", self.message.id.to_string()),
            ("from", visible_line(&self.message.from)),
            ("to", visible_line(&self.message.to())),
            ("regarding", self.message.regarding()),
            ("accepted", style.time(self.message.accept_time)),
            ("inbox", visible_line(&self.agent)),
            ("state", format!("{} since {}", self.state_cell(style), style.time(self.state_time))),
            ("attempt", self.attempt.to_string()),
        ];
        let optional = [
            ("came back", self.redelivery_cause.clone()),
            ("last error", self.last_error.as_deref().map(visible_line)),
            ("turn", self.turn_id.map(|turn| turn.to_string())),
            ("not before", self.not_before_time.map(|time| style.time(Some(time)))),
            ("settled by", self.settled_by.as_deref().map(visible_line)),
        ];
        rows.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        let mut text = format!("{}\n\n{}", fields(&rows), style.body(&self.message.body));
        if let Some(tail) = &self.output_tail {
            text = format!(
                "{}\n\nend of the turn's output:\n{}",
                text.trim_end(),
                indented(&style.body(tail), "    ")
            );
        }
        text
    }
}

/// A dead letter: a delivery, listed over all inboxes.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(transparent)]
pub(crate) struct DeadLetter(pub(crate) Delivery);

impl From<v1::Delivery> for DeadLetter {
    fn from(delivery: v1::Delivery) -> Self {
        Self(delivery.into())
    }
}

impl Row for DeadLetter {
    const HEADER: &'static [&'static str] =
        &["ID", "DIED", "AGENT", "FROM", "TRIES", "TURN", "ERROR"];
    const NONE: &'static str = "no dead letters";

    fn cells(&self, style: &Style) -> Vec<String> {
        let delivery = &self.0;
        vec![
            delivery.message.id.to_string(),
            style.time(delivery.state_time),
            visible_line(&delivery.agent),
            visible_line(&delivery.message.from),
            delivery.attempt.to_string(),
            super::cell(delivery.turn_id.as_ref()),
            line_cell(&delivery.last_error),
        ]
    }
}
