//! The places and the users of the sockets, as the configuration names them.
//!
//! Invariant: each agent has one path, which follows from its name and `runtime_dir` alone.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hive_core::name::AgentName;

use super::conn::Trust;

/// The directory, the group and the users of the sockets.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The directory of the sockets.
    pub runtime_dir: PathBuf,
    /// The group of the operator's socket.
    pub socket_group: Option<String>,
    /// The users that may use each agent's socket. For an agent that is not named here: the
    /// broker's own user.
    pub uids: BTreeMap<AgentName, Vec<u32>>,
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
        let named = path
            .parent()
            .and_then(Path::file_name)
            .and_then(|name| AgentName::parse(name.to_str()?).ok());
        path == self.operator_socket() || named.is_some_and(|name| path == self.agent_socket(&name))
    }

    /// Returns the users that the configuration names for an agent.
    pub(super) fn named_uids(&self, name: &AgentName) -> Option<&Vec<u32>> {
        self.uids.get(name).filter(|uids| !uids.is_empty())
    }

    /// Returns the users that may use an agent's socket.
    pub(super) fn trust(&self, name: &AgentName) -> Trust {
        Trust::Uids(self.named_uids(name).cloned().unwrap_or_else(own_uids))
    }
}

/// Returns the users of a socket for which the configuration names none: the broker's own user, and
/// root, which has access anyway.
pub(super) fn own_uids() -> Vec<u32> {
    vec![rustix::process::geteuid().as_raw(), 0]
}
