//! The broker's memory beside its database: waiters, attached harnesses, keys of names.
//!
//! Invariant: a command changes it by effects alone, so what an aborted batch decided leaves no
//! trace.

use std::sync::Arc;

use super::keys::Keys;
use super::presence::Presences;
use crate::store::{Committed, Effect};
use crate::wake::Hints;

/// The memory of the broker.
#[derive(Debug, Default)]
pub struct Memory {
    /// Hints for waiters.
    pub hints: Arc<Hints>,
    pub(super) presences: Arc<Presences>,
    pub(super) keys: Arc<Keys>,
}

impl Committed for Memory {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        for effect in effects {
            match effect {
                Effect::Presence(agent, change) => self.presences.apply(*agent, change),
                Effect::NameFreed(name) => self.keys.forget(name),
                Effect::Wake(_)
                | Effect::Session(_)
                | Effect::Told(_)
                | Effect::Due
                | Effect::WallDue
                | Effect::Attention => {}
            }
        }
        // Last: a waiter that is woken finds memory changed.
        self.hints.committed(effects, last_event);
    }
}
