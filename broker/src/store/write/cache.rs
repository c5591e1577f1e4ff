//! What the writer keeps in memory between commands: agents, the counts of inboxes, leases and
//! their ends, and new rows.
//!
//! Agents are read through: a change of a row drops it from memory, and the next command reads it
//! from the transaction. Counts are written back: a command changes them in memory, and the batch
//! writes each changed inbox once, before its commit. Invariant: a command sees what the earlier
//! ones of its batch did, and what a failed command did is undone. After an aborted batch, which
//! may be on disk after all, memory is empty.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use rusqlite::Result;

use crate::map::Map;
use crate::store::key::AgentKey;
use crate::store::row::agent::AgentRow;
use crate::store::row::inbox::InboxRow;
use crate::store::write::fresh::Fresh;
use crate::store::write::lease_ends::LeaseEnds;
use crate::store::write::leases::Leases;
use crate::store::write::request_ids::RequestIds;

/// Agents in memory. If there are more, all are dropped and read again when they are used.
const AGENTS_MAX: usize = 1024;
/// Inboxes in memory after a commit. A message to everyone reads all of them.
const INBOXES_MAX: usize = 16384;

/// Ids of receives that are known for one agent.
const RECEIVES_MAX: usize = 1024;

/// The counts of an inbox, and whether the file has other ones.
#[derive(Clone, Copy, Debug)]
struct Counts {
    row: InboxRow,
    is_changed: bool,
}

/// The rows, and the changes of the present batch.
#[derive(Debug, Default)]
pub(in crate::store) struct Cache {
    agents: RefCell<Map<AgentKey, Arc<AgentRow>>>,
    keys: RefCell<HashMap<String, AgentKey>>,
    /// Agents that the batch has changed, oldest first.
    changed_agents: RefCell<Vec<AgentKey>>,
    inboxes: RefCell<Map<AgentKey, Counts>>,
    /// For an agent, hashes of the ids of receives: those that gave its live leases, maybe more.
    receives: RefCell<Map<AgentKey, HashSet<u64>>>,
    /// Inboxes that the batch has changed, each with its counts before, oldest change first.
    changed_inboxes: RefCell<Vec<(AgentKey, InboxRow)>>,
    pub(in crate::store) lease_ends: LeaseEnds,
    pub(in crate::store) leases: Leases,
    pub(in crate::store) fresh: Fresh,
    pub(in crate::store) request_ids: RequestIds,
}

/// The changes of a batch at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    agents: usize,
    inboxes: usize,
    lease_ends: usize,
    leases: usize,
    requests: u64,
    /// Whether all that is new was written.
    is_written: bool,
}

impl Cache {
    pub(in crate::store) fn agent(&self, key: AgentKey) -> Option<Arc<AgentRow>> {
        self.agents.borrow().get(&key).cloned()
    }

    pub(in crate::store) fn agent_named(&self, name: &str) -> Option<Arc<AgentRow>> {
        let key = self.keys.borrow().get(name).copied()?;
        self.agent(key)
    }

    /// Keeps a row that was just read.
    pub(in crate::store) fn keep_agent(&self, row: AgentRow) -> Arc<AgentRow> {
        let (mut agents, mut keys) = (self.agents.borrow_mut(), self.keys.borrow_mut());
        if agents.len() >= AGENTS_MAX {
            agents.clear();
            keys.clear();
        }
        let row = Arc::new(row);
        keys.insert(row.name.clone(), row.key);
        agents.insert(row.key, Arc::clone(&row));
        row
    }

    /// Notes that the row of an agent is about to change.
    pub(in crate::store) fn agent_changes(&self, key: AgentKey) {
        self.forget_agent(key);
        self.changed_agents.borrow_mut().push(key);
    }

    fn forget_agent(&self, key: AgentKey) {
        if let Some(row) = self.agents.borrow_mut().remove(&key) {
            self.keys.borrow_mut().remove(&row.name);
        }
    }

    /// Returns the counts of an inbox; `read` reads them from the transaction.
    pub(in crate::store) fn counts(
        &self,
        key: AgentKey,
        read: impl FnOnce() -> Result<InboxRow>,
    ) -> Result<InboxRow> {
        if let Some(counts) = self.inboxes.borrow().get(&key) {
            return Ok(counts.row);
        }
        let row = read()?;
        self.inboxes.borrow_mut().insert(key, Counts { row, is_changed: false });
        Ok(row)
    }

