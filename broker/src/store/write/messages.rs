//! Messages in the writer's memory: those of the batch that are not written, and the newest, whose
//! recipients have not been leased them yet.
//!
//! A message never changes, so what memory has of one is what its row has. Invariant: a message
//! that is not written is found here until it is.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use hive_core::id::MessageId;
use hive_core::message::Message;
use hive_core::trace::TraceContext;
use rusqlite::Result;

use crate::store::row::message::{self, MessageRow};
use crate::store::statement::Statements;

/// Bytes of the largest text that memory has. A message with a longer one is written at once, and
/// read back.
pub(in crate::store) const BODY_BYTES_MAX: usize = 4 * 1024;

/// Bytes in memory after a commit.
const BYTES_MAX: usize = 256 * 1024;

#[derive(Debug, Default)]
pub(in crate::store) struct Messages {
    /// Those that are not written.
    unwritten: RefCell<Vec<MessageRow>>,
    /// Those that were not leased since they were accepted.
    newest: RefCell<BTreeMap<MessageId, Arc<Message>>>,
    /// The bytes of these.
    bytes: Cell<usize>,
}

fn bytes_of(message: &Message) -> usize {
    size_of::<Message>() + message.body.len()
}

impl Messages {
    /// Adds a message of one recipient that was accepted.
    pub(super) fn add(&self, row: MessageRow) {
        let message = &row.message;
        self.bytes.set(self.bytes.get() + bytes_of(message));
        self.newest.borrow_mut().insert(message.id, Arc::clone(message));
        self.unwritten.borrow_mut().push(row);
    }

    /// Returns a message that is leased for the first time, without the name of its recipient.
    pub(in crate::store) fn take(&self, id: MessageId) -> Option<Message> {
        let message = self.newest.borrow_mut().remove(&id)?;
        self.bytes.set(self.bytes.get() - bytes_of(&message));
        Some(Arc::unwrap_or_clone(message))
    }

    /// Returns the span in which a message was sent, if it was not leased since.
    pub(in crate::store) fn trace_of(&self, id: MessageId) -> Option<Option<TraceContext>> {
        self.newest.borrow().get(&id).map(|message| message.traceparent)
    }

    /// Returns whether a message is not written.
    pub(in crate::store) fn is_unwritten(&self, id: MessageId) -> bool {
        self.unwritten.borrow().iter().rev().any(|row| row.message.id == id)
    }

    pub(super) fn are_written(&self) -> bool {
        self.unwritten.borrow().is_empty()
    }

    pub(super) fn write_back(&self, to: &impl Statements) -> Result<()> {
        message::insert(to, &self.unwritten.take())
    }

    /// Notes that the batch, which was written, is on disk.
    pub(super) fn committed(&self) {
        let (mut newest, mut bytes) = (self.newest.borrow_mut(), self.bytes.get());
        while bytes > BYTES_MAX
            && let Some((_, oldest)) = newest.pop_first()
        {
            bytes -= bytes_of(&oldest);
        }
        self.bytes.set(bytes);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.unwritten.borrow_mut().clear();
        self.newest.borrow_mut().clear();
        self.bytes.set(0);
    }
}

#[cfg(test)]
mod tests {
    use hive_core::message::Origin;
    use hive_core::time::WallTime;

    use super::*;

    fn id(number: u64) -> MessageId {
        MessageId::new(number).expect("a number")
    }

    fn row(number: u64, body_bytes: usize) -> MessageRow {
        let message = Message {
            id: id(number),
            origin: Origin::System,
            recipients: Vec::new(),
            recipient_count: 1,
            body: "x".repeat(body_bytes),
            in_reply_to: None,
            accept_time: WallTime(0),
            system_kind: None,
            broadcast: false,
            turn_id: None,
            coalescing_key: None,
            question_id: None,
            reminder_id: None,
            traceparent: None,
        };
        MessageRow { message: Arc::new(message), origin: None, to: 1, parent_span: None }
    }

    #[test]
    fn a_message_is_there_once_and_the_oldest_go_first() {
        let messages = Messages::default();
        let each = BODY_BYTES_MAX - size_of::<Message>();
        for number in 1..=100 {
            messages.add(row(number, each));
        }
        messages.committed();
        let kept = BYTES_MAX / BODY_BYTES_MAX;
        let found: Vec<u64> =
            (1..=100).filter(|number| messages.take(id(*number)).is_some()).collect();
        assert_eq!(found, Vec::from_iter(100 - kept as u64 + 1..=100));
        assert_eq!((messages.take(id(100)), messages.bytes.get()), (None, 0));
        assert!(messages.is_unwritten(id(100)), "only the rows say that it is written");
    }
}
