//! Presence: which harnesses are attached, in memory. The session itself is a row; presence is only
//! whether a harness still speaks for it.
//!
//! It changes by effects, after a commit. A command sees it with the changes of the commands before
//! it in its batch.
//!
//! Invariant: a session has at most one live attachment, and every call with a session token is a
//! sign of life.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hive_core::agent::Isolation;
use hive_core::time::BootTime;
use tokio_util::sync::CancellationToken;

use crate::hints::Hints;
use crate::store::agent::AgentRow;
use crate::store::{AgentKey, Effect, Tx};
use crate::store::{Live, PresenceChange};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Presence {
    epoch: u64,
    token: String,
    /// The attachment; `None` while no harness is attached.
    live: Option<Live>,
    last_contact: BootTime,
    /// Whether the session has a turn open, as far as memory knows. Only then is silence a sign of
    /// death.
    turn_open: bool,
    isolation: Option<Isolation>,
}

/// Returns a presence after a change.
fn changed(before: Option<&Presence>, change: &PresenceChange) -> Option<Presence> {
    match change {
        PresenceChange::Attached { epoch, token, isolation, live, now } => {
            // A session that continues keeps its open turn.
            let turn_open = before.is_some_and(|before| before.epoch == *epoch && before.turn_open);
            let (live, token, isolation) = (Some(live.clone()), token.clone(), *isolation);
            Some(Presence { epoch: *epoch, token, live, last_contact: *now, turn_open, isolation })
        }
        PresenceChange::TurnOpen { open, now } => {
            Some(Presence { turn_open: *open, last_contact: *now, ..before?.clone() })
        }
        PresenceChange::Awaited { epoch, token, now } => {
            let token = token.clone();
            Some(Presence {
                epoch: *epoch,
                token,
                live: None,
                last_contact: *now,
                turn_open: true,
                isolation: None,
            })
        }
        PresenceChange::Ended { epoch } => before.filter(|before| before.epoch > *epoch).cloned(),
    }
}

impl Presence {
    /// Returns when it has been silent for too long; `None` while it may be silent.
    fn due(&self, grace: Duration) -> Option<BootTime> {
        (self.live.is_none() || self.turn_open).then(|| self.last_contact.after(grace))
    }
}

/// The presences of all agents.
#[derive(Debug, Default)]
pub struct Presences {
    agents: Mutex<BTreeMap<AgentKey, Presence>>,
}

impl Presences {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<AgentKey, Presence>> {
        self.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies a change of a command that is on disk. If the change replaces or ends an attachment,
    /// that attachment is cut off.
    pub(crate) fn apply(&self, agent: AgentKey, change: &PresenceChange) {
        let mut agents = self.lock();
        let before = agents.remove(&agent);
        let after = changed(before.as_ref(), change);
        let older = before.and_then(|before| before.live);
        let newer = after.as_ref().and_then(|after| after.live.clone());
        agents.extend(after.map(|after| (agent, after)));
        drop(agents);
        if let Some(older) = older.filter(|older| newer.as_ref() != Some(older)) {
            older.ended().cancel();
        }
    }

    /// Returns a presence as a command sees it.
    fn seen_in(&self, tx: &Tx<'_>, agent: AgentKey) -> Option<Presence> {
        let committed = self.lock().get(&agent).cloned();
        tx.presence_changes(agent)
            .iter()
            .fold(committed, |before, change| changed(before.as_ref(), change))
    }

    /// Restarts the grace time of harnesses that are not attached: before now the broker did not
    /// serve.
    pub(crate) fn serving(&self, now: BootTime) {
        for presence in self.lock().values_mut().filter(|presence| presence.live.is_none()) {
            presence.last_contact = presence.last_contact.max(now);
        }
    }

    /// Returns whether a harness is attached.
    pub(crate) fn is_live(&self, agent: AgentKey) -> bool {
        self.lock().get(&agent).is_some_and(|presence| presence.live.is_some())
    }

    /// Returns the agents to which a harness is attached.
    pub(crate) fn live(&self) -> HashSet<AgentKey> {
        let agents = self.lock();
        agents.iter().filter(|(_, seen)| seen.live.is_some()).map(|(key, _)| *key).collect()
    }

    /// Returns the isolation of the attached harness.
    pub(crate) fn isolation(&self, agent: AgentKey) -> Option<Isolation> {
        self.lock().get(&agent).and_then(|presence| presence.isolation)
    }

    /// Returns the agents that memory has a session of.
    pub(crate) fn known(&self) -> Vec<AgentKey> {
        self.lock().keys().copied().collect()
    }

