//! Who is calling: fixed by the accepting socket and the peer's credentials, never by a request.
//!
//! Invariant: a [`Caller`] is made in one place of the broker, from a connection; no other code
//! builds one from data.

use crate::name::AgentName;

/// The process at the other end of a connection, as the kernel tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Peer {
    /// Its user id on the host.
    pub uid: u32,
    /// Its process id at the time of connecting, where the kernel knows one.
    pub pid: Option<i32>,
}

/// Whose authority a call has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The agent whose socket was used.
    Agent(AgentName),
    /// The operator; who exactly, is kept with what they do.
    Operator(OperatorName),
}

/// Who acted as the operator: the user's name on the host, or `uid N`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OperatorName(String);

impl OperatorName {
    /// The operator with this user id and, where the host knows it, this user name.
    #[must_use]
    pub fn of(uid: u32, user: Option<&str>) -> Self {
        Self(user.map_or_else(|| format!("uid {uid}"), |user| format!("uid {uid} ({user})")))
    }

    /// The text that is recorded.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Caller {
    /// The agent that calls, if one does.
    #[must_use]
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Self::Agent(name) => Some(name),
            Self::Operator(_) => None,
        }
    }
}
