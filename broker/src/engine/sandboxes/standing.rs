//! Standing: what a peer may do on a socket, according to its pid namespace.
//!
//! Invariant: a decision looks up one agent and walks the namespaces above one peer; its cost does
//! not depend on the number of agents.

use hive_core::name::AgentName;

use super::{Registration, Sandboxes, Supervised};
use crate::namespace::PidNamespace;

/// The pid namespace of the process that connected.
#[derive(Debug)]
pub enum Place {
    /// The namespace; the process was alive when it was read.
    In(PidNamespace),
    /// The process has ended.
    Gone,
    /// The process is not below the broker's pid namespace: the broker runs in a container, and the
    /// peer does not.
    Outside,
    /// The broker may not read the namespace, for this reason.
    Hidden(String),
}

/// The calls that a connection may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything that the socket serves.
    Everything,
    /// The calls of a program beside an agent: wakes, its list of loose ends, and whether the
    /// broker is running.
    Limited,
}

/// Why a connection may make no calls.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// The supervisor has not described all agents yet.
    #[error(
        "the broker has just started, and `hivectl up` has not described the sandboxes yet; try again"
    )]
    Starting,
    /// The supervisor has ended before it described all agents.
    #[error("`hivectl up` has ended before it described the sandboxes; start `hivectl up` again")]
    Abandoned,
    /// The process that connected has ended.
    #[error("the process that connected has ended; connect again")]
    Gone,
    /// The process is in another sandbox, an earlier one of the agent, or a container.
    #[error(
        "this program does not run in the sandbox of `{agent}`, so it may not use that agent's socket; use the socket of your own agent, or \
         run it on the host"
    )]
    NotInSandbox {
        /// The agent whose socket was used.
        agent: AgentName,
    },
    /// `hivectl up` runs no harness of the agent.
    #[error(
        "`hivectl up` runs no harness of `{agent}`, so only a program on the host may use that agent's socket; `hivectl agent start {agent}` \
         starts one"
    )]
    NotRunning {
        /// The agent whose socket was used.
        agent: AgentName,
    },
    /// The process is in a sandbox, and the socket is the operator's.
    #[error(
        "this program runs in an agent's sandbox, so it may not use the operator's socket; run it on the host"
    )]
    NotTheOperator,
    /// The broker cannot read the namespace of the process.
    #[error(
        "the broker cannot read the pid namespace of this program ({why}), so it may not use this socket; run it as the user of hived"
    )]
    Hidden {
        /// The error of the host.
        why: String,
    },
}

impl Sandboxes {
    /// Decides what a peer may do on an agent's socket.
    pub fn on_agent_socket(&self, agent: &AgentName, place: &Place) -> Result<Scope, Denied> {
        let Some(Supervised { own, .. }) = self.supervised.get() else {
            return Ok(Scope::Everything);
        };
        let table = self.read();
        if !table.is_complete {
            return Err(if table.is_abandoned { Denied::Abandoned } else { Denied::Starting });
        }
        let registration = table.agents.get(agent.as_str());
        if let Some(Registration { sandbox: None, .. }) = registration {
            return Ok(Scope::Everything);
        }
        let namespace = match place {
            Place::In(namespace) => namespace,
            Place::Gone => return Err(Denied::Gone),
            Place::Outside => return Err(Denied::NotInSandbox { agent: agent.clone() }),
            Place::Hidden(why) => return Err(Denied::Hidden { why: why.clone() }),
        };
        if namespace.id() == own.id() {
            return Ok(Scope::Limited);
        }
        match registration
            .and_then(|registration| registration.sandbox.as_ref())
            .map(PidNamespace::id)
        {
            Some(sandbox) if sandbox == namespace.id() => Ok(Scope::Everything),
            Some(sandbox) if namespace.above().contains(&sandbox) => Ok(Scope::Limited),
            Some(_) => Err(Denied::NotInSandbox { agent: agent.clone() }),
            None => Err(Denied::NotRunning { agent: agent.clone() }),
        }
    }

    /// Decides whether a peer may use the operator's socket. `is_own_user`: the peer runs as the
    /// user of the broker, as each sandbox does.
    pub fn on_operator_socket(&self, place: &Place, is_own_user: bool) -> Result<(), Denied> {
        let Some(Supervised { own, .. }) = self.supervised.get() else { return Ok(()) };
        let namespace = match place {
            Place::In(namespace) => namespace,
            Place::Gone => return Err(Denied::Gone),
            Place::Outside => return Ok(()),
            Place::Hidden(why) if is_own_user => return Err(Denied::Hidden { why: why.clone() }),
            // A process of another user, as root's, that the socket's users or mode let in.
            Place::Hidden(_) => return Ok(()),
        };
        if namespace.id() == own.id() {
            return Ok(());
        }
        let table = self.read();
        let mut lineage = std::iter::once(namespace.id()).chain(namespace.above().iter().copied());
        let is_sandboxed = lineage.any(|id| {
            table.owners.contains_key(&id) || table.earlier.iter().any(|earlier| earlier.id() == id)
        });
        match (is_sandboxed, table.is_complete) {
            (true, _) => Err(Denied::NotTheOperator),
            (false, true) => Ok(()),
            (false, false) => {
                Err(if table.is_abandoned { Denied::Abandoned } else { Denied::Starting })
            }
        }
    }
}
