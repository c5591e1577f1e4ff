//! The places and the users of the sockets, as the configuration names them.
//!
//! Invariant: each agent has one path, which follows from its name and `runtime_dir` alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hive_core::config::AGENT_IN_UNIT;
use hive_core::name::AgentName;

use super::conn::{Peers, Trust};

/// The directory, the group and the users of the sockets.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The directory of the sockets.
    pub runtime_dir: PathBuf,
    /// The group of the operator's socket.
    pub socket_group: Option<String>,
    /// The peers that may use each agent's socket, as the configuration names them.
    pub peers: BTreeMap<AgentName, Peers>,
    /// The unit of every other agent, with a place for its name. Without it: the broker's own user.
    pub agent_unit: Option<String>,
}

impl Layout {
    /// Returns the path of the operator's socket.
    #[must_use]
    pub fn operator_socket(&self) -> PathBuf {
        self.runtime_dir.join("hived.sock")
    }

    /// Returns the path of an agent's socket.
    #[must_use]
    pub fn agent_socket(&self, name: &AgentName) -> PathBuf {
        self.runtime_dir.join("agents").join(name.as_str()).join("hive.sock")
    }

    /// Returns whether this is the path of the operator's socket, or of a possible agent's.
    pub(super) fn is_socket(&self, path: &Path) -> bool {
        path == self.operator_socket() || self.agent_at(path).is_some()
    }

    /// Returns the possible agent whose socket has this path.
    pub(super) fn agent_at(&self, path: &Path) -> Option<AgentName> {
        let name = path.parent()?.file_name()?.to_str()?;
        AgentName::parse(name).ok().filter(|name| path == self.agent_socket(name))
    }

    /// Returns the peers that the configuration names for an agent.
    pub(super) fn named_peers(&self, name: &AgentName) -> Option<Peers> {
        let named = self.peers.get(name).filter(|peers| **peers != Peers::default()).cloned();
        named.or_else(|| {
            let unit = self.agent_unit.as_ref()?.replace(AGENT_IN_UNIT, name.as_str());
            Some(Peers { uids: Vec::new(), unit: Some(unit) })
        })
    }

    /// Returns the peers that may use an agent's socket.
    pub(super) fn trust(&self, name: &AgentName) -> Trust {
        let own = || Peers { uids: own_uids(), unit: None };
        Trust::Peers(self.named_peers(name).unwrap_or_else(own))
    }
}

/// Returns the users of a socket for which the configuration names none: the broker's own user, and
/// root, which has access anyway.
pub(super) fn own_uids() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw(), 0]
}
