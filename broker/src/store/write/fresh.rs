//! What the commands of a batch have added, as far as memory has it: ready deliveries and events
//! that are written before the commit, and messages that need not be read back.
//!
//! Most new deliveries are leased in the batch that accepts them, and are then written once, as
//! leased ones. Invariant: a statement that could read these rows runs after they are written. A
//! command that can be undone begins when all are written, so undoing it removes no row of an
//! earlier one.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};

use hive_core::id::MessageId;
use hive_core::message::Message;
use rusqlite::Result;

use crate::store::key::AgentKey;
use crate::store::row::delivery::DeliveryRow;
use crate::store::row::event::EventRow;

/// Bytes of the largest text that memory has. A longer one is read back.
const BODY_BYTES_MAX: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(in crate::store) struct Fresh {
    /// Ready deliveries of each agent, in the order of their messages.
    deliveries: RefCell<HashMap<AgentKey, VecDeque<DeliveryRow>>>,
    events: RefCell<Vec<EventRow>>,
    /// Messages of the batch, without the names of their recipients.
    messages: RefCell<HashMap<MessageId, Message>>,
    /// Changes since the start.
    changes: Cell<u64>,
}

impl Fresh {
    fn changed(&self) {
        self.changes.set(self.changes.get() + 1);
    }

    /// Returns the number of changes that commands have made so far.
    pub(super) fn changes(&self) -> u64 {
        self.changes.get()
    }

    /// Returns whether rows are to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.deliveries.borrow().is_empty() && self.events.borrow().is_empty()
    }

    /// Adds a ready delivery of a new message.
    pub(in crate::store) fn add(&self, row: DeliveryRow) {
        self.changed();
        self.deliveries.borrow_mut().entry(row.agent).or_default().push_back(row);
    }

    pub(in crate::store) fn add_event(&self, row: EventRow) {
        self.changed();
        self.events.borrow_mut().push(row);
    }

    /// Keeps a message for the one that is leased it in this batch, unless its body is long.
    pub(in crate::store) fn keep_message(
        &self,
        id: MessageId,
        body_bytes: usize,
        message: impl FnOnce() -> Message,
    ) {
        if body_bytes <= BODY_BYTES_MAX {
            self.messages.borrow_mut().insert(id, message());
        }
    }

    pub(in crate::store) fn take_message(&self, id: MessageId) -> Option<Message> {
        self.messages.borrow_mut().remove(&id)
    }

    /// Returns how many deliveries of an agent are not written.
    pub(in crate::store) fn count(&self, agent: AgentKey) -> usize {
        self.deliveries.borrow().get(&agent).map_or(0, VecDeque::len)
    }

    /// Returns those deliveries of an agent that are not written and that are wanted.
    pub(in crate::store) fn of(
        &self,
        agent: AgentKey,
        wanted: impl Fn(&DeliveryRow) -> bool,
    ) -> Vec<DeliveryRow> {
        let deliveries = self.deliveries.borrow();
        let rows = deliveries.get(&agent).into_iter().flatten();
        rows.filter(|row| wanted(row)).cloned().collect()
    }

    /// Removes a delivery whose state changes; returns whether it was not written.
    pub(in crate::store) fn take(&self, agent: AgentKey, message: MessageId) -> bool {
        let mut deliveries = self.deliveries.borrow_mut();
        let Some(rows) = deliveries.get_mut(&agent) else { return false };
        let Some(at) = rows.iter().position(|row| row.message == message) else { return false };
        rows.remove(at);
        if rows.is_empty() {
            deliveries.remove(&agent);
        }
        self.changed();
        true
    }

    /// Writes all rows. If that fails, the batch is aborted.
    pub(super) fn write_back(
        &self,
        mut delivery: impl FnMut(&DeliveryRow) -> Result<()>,
        events: impl FnOnce(&[EventRow]) -> Result<()>,
    ) -> Result<()> {
        for row in self.deliveries.take().values().flatten() {
            delivery(row)?;
        }
        events(&self.events.take())
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.deliveries.borrow_mut().clear();
        self.events.borrow_mut().clear();
        self.messages.borrow_mut().clear();
    }
}
