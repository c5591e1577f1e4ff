//! Hints: in-memory signals to waiters, sent after a commit.
//!
//! A hint carries no data; a waiter that gets one reads the database again. Each agent has its own,
//! so other agents' mail causes no hint. Invariant: a waiter registers before it reads, so a hint
//! between reading and waiting is not lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::changes::Changes;
use crate::due::Due;
use crate::launches::Launches;
use crate::map::Map;
use crate::store::{AgentKey, Committed, Effect};
use crate::sync::{Mutex, Notify, PoisonError, watch};

/// The hints of one agent.
#[derive(Debug, Default)]
pub struct AgentHints {
    /// Its inbox may have work, or its park may have ended.
    pub inbox: Notify,
    /// Its session was replaced or ended.
    pub session: Notify,
    /// The agent has a command, or was changed.
    pub changed: Notify,
}

/// The hints of all agents.
#[derive(Debug)]
pub struct Hints {
    agents: Mutex<Map<AgentKey, Arc<AgentHints>>>,
    last_event: watch::Sender<u64>,
    /// The newest event whose changes are noted in `changes`.
    noted_event: AtomicU64,
    agents_changed: watch::Sender<u64>,
    /// Which agents changed, for watches of agents.
    pub changes: Changes,
    /// Which agents changed, for the launcher.
    pub launches: Arc<Launches>,
    /// When leases and sessions are swept next.
    pub due: Due,
    /// A deadline or a reminder may have come nearer.
    pub wall_due: Notify,
    /// The operator outbox may have a new item.
    pub outbox: Notify,
    /// An action may wait for its run.
    pub actions: Notify,
}

impl Default for Hints {
    fn default() -> Self {
        Self {
            agents: Mutex::default(),
            last_event: watch::channel(0).0,
            noted_event: AtomicU64::new(0),
            agents_changed: watch::channel(0).0,
            changes: Changes::default(),
            launches: Arc::default(),
            due: Due::default(),
            wall_due: Notify::new(),
            outbox: Notify::new(),
            actions: Notify::new(),
        }
    }
}

impl Hints {
    /// Returns the hints of an agent.
    #[must_use]
    pub fn agent(&self, agent: AgentKey) -> Arc<AgentHints> {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(agents.entry(agent).or_default())
    }

    /// Returns the newest event's number; the receiver sees changes.
    #[must_use]
    pub fn last_event(&self) -> watch::Receiver<u64> {
        self.last_event.subscribe()
    }

    /// Returns the newest event whose change of an agent is noted. Its callers may not have their
    /// answers yet.
    #[must_use]
    pub fn noted_event(&self) -> u64 {
        self.noted_event.load(Ordering::Acquire)
    }

    /// Returns a channel that changes whenever an agent is created, changed or retired.
    #[must_use]
    pub fn agents_changed(&self) -> watch::Receiver<u64> {
        self.agents_changed.subscribe()
    }

    /// Sets the newest event's number when the broker starts.
    pub fn set_last_event(&self, last_event: u64) {
        self.noted_event.store(last_event, Ordering::Release);
        self.last_event.send_replace(last_event);
    }
}

impl Committed for Hints {
    fn committed(&self, effects: &[Effect], last_event: u64) {
        for effect in effects {
            match effect {
                Effect::Hint(agent) => {
                    self.agent(*agent).inbox.notify_waiters();
                    self.launches.mail(*agent);
                }
                Effect::Session(agent) => {
                    let hints = self.agent(*agent);
                    hints.session.notify_waiters();
                    // A call that waits for mail on an old session is notified that the session
                    // ended.
                    hints.inbox.notify_waiters();
                }
                Effect::Changed(agent) => {
                    self.agent(*agent).changed.notify_waiters();
                    self.agents_changed.send_modify(|changes| *changes += 1);
                    self.launches.changed(*agent);
                }
                Effect::Due(time) => self.due.at(*time),
                Effect::WallDue => self.wall_due.notify_one(),
                Effect::Outbox => self.outbox.notify_one(),
                Effect::Action => self.actions.notify_one(),
                Effect::Shown(agent) => self.changes.note(*agent),
                Effect::Presence(agent, _) => {
                    self.changes.note(*agent);
                    self.launches.presence(*agent);
                }
                // No waiter depends on it.
                Effect::Count(_) | Effect::NameFreed(_) => {}
            }
        }
        self.noted_event.store(last_event, Ordering::Release);
    }

    fn answered(&self, last_event: u64) {
        // The number of a later batch may have come before.
        self.last_event.send_if_modified(|last| {
            let before = std::mem::replace(last, last_event.max(*last));
            before != *last
        });
    }
}
