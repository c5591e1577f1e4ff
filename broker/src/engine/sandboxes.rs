//! Sandboxes: which pid namespace holds the programs of which agent, and what isolation an agent
//! has reached, as a supervisor reports both.
//!
//! `hivectl up` is that supervisor. Without one this module decides nothing: only `uids` count.
//! Invariant: a program outside an agent's present sandbox never gets the agent's whole authority.
//! Unknown programs are refused, and an isolation that was not reported is shown as none.

mod isolation;
mod standing;

use std::collections::{HashMap, VecDeque};
use std::sync::{OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use hive_core::name::AgentName;
use tokio_util::sync::CancellationToken;

use crate::namespace::{NamespaceId, PidNamespace};
pub use isolation::{Report, Shown};
pub use standing::{Denied, Place, Scope};

/// Replaced sandboxes that are remembered, so that a program left in one is not taken for the
/// operator.
const EARLIER_MAX: usize = 64;

/// The sandboxes of all agents.
#[derive(Debug, Default)]
pub struct Sandboxes {
    /// Set once, before the first connection, if there is a supervisor.
    supervised: OnceLock<Supervised>,
    table: RwLock<Table>,
}

/// The state that exists while a supervisor reports.
#[derive(Debug)]
struct Supervised {
    /// The broker's own pid namespace: the host.
    own: PidNamespace,
    /// Whether the kernel reports for certain which process connected.
    knows_peers: bool,
}

#[derive(Debug, Default)]
struct Table {
    /// Whether every agent that runs has been described.
    is_complete: bool,
    /// Whether the supervisor has ended.
    is_abandoned: bool,
    agents: HashMap<String, Registration>,
    /// The agent of each sandbox.
    owners: HashMap<NamespaceId, AgentName>,
    /// Replaced sandboxes, oldest first.
    earlier: VecDeque<PidNamespace>,
}

/// The supervisor's reports of an agent.
#[derive(Debug)]
struct Registration {
    /// The namespace of its programs; `None`: they are not confined.
    sandbox: Option<PidNamespace>,
    report: Option<Report>,
    /// Cancelled when this registration is replaced or removed.
    ended: CancellationToken,
}

/// Why a report of the supervisor has no effect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegisterError {
    /// The namespace is the broker's own.
    #[error("the pid namespace for `{0}` is the broker's own; a sandbox has one of its own")]
    OwnNamespace(AgentName),
    /// The namespace is not below the broker's own, so peers in it could not be recognised.
    #[error(
        "the pid namespace for `{0}` is not below the broker's own; start hived where the sandboxes are started"
    )]
    ForeignNamespace(AgentName),
    /// Another agent has the namespace.
    #[error(
        "the pid namespace for `{agent}` is that of `{owner}`; each agent needs a sandbox of its own"
    )]
    SharedNamespace {
        /// The agent it was reported for.
        agent: AgentName,
        /// The agent that has it.
        owner: AgentName,
    },
    /// There is no report of the agent's sandbox yet.
    #[error(
        "the isolation of `{0}` comes before its sandbox; send `sandbox` or `unconfined` first"
    )]
    UnknownAgent(AgentName),
    /// There is no supervisor.
    #[error("this broker was started without a supervisor")]
    NotSupervised,
}

impl Sandboxes {
    /// Makes a supervisor's reports decide from now on. To be called before the first connection is
    /// accepted.
    pub fn supervise(&self, own: PidNamespace, knows_peers: bool) {
        // A second call would change nothing: what is set once holds.
        drop(self.supervised.set(Supervised { own, knows_peers }));
    }

    /// Returns whether a supervisor's reports decide.
    #[must_use]
    pub fn is_supervised(&self) -> bool {
        self.supervised.get().is_some()
    }

    /// Trusts the programs in this namespace as the agent's, and those of an earlier sandbox no
    /// longer.
    pub fn confine(&self, agent: &AgentName, sandbox: PidNamespace) -> Result<(), RegisterError> {
        let Some(Supervised { own, .. }) = self.supervised.get() else {
            return Err(RegisterError::NotSupervised);
        };
        if sandbox.id() == own.id() {
            return Err(RegisterError::OwnNamespace(agent.clone()));
        }
        if !sandbox.above().contains(&own.id()) {
            return Err(RegisterError::ForeignNamespace(agent.clone()));
        }
        let mut table = self.write();
        if let Some(owner) = table.owners.get(&sandbox.id()).filter(|owner| *owner != agent) {
            return Err(RegisterError::SharedNamespace {
                agent: agent.clone(),
                owner: owner.clone(),
            });
        }
        table.remove(agent);
        table.owners.insert(sandbox.id(), agent.clone());
        table.insert(agent, Some(sandbox));
        Ok(())
    }

    /// Notes that the programs of this agent are not confined: only its `uids` decide.
    pub fn leave_unconfined(&self, agent: &AgentName) -> Result<(), RegisterError> {
        if !self.is_supervised() {
            return Err(RegisterError::NotSupervised);
        }
        let mut table = self.write();
        table.remove(agent);
        table.insert(agent, None);
        Ok(())
    }

    /// Stores the isolation that the agent has reached, until its next sandbox.
    pub fn report(&self, agent: &AgentName, report: Report) -> Result<(), RegisterError> {
        let mut table = self.write();
        let registration = table.agents.get_mut(agent.as_str());
        registration.ok_or_else(|| RegisterError::UnknownAgent(agent.clone()))?.report =
            Some(report.truncated());
        Ok(())
    }

    /// Forgets an agent whose harness has ended: on its socket only the host is left.
    pub fn remove(&self, agent: &AgentName) {
        self.write().remove(agent);
    }

    /// Notes that every agent that runs has been described.
    pub fn complete(&self) {
        self.write().is_complete = true;
    }

    /// Notes that the supervisor has ended. Its reports still hold, and no new sandbox is trusted.
    pub fn abandon(&self) {
        self.write().is_abandoned = true;
    }

    /// Returns the token that is cancelled with the agent's present registration; `None` if it has
    /// none.
    #[must_use]
    pub fn ended(&self, agent: &AgentName) -> Option<CancellationToken> {
        self.read().agents.get(agent.as_str()).map(|registration| registration.ended.clone())
    }

    fn read(&self) -> RwLockReadGuard<'_, Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Table> {
        self.table.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn insert(&mut self, agent: &AgentName, sandbox: Option<PidNamespace>) {
        let registration = Registration { sandbox, report: None, ended: CancellationToken::new() };
        self.agents.insert(agent.as_str().to_owned(), registration);
    }

    fn remove(&mut self, agent: &AgentName) {
        let Some(registration) = self.agents.remove(agent.as_str()) else { return };
        registration.ended.cancel();
        let Some(sandbox) = registration.sandbox else { return };
        self.owners.remove(&sandbox.id());
        if self.earlier.len() == EARLIER_MAX {
            self.earlier.pop_front();
        }
        self.earlier.push_back(sandbox);
    }
}

#[cfg(test)]
mod tests;
