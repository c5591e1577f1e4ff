//! The broker's memory beside its database: waiters, attached harnesses, keys of names.
//!
//! Invariant: a command changes it by effects alone, so an aborted batch leaves no trace. An
//! aborted batch may be on disk after all, so after a recovery of the database memory is compared
//! with it (`Engine::sweep_sessions`).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::keys::Keys;
use super::presence::Presences;
use crate::hints::Hints;
use crate::store::{Committed, Effect};

/// The memory of the broker.
#[derive(Debug, Default)]
pub struct Memory {
    /// Hints for waiters.
    pub hints: Arc<Hints>,
    pub(super) presences: Arc<Presences>,
    pub(super) keys: Arc<Keys>,
    /// Whether the database has recovered since memory was last compared with it.
    doubtful: AtomicBool,
}

impl Memory {
    /// Returns whether memory has to be compared with the database, and clears that mark.
    pub(super) fn take_doubt(&self) -> bool {
        self.doubtful.swap(false, Ordering::AcqRel)
    }

    /// Marks memory as to be compared with the database.
    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }
}

impl Committed for Memory {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        for effect in effects {
            match effect {
                Effect::Presence(agent, change) => self.presences.apply(*agent, change),
                Effect::NameFreed(name) => self.keys.forget(name),
                Effect::Hint(_)
                | Effect::Session(_)
                | Effect::Changed(_)
                | Effect::Shown(_)
                | Effect::Due(_)
                | Effect::WallDue
                | Effect::Count(_)
                | Effect::Action
                | Effect::Outbox => {}
            }
        }
        // Last: a waiter that gets a hint finds memory changed.
        self.hints.committed(effects, last_event);
    }

    fn answered(&self, last_event: u64) {
        self.hints.answered(last_event);
    }

    fn recovered(&self) {
        self.keys.clear();
        self.doubt();
        self.hints.changes.doubt();
        self.hints.launches.doubt();
        self.hints.due.now();
    }
}
