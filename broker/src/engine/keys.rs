//! Keys of agents by name, so that a call needs no lookup of its caller.
//!
//! A name keeps its key until the agent is purged. Invariant: a key that was read before a purge is
//! not cached after it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::store::AgentKey;

/// Keys of agents by name.
#[derive(Debug, Default)]
pub(crate) struct Keys(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The number of purges.
    generation: u64,
    by_name: HashMap<String, AgentKey>,
}

impl Keys {
    /// Returns the key of a name, or the generation under which a key that is read now may be kept.
    pub(crate) fn get(&self, name: &str) -> Result<AgentKey, u64> {
        let inner = self.lock();
        inner.by_name.get(name).copied().ok_or(inner.generation)
    }

    /// Keeps a key that was read after [`Self::get`] returned this generation, unless an agent was
    /// purged since.
    pub(crate) fn keep(&self, generation: u64, name: &str, key: AgentKey) {
        let mut inner = self.lock();
        if inner.generation == generation {
            inner.by_name.insert(name.to_owned(), key);
        }
    }

    /// Forgets the key of a purged agent.
    pub(crate) fn forget(&self, name: &str) {
        let mut inner = self.lock();
        inner.generation += 1;
        inner.by_name.remove(name);
    }

    /// Forgets all keys.
    pub(crate) fn clear(&self) {
        let mut inner = self.lock();
        inner.generation += 1;
        inner.by_name.clear();
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_was_read_before_a_purge_is_not_kept() {
        let keys = Keys::default();
        let generation = keys.get("ada").expect_err("not known yet");
        keys.forget("ada");
        keys.keep(generation, "ada", AgentKey(2));
        let generation = keys.get("ada").expect_err("forgotten");
        keys.keep(generation, "ada", AgentKey(3));
        assert_eq!(keys.get("ada"), Ok(AgentKey(3)));
    }
}
