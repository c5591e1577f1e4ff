//! Presence: which harness is there, in memory. The session itself is a row; this is only whether anybody still speaks for it.
//!
//! Invariant: a session has at most one live attachment, and every call with a session token counts as a sign of life.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::agent::Isolation;
use hive_core::time::BootTime;
use tokio_util::sync::CancellationToken;

use crate::store::AgentKey;
use crate::wake::Hints;

#[derive(Debug)]
struct Presence {
    epoch: u64,
    token: String,
    /// Cancelled when this attachment ends; `None` while nobody is attached.
    live: Option<CancellationToken>,
    last_contact: BootTime,
    /// Whether the session has a turn open, as far as memory knows: only then is silence a sign of death.
    turn_open: bool,
    isolation: Option<Isolation>,
}

impl Presence {
    /// When it has been silent for too long; `None` while it may be silent.
    fn due(&self, grace: Duration) -> Option<BootTime> {
        (self.live.is_none() || self.turn_open).then(|| self.last_contact.after(grace))
    }
}

/// Everybody's presence.
#[derive(Debug, Default)]
pub struct Presences {
    agents: Mutex<BTreeMap<AgentKey, Presence>>,
}

impl Presences {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentKey, Presence>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A session from before this broker started; its harness gets the whole grace time.
    pub(crate) fn expect_back(&self, agent: AgentKey, epoch: u64, token: &str, now: BootTime) {
        let presence =
            Presence { epoch, token: token.to_owned(), live: None, last_contact: now, turn_open: true, isolation: None };
        self.lock().insert(agent, presence);
    }

    /// The broker serves from now on: nobody could come back before.
    pub(crate) fn serving(&self, now: BootTime) {
        for presence in self.lock().values_mut().filter(|presence| presence.live.is_none()) {
            presence.last_contact = presence.last_contact.max(now);
        }
    }

    /// Whether a harness is attached.
    pub(crate) fn is_live(&self, agent: AgentKey) -> bool {
        self.lock().get(&agent).is_some_and(|presence| presence.live.is_some())
    }

    /// How the attached harness is kept apart.
    pub(crate) fn isolation(&self, agent: AgentKey) -> Option<Isolation> {
        self.lock().get(&agent).and_then(|presence| presence.isolation)
    }

    /// A harness has attached; an older attachment ends at this moment. The end of the attachment is hinted.
    pub(crate) fn attach(
        self: &Arc<Self>,
        agent: AgentKey,
        epoch: u64,
        token: &str,
        isolation: Option<Isolation>,
        now: BootTime,
        hints: Arc<Hints>,
    ) -> Attachment {
        let ended = CancellationToken::new();
        let mut agents = self.lock();
        // A session that goes on keeps its open turn.
        let turn_open = agents.get(&agent).is_some_and(|presence| presence.epoch == epoch && presence.turn_open);
        let presence =
            Presence { epoch, token: token.to_owned(), live: Some(ended.clone()), last_contact: now, turn_open, isolation };
        if let Some(Presence { live: Some(older), .. }) = agents.insert(agent, presence) {
            older.cancel();
        }
        drop(agents);
        Attachment { presences: Arc::clone(self), agent, epoch, ended, hints }
    }

    /// A call came with this session token: a sign of life, if the session is the present one.
    pub(crate) fn touch(&self, agent: AgentKey, token: &str, now: BootTime) -> bool {
        match self.lock().get_mut(&agent) {
            Some(presence) if presence.token == token => {
                presence.last_contact = now;
                true
            }
            _ => false,
        }
    }

    /// The session has opened or ended a turn.
    pub(crate) fn set_turn_open(&self, agent: AgentKey, turn_open: bool, now: BootTime) {
        if let Some(presence) = self.lock().get_mut(&agent) {
            presence.turn_open = turn_open;
            presence.last_contact = now;
        }
    }

    /// The sessions of an agent up to this one are over; whoever is attached to one is cut off.
    pub(crate) fn end(&self, agent: AgentKey, epoch: u64) {
        let mut agents = self.lock();
        if agents.get(&agent).is_some_and(|presence| presence.epoch <= epoch)
            && let Some(Presence { live: Some(live), .. }) = agents.remove(&agent)
        {
            drop(agents);
            live.cancel();
        }
    }

    /// The sessions that have been silent for longer than `grace`.
    pub(crate) fn away(&self, grace: Duration, now: BootTime) -> Vec<(AgentKey, u64)> {
        let agents = self.lock();
        let silent = agents.iter().filter(|(_, presence)| presence.due(grace).is_some_and(|due| due <= now));
        silent.map(|(agent, presence)| (*agent, presence.epoch)).collect()
    }

    /// Whether this very session is still silent; asked again where it is decided.
    pub(crate) fn is_away(&self, agent: AgentKey, epoch: u64, grace: Duration, now: BootTime) -> bool {
        let agents = self.lock();
        let presence = agents.get(&agent).filter(|presence| presence.epoch == epoch);
        presence.and_then(|presence| presence.due(grace)).is_some_and(|due| due <= now)
    }

    /// When the next grace time may run out.
    pub(crate) fn next_due(&self, grace: Duration) -> Option<BootTime> {
        self.lock().values().filter_map(|presence| presence.due(grace)).min()
    }
}

/// A live attachment; dropping it means that the harness has gone.
#[derive(Debug)]
pub struct Attachment {
    presences: Arc<Presences>,
    agent: AgentKey,
    epoch: u64,
    ended: CancellationToken,
    hints: Arc<Hints>,
}

impl Attachment {
    /// The agent that the harness is attached to.
    #[must_use]
    pub fn agent(&self) -> AgentKey {
        self.agent
    }

    /// The number of the session.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Cancelled when another harness attaches or the session ends.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        &self.ended
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut agents = self.presences.lock();
        if let Some(presence) = agents.get_mut(&self.agent)
            && presence.epoch == self.epoch
            && !self.ended.is_cancelled()
        {
            presence.live = None;
            if !presence.turn_open {
                // There is nothing to come back for: the session ends with its attachment.
                presence.last_contact = BootTime(i64::MIN);
            }
        }
        drop(agents);
        self.hints.due.notify_one();
    }
}
