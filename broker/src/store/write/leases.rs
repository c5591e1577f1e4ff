//! The leased deliveries of agents, as the transaction has them.
//!
//! A settlement finds its delivery here, and a stream what it holds. Invariant: what memory has of
//! an agent is all that is leased from its inbox. An agent that a failed command has changed or
//! read is forgotten, and all are after an aborted batch.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use hive_core::id::MessageId;
use rusqlite::Result;

use crate::map::Map;
use crate::store::key::AgentKey;
use crate::store::row::delivery::DeliveryRow;

/// Leased deliveries of one agent.
pub(in crate::store) type Rows = BTreeMap<MessageId, Arc<DeliveryRow>>;

/// Bytes in memory after a commit.
const BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(in crate::store) struct Leases {
    agents: RefCell<Map<AgentKey, Rows>>,
    bytes: Cell<usize>,
    /// Agents that the batch has changed or read, oldest first.
    changed: RefCell<Vec<AgentKey>>,
}

fn bytes_of(row: &DeliveryRow) -> usize {
    size_of::<DeliveryRow>() + row.last_error.len() + row.output_tail.len()
}

impl Leases {
    /// Passes the leased deliveries of an agent to `work`; `read` reads them from the transaction.
    pub(in crate::store) fn of<T>(
        &self,
        agent: AgentKey,
        read: impl FnOnce() -> Result<Vec<DeliveryRow>>,
        work: impl FnOnce(&Rows) -> T,
    ) -> Result<T> {
        if let Some(rows) = self.agents.borrow().get(&agent) {
            return Ok(work(rows));
        }
        let rows: Rows = read()?.into_iter().map(|row| (row.message, Arc::new(row))).collect();
        self.bytes.set(self.bytes.get() + rows.values().map(|row| bytes_of(row)).sum::<usize>());
        self.changed.borrow_mut().push(agent);
        Ok(work(self.agents.borrow_mut().entry(agent).insert_entry(rows).get()))
    }

    /// Returns whether memory has the leased deliveries of an agent.
    pub(in crate::store) fn has(&self, agent: AgentKey) -> bool {
        self.agents.borrow().contains_key(&agent)
    }

    /// Notes that a delivery was leased, or that its lease has changed; `is_only`: it is the only
    /// one that is leased from its inbox.
    pub(in crate::store) fn put(&self, row: &Arc<DeliveryRow>, is_only: bool) {
        let mut agents = self.agents.borrow_mut();
        if is_only {
            agents.entry(row.agent).or_default();
        }
        let Some(rows) = agents.get_mut(&row.agent) else { return };
        self.changed.borrow_mut().push(row.agent);
        let before = rows.insert(row.message, Arc::clone(row)).map_or(0, |row| bytes_of(&row));
        self.bytes.set(self.bytes.get() + bytes_of(row) - before);
    }

    /// Notes that a delivery is leased no more.
    pub(in crate::store) fn remove(&self, agent: AgentKey, message: MessageId) {
        let mut agents = self.agents.borrow_mut();
        let Some(rows) = agents.get_mut(&agent) else { return };
        self.changed.borrow_mut().push(agent);
        let before = rows.remove(&message).map_or(0, |row| bytes_of(&row));
        self.bytes.set(self.bytes.get() - before);
        if rows.is_empty() {
            agents.remove(&agent);
        }
    }

    /// Forgets the leases of an agent, because a statement changes their rows.
    pub(in crate::store) fn forget(&self, agent: AgentKey) {
        if let Some(rows) = self.agents.borrow_mut().remove(&agent) {
            self.bytes
                .set(self.bytes.get() - rows.values().map(|row| bytes_of(row)).sum::<usize>());
        }
    }

    pub(super) fn mark(&self) -> usize {
        self.changed.borrow().len()
    }

    /// Forgets the agents that were changed or read since a mark.
    pub(super) fn reset(&self, mark: usize) {
        for agent in self.changed.borrow_mut().drain(mark..) {
            self.forget(agent);
        }
    }

    /// Notes that the batch is on disk.
    pub(super) fn committed(&self) {
        self.changed.borrow_mut().clear();
        if self.bytes.get() > BYTES_MAX {
            self.forget_all();
        }
    }

    /// Forgets the leases of all agents.
    pub(super) fn forget_all(&self) {
        self.agents.borrow_mut().clear();
        self.bytes.set(0);
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.forget_all();
        self.changed.borrow_mut().clear();
    }
}
