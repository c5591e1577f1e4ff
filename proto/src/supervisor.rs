//! The link between `hivectl up` and the `hived` that it starts: the sandboxes of the agents.
//!
//! It is an inherited pair of sockets (SOCK_SEQPACKET), not a service: only the parent of a `hived`
//! can use it. Each packet from `up` is one [`ToBroker`] in JSON; [`ToBroker::Sandbox`] carries a
//! descriptor of a pid namespace (SCM_RIGHTS), because numbers of processes are reused. `hived`
//! answers each packet, in order, with one [`ToUp`].
//!
//! Invariant: after a start of `hived`, `up` sends the sandbox of every running agent and then
//! [`ToBroker::Complete`]. Until then agents' sockets answer UNAVAILABLE.

pub mod link;

use serde::{Deserialize, Serialize};

pub use link::{Link, LinkError, pair};

/// The environment variable of `hived` with the number of the inherited socket.
pub const SUPERVISOR_FD_ENV: &str = "HIVE_SUPERVISOR_FD";
/// Longest packet, in bytes.
pub const PACKET_BYTES_MAX: usize = 64 * 1024;

/// The isolation that a harness has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reached {
    /// Not isolated.
    None,
    /// Partly isolated.
    Partly,
    /// Isolated.
    Sandbox,
}

/// A packet from `up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ToBroker {
    /// The programs of this agent run in the pid namespace of the attached descriptor. An earlier
    /// sandbox of the agent is no longer trusted.
    Sandbox {
        /// The agent's name.
        agent: String,
    },
    /// The programs of this agent are not confined: only `uids` decide.
    Unconfined {
        /// The agent's name.
        agent: String,
    },
    /// The findings of the harness from inside.
    Isolation {
        /// The agent's name.
        agent: String,
        /// The isolation that was reached.
        reached: Reached,
        /// The gaps in the isolation, one sentence each.
        notes: Vec<String>,
        /// Whether the configuration file states a level that this reaches, so that it is no
        /// finding.
        accepted: bool,
    },
    /// The harness of this agent has ended. Only the host is trusted on its socket.
    Gone {
        /// The agent's name.
        agent: String,
    },
    /// Every running agent has been sent.
    Complete,
}

/// The answer to a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum ToUp {
    /// The packet is in force.
    Done,
    /// The packet was refused.
    Refused {
        /// The reason, as a sentence.
        why: String,
    },
}