    /// Returns the change that makes a presence match the row of the agent, whose turns are open or
    /// not; `None` if it matches.
    pub(crate) fn change_to(
        &self,
        tx: &Tx<'_>,
        row: &AgentRow,
        open: bool,
    ) -> Option<PresenceChange> {
        let (seen, now) = (self.seen_in(tx, row.key), tx.now.boot);
        match (&row.session_token, seen) {
            (None, None) => None,
            (None, Some(seen)) => Some(PresenceChange::Ended { epoch: seen.epoch }),
            (Some(token), Some(seen))
                if seen.epoch == row.session_epoch && seen.token == *token =>
            {
                (seen.turn_open != open).then_some(PresenceChange::TurnOpen { open, now })
            }
            (Some(token), _) => {
                let (epoch, token) = (row.session_epoch, token.clone());
                Some(PresenceChange::Awaited { epoch, token, now })
            }
        }
    }

    /// Returns whether a harness is attached, as a command sees it.
    pub(crate) fn is_live_in(&self, tx: &Tx<'_>, agent: AgentKey) -> bool {
        self.seen_in(tx, agent).is_some_and(|presence| presence.live.is_some())
    }

    /// Attaches a harness with the commit; an older attachment ends at that moment. Waiters get a
    /// hint when the new attachment ends.
    pub(crate) fn attach(
        self: &Arc<Self>,
        tx: &Tx<'_>,
        agent: AgentKey,
        begun: Begun,
        hints: Arc<Hints>,
    ) -> Attachment {
        let Begun { epoch, token, isolation } = begun;
        let live = Live::new();
        let change = PresenceChange::Attached {
            epoch,
            token,
            isolation,
            live: live.clone(),
            now: tx.now.boot,
        };
        if hive_fault::planted!(AttachInAbortedBatch) {
            self.apply(agent, &change);
        }
        tx.after_commit(Effect::Presence(agent, change));
        Attachment { presences: Arc::clone(self), agent, epoch, live, hints }
    }

    /// Notes a call with this session token: a sign of life, if the session is the present one.
    /// Returns whether it is.
    pub(crate) fn touch(&self, agent: AgentKey, token: &str, now: BootTime) -> bool {
        match self.lock().get_mut(&agent) {
            Some(presence) if presence.token == token => {
                presence.last_contact = now;
                true
            }
            _ => false,
        }
    }

    /// Returns the sessions that have been silent for longer than `grace`.
    pub(crate) fn away(&self, grace: Duration, now: BootTime) -> Vec<(AgentKey, u64)> {
        let agents = self.lock();
        let silent =
            agents.iter().filter(|(_, presence)| presence.due(grace).is_some_and(|due| due <= now));
        silent.map(|(agent, presence)| (*agent, presence.epoch)).collect()
    }

    /// Returns whether this very session is still silent, as the deciding command sees it.
    pub(crate) fn is_away_in(
        &self,
        tx: &Tx<'_>,
        agent: AgentKey,
        epoch: u64,
        grace: Duration,
    ) -> bool {
        let presence = self.seen_in(tx, agent).filter(|presence| presence.epoch == epoch);
        presence.and_then(|presence| presence.due(grace)).is_some_and(|due| due <= tx.now.boot)
    }

    /// Returns when the next grace time may run out.
    pub(crate) fn next_due(&self, grace: Duration) -> Option<BootTime> {
        self.lock().values().filter_map(|presence| presence.due(grace)).min()
    }
}

/// A session that a harness begins or resumes.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) epoch: u64,
    pub(crate) token: String,
    pub(crate) isolation: Option<Isolation>,
}

/// A live attachment; dropping it means that the harness has disconnected.
#[derive(Debug)]
pub struct Attachment {
    presences: Arc<Presences>,
    agent: AgentKey,
    epoch: u64,
    live: Live,
    hints: Arc<Hints>,
}

impl Attachment {
    /// Returns the agent that the harness is attached to.
    #[must_use]
    pub fn agent(&self) -> AgentKey {
        self.agent
    }

    /// Returns the number of the session.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the token that is cancelled when another harness attaches or the session ends.
    #[must_use]
    pub fn ended(&self) -> &CancellationToken {
        self.live.ended()
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        let mut agents = self.presences.lock();
        if let Some(presence) = agents.get_mut(&self.agent)
            // If the commit of the attachment failed, memory does not have it.
            && presence.live.as_ref() == Some(&self.live)
        {
            presence.live = None;
            if !presence.turn_open {
                // Such a session cannot be resumed: it ends with its attachment.
                presence.last_contact = BootTime(i64::MIN);
            }
        }
        drop(agents);
        self.hints.changes.note(self.agent);
        self.hints.launches.presence(self.agent);
        self.hints.due.now();
    }
}
