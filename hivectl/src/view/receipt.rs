//! The receipt of a message: it is on disk.

use hive_core::time::WallTime;
use hive_proto::v1;
use serde::Serialize;

use super::iso;
use crate::output::style::Style;
use crate::output::{Text, View, time};

/// One receipt.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Receipt {
    message_id: u64,
    recipient_count: u32,
    pub(crate) skipped_agents: Vec<String>,
    already_sent: bool,
    #[serde(serialize_with = "iso")]
    accept_time: Option<WallTime>,
}

impl From<v1::SendMessageResponse> for Receipt {
    fn from(response: v1::SendMessageResponse) -> Self {
        let v1::SendMessageResponse { message_id, already_sent, skipped_agents, recipient_count, accept_time } = response;
        Self { message_id, recipient_count, skipped_agents, already_sent, accept_time: time::of_wire(accept_time) }
    }
}

impl View for Receipt {
    const SCHEMA: &'static str = "hive.receipt.v1";
}

impl Text for Receipt {
    fn text(&self, _: &Style) -> String {
        let recipients = if self.recipient_count == 1 { "recipient" } else { "recipients" };
        format!("message {} accepted, {} {recipients}", self.message_id, self.recipient_count)
    }
}
