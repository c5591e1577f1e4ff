//! The row of a message.

use std::sync::Arc;

use hive_core::message::{Message, Origin};
use hive_core::trace::{SpanId, Traced};
use rusqlite::Result;

use crate::store::codec::{Coded, integer};
use crate::store::statement::{Statements, insert_all};

pub(in crate::store) const AGENT: i64 = 1;
pub(in crate::store) const OPERATOR: i64 = 2;
pub(in crate::store) const SYSTEM: i64 = 3;
pub(in crate::store) const EXTERNAL: i64 = 4;

/// A message that was accepted.
#[derive(Clone, Debug)]
pub(in crate::store) struct MessageRow {
    /// Without the names of its recipients.
    pub(in crate::store) message: Arc<Message>,
    /// The key of the agent behind its origin.
    pub(in crate::store) origin: Option<i64>,
    /// The key of its recipient; 0 for everyone.
    pub(in crate::store) to: i64,
    /// The span that caused the one in which it was sent.
    pub(in crate::store) parent_span: Option<SpanId>,
}

impl MessageRow {
    /// Returns the span in which it was sent.
    fn traced(&self) -> Option<Traced> {
        let context = self.message.traceparent?;
        Some(Traced { context, parent: self.parent_span })
    }
}

/// Returns the two columns of an origin: its kind and its name.
pub(in crate::store) fn origin_columns(origin: &Origin) -> (i64, &str) {
    match origin {
        Origin::Agent(name) => (AGENT, name.as_str()),
        Origin::Operator(user) => (OPERATOR, user.as_str()),
        Origin::System => (SYSTEM, ""),
        Origin::External(label) => (EXTERNAL, label.as_str()),
    }
}

/// Adds messages.
pub(in crate::store) fn insert(to: &impl Statements, rows: &[MessageRow]) -> Result<()> {
    insert_all!(to, rows, |row: MessageRow| into message {
        id: integer(row.message.id.get()),
        origin_kind: origin_columns(&row.message.origin).0,
        origin_id: row.origin,
        origin_name: origin_columns(&row.message.origin).1,
        to_id: row.to,
        recipient_count: row.message.recipient_count,
        body: row.message.body.as_str(),
        in_reply_to: row.message.in_reply_to.map(|id| integer(id.get())),
        accept_time: row.message.accept_time.0,
        system_kind: row.message.system_kind.map(Coded::code),
        turn_id: row.message.turn_id.map(|id| integer(id.get())),
        coalescing_key: row.message.coalescing_key.as_deref(),
        question_id: row.message.question_id.map(|id| integer(id.get())),
        reminder_id: row.message.reminder_id.map(|id| integer(id.get())),
        traceparent: row.traced(),
    })
}
