//! The authority of a call: fixed by the accepting socket and the peer's credentials, never by a
//! request.
//!
//! Invariant: a [`Caller`] is made in one place of the broker, from a connection; no other code
//! builds one from data.

use crate::name::AgentName;

/// The process at the other end of a connection, as the kernel reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its user id on the host.
    pub uid: u32,
    /// Its process id when it connected, if the kernel knows one.
    pub pid: Option<i32>,
}

/// The authority of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The agent whose socket was used.
    Agent(AgentName),
    /// The operator; the record of each action keeps the name.
    Operator(OperatorName),
}

/// The name of an acting operator: the user's name on the host, or `uid N`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperatorName(String);

impl OperatorName {
    /// Returns the operator with this user id and, if the host knows it, this user name.
    #[must_use]
    pub fn new(uid: u32, user: Option<&str>) -> Self {
        Self(user.map_or_else(|| format!("uid {uid}"), |user| format!("uid {uid} ({user})")))
    }

    /// Returns the recorded text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Caller {
    /// Returns the calling agent; `None` for the operator.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Agent(name) => Some(name),
            Self::Operator(_) => None,
        }
    }

    /// Returns the name that records keep.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Agent(name) => name.as_str(),
            Self::Operator(name) => name.as_str(),
        }
    }
}
