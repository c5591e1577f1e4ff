//! Attachments that are on disk, as the store reports its commits.
//!
//! Invariant: the newest attachment of an agent is never cut off while its session lives. If it is,
//! an attach that is not on disk fenced it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hive_broker::engine::memory::Memory;
use hive_broker::store::{AgentKey, Committed, Effect};
use hive_broker::store::{Live, PresenceChange};

/// The broker's memory and the newest attachment of each agent.
#[derive(Debug, Default)]
pub(crate) struct Attachments {
    memory: Arc<Memory>,
    newest: Mutex<BTreeMap<AgentKey, Live>>,
}

impl Attachments {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self { memory, newest: Mutex::default() }
    }

    /// Returns whether the newest attachment of an agent was cut off.
    pub(crate) fn is_wrongly_fenced(&self, agent: AgentKey) -> bool {
        let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        newest.get(&agent).is_some_and(|live| live.ended().is_cancelled())
    }
}

impl Committed for Attachments {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        let mut newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
        for effect in effects {
            let Effect::Presence(agent, change) = effect else { continue };
            match change {
                PresenceChange::Attached { live, .. } => drop(newest.insert(*agent, live.clone())),
                PresenceChange::Awaited { .. } | PresenceChange::Ended { .. } => {
                    drop(newest.remove(agent));
                }
                PresenceChange::TurnOpen { .. } => {}
            }
        }
        drop(newest);
        self.memory.committed(effects, last_event);
    }

    fn answered(&self, last_event: u64) {
        self.memory.answered(last_event);
    }

    fn recovered(&self) {
        self.memory.recovered();
    }
}