    /// Changes the counts of an inbox from what they are.
    pub(in crate::store) fn set_counts(&self, key: AgentKey, before: InboxRow, row: InboxRow) {
        if before != row {
            self.changed_inboxes.borrow_mut().push((key, before));
            self.inboxes.borrow_mut().insert(key, Counts { row, is_changed: true });
        }
    }

    /// Returns whether a receive with an id of this hash may have given a live lease of the agent;
    /// `read` reads the hashes of its live leases.
    pub(in crate::store) fn may_have_given(
        &self,
        agent: AgentKey,
        hash: u64,
        read: impl FnOnce() -> Result<HashSet<u64>>,
    ) -> Result<bool> {
        let mut receives = self.receives.borrow_mut();
        if let Some(hashes) = receives.get(&agent) {
            return Ok(hashes.contains(&hash));
        }
        let hashes = read()?;
        Ok(receives.entry(agent).insert_entry(hashes).get().contains(&hash))
    }

    /// Notes that a receive with an id of this hash gives a lease.
    pub(in crate::store) fn gives(&self, agent: AgentKey, hash: u64) {
        let mut receives = self.receives.borrow_mut();
        if let Some(hashes) = receives.get_mut(&agent) {
            hashes.insert(hash);
            if hashes.len() > RECEIVES_MAX {
                // Most of these leases have ended, and the rest is read again.
                receives.remove(&agent);
            }
        }
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            agents: self.changed_agents.borrow().len(),
            inboxes: self.changed_inboxes.borrow().len(),
            lease_ends: self.lease_ends.mark(),
            leases: self.leases.mark(),
            requests: self.fresh.requests.mark(),
            is_written: self.fresh.is_empty(),
        }
    }

    /// Undoes the changes since a mark. What was read since then may be a failed command's.
    pub(super) fn reset(&self, mark: Mark) {
        for key in self.changed_agents.borrow_mut().drain(mark.agents..) {
            self.forget_agent(key);
        }
        let mut changed = self.changed_inboxes.borrow_mut();
        let undone = changed.split_off(mark.inboxes);
        for (key, row) in undone.into_iter().rev() {
            self.inboxes.borrow_mut().insert(key, Counts { row, is_changed: true });
            // The command may have had its counts written.
            changed.push((key, row));
        }
        self.lease_ends.reset(mark.lease_ends);
        self.leases.reset(mark.leases);
        if mark.is_written {
            // What is new is the failed command's.
            self.fresh.reset(mark.requests);
        }
    }

    /// Returns whether the transaction has all that memory has.
    pub(super) fn is_written(&self) -> bool {
        self.fresh.is_empty() && self.changed_inboxes.borrow().is_empty()
    }

    /// Writes the changed counts into the transaction.
    pub(super) fn write_back(
        &self,
        mut write: impl FnMut(AgentKey, InboxRow) -> Result<()>,
    ) -> Result<()> {
        let mut inboxes = self.inboxes.borrow_mut();
        for (key, _) in self.changed_inboxes.borrow().iter() {
            if let Some(counts) = inboxes.get_mut(key).filter(|counts| counts.is_changed) {
                write(*key, counts.row)?;
                counts.is_changed = false;
            }
        }
        Ok(())
    }

    /// Notes that the batch is on disk.
    pub(super) fn committed(&self) {
        self.changed_agents.borrow_mut().clear();
        self.changed_inboxes.borrow_mut().clear();
        self.lease_ends.committed();
        self.leases.committed();
        self.request_ids.committed();
        self.fresh.committed();
        let mut inboxes = self.inboxes.borrow_mut();
        if inboxes.len() > INBOXES_MAX {
            inboxes.clear();
        }
        let mut receives = self.receives.borrow_mut();
        if receives.len() > INBOXES_MAX {
            receives.clear();
        }
    }

    /// Forgets, between batches, what a read finds as well.
    pub(super) fn release_memory(&self) {
        self.fresh.messages.clear();
    }

    /// Drops all rows.
    pub(super) fn clear(&self) {
        self.agents.borrow_mut().clear();
        self.keys.borrow_mut().clear();
        self.inboxes.borrow_mut().clear();
        self.receives.borrow_mut().clear();
        self.changed_agents.borrow_mut().clear();
        self.changed_inboxes.borrow_mut().clear();
        self.lease_ends.clear();
        self.leases.clear();
        self.request_ids.clear();
        self.fresh.clear();
    }
}
