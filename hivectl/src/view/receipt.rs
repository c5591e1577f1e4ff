//! The receipt of a message: it is on disk.

use hive_core::time::WallTime;
use schemars::JsonSchema;
use serde::Serialize;

use super::Iso;
use super::wire::{from_wire, same};
use crate::output::style::Style;
use crate::output::{Text, time};

/// One receipt.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Receipt {
    /// The id of the message.
    message_id: u64,
    /// The number of recipients.
    recipient_count: u32,
    /// Agents that it was not sent to, because their inboxes are full.
    pub(crate) skipped_agents: Vec<String>,
    /// Whether the very message was sent before; then this is the receipt of that one.
    already_sent: bool,
    /// When it was accepted.
    #[serde(with = "Iso")]
    accept_time: Option<WallTime>,
    /// Unsettled deliveries that the one recipient had then; null for everyone, and if nothing new
    /// was sent.
    ahead_count: Option<u32>,
}

from_wire! {
    SendMessageResponse => Receipt {
        same => message_id, recipient_count, skipped_agents, already_sent, ahead_count;
        time::from_wire => accept_time;
    }
}

impl Text for Receipt {
    fn text(&self, _: &Style) -> String {
        let recipients = if self.recipient_count == 1 { "recipient" } else { "recipients" };
        let ahead = match self.ahead_count {
            Some(ahead) if ahead > 0 => format!(", {ahead} unsettled before it"),
            _ => String::new(),
        };
        format!(
            "message {} accepted, {} {recipients}{ahead}",
            self.message_id, self.recipient_count
        )
    }
}
