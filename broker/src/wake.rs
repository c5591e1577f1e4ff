//! Wakes: in-memory hints to those who wait, sent after a commit.
//!
//! A hint carries no data; whoever is woken reads the truth again. Each agent has its own, so
//! nobody is woken for somebody else's mail. Invariant: a waiter registers before it looks, so a
//! hint between looking and waiting is not lost.

use std::collections::HashMap;
use std::sync::Arc;

use crate::store::{AgentKey, Committed, Effect};
use crate::sync::{Mutex, Notify, PoisonError, watch};

/// The hints of one agent.
#[derive(Debug, Default)]
pub struct AgentHints {
    /// Its inbox may have work, or its park may have ended.
    pub inbox: Notify,
    /// Its session was replaced or ended.
    pub session: Notify,
    /// It has a command, or was changed.
    pub told: Notify,
}

/// Everybody's hints.
#[derive(Debug)]
pub struct Hints {
    agents: Mutex<HashMap<AgentKey, Arc<AgentHints>>>,
    last_event: watch::Sender<u64>,
    agents_changed: watch::Sender<u64>,
    /// A reconciler's next due time may have come nearer.
    pub due: Notify,
    /// A deadline or a reminder may have come nearer.
    pub wall_due: Notify,
    /// Something began to wait on the operator.
    pub attention: Notify,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            agents: Mutex::default(),
            last_event: watch::channel(0).0,
            agents_changed: watch::channel(0).0,
            due: Notify::new(),
            wall_due: Notify::new(),
            attention: Notify::new(),
        }
    }
}

impl Hints {
    /// The hints of an agent.
    #[must_use]
    pub fn of(&self, agent: AgentKey) -> Arc<AgentHints> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(agents.entry(agent).or_default())
    }

    /// The newest event's number; changes are seen on the receiver.
    #[must_use]
    pub fn last_event(&self) -> watch::Receiver<u64> {
        self.last_event.subscribe()
    }

    /// Changes whenever an agent was created, changed or retired.
    #[must_use]
    pub fn agents_changed(&self) -> watch::Receiver<u64> {
        self.agents_changed.subscribe()
    }

    /// Says where the log stands when the broker starts.
    pub fn set_last_event(&self, last_event: u64) {
        self.last_event.send_replace(last_event);
    }
}

impl Committed for Hints {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        for effect in effects {
            match effect {
                Effect::Wake(agent) => self.of(*agent).inbox.notify_waiters(),
                Effect::Session(agent) => {
                    let hints = self.of(*agent);
                    hints.session.notify_waiters();
                    // Whoever waits for mail on an old session has to hear that it ended.
                    hints.inbox.notify_waiters();
                }
                Effect::Told(agent) => {
                    self.of(*agent).told.notify_waiters();
                    self.agents_changed.send_modify(|changes| *changes += 1);
                }
                Effect::Due => self.due.notify_one(),
                Effect::WallDue => self.wall_due.notify_one(),
                Effect::Attention => self.attention.notify_one(),
                // No waiter depends on these.
                Effect::Presence(..) | Effect::NameFreed(_) => {}
            }
        }
        self.last_event.send_if_modified(|last| std::mem::replace(last, last_event) != last_event);
    }
}
