//! A thread as an inbox has it: mail that belongs to one chain of replies, in one line.

use schemars::JsonSchema;
use serde::Serialize;

use super::delivery::Delivery;
use super::message::Message;
use crate::output::Row;
use crate::output::style::Style;
use crate::output::text::visible_line;

/// The part of a thread that is in one inbox.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub(crate) struct Thread {
    /// The message with which the thread begins; it may be in another inbox.
    thread_id: u64,
    /// The messages of the thread that are listed here, in order.
    message_ids: Vec<u64>,
    /// The number of unread messages in the list.
    unread_count: u32,
    /// The senders, each named once.
    from: Vec<String>,
    /// The newest message in the list.
    last_message: Message,
}

impl Thread {
    pub(crate) fn new(thread_id: u64, delivery: Delivery) -> Self {
        let last_message = delivery.message.clone();
        let mut thread = Self {
            thread_id,
            message_ids: Vec::new(),
            unread_count: 0,
            from: Vec::new(),
            last_message,
        };
        thread.add(delivery);
        thread
    }

    pub(crate) fn add(&mut self, delivery: Delivery) {
        self.unread_count += u32::from(delivery.state.as_deref() == Some("ready"));
        self.message_ids.push(delivery.message.id);
        if !self.from.contains(&delivery.message.from) {
            self.from.push(delivery.message.from.clone());
        }
        self.last_message = delivery.message;
    }

    /// Returns the id of the newest message.
    pub(crate) fn last(&self) -> u64 {
        self.last_message.id
    }
}

impl Row for Thread {
    const HEADER: &'static [&'static str] =
        &["THREAD", "MAIL", "UNREAD", "LAST", "TIME", "FROM", "BODY"];
    const NONE: &'static str = "no mail";

    fn cells(&self, style: &Style) -> Vec<String> {
        vec![
            self.thread_id.to_string(),
            self.message_ids.len().to_string(),
            self.unread_count.to_string(),
            self.last_message.id.to_string(),
            style.time(self.last_message.accept_time),
            visible_line(&self.from.join(", ")),
            self.last_message.preview(),
        ]
    }
}
