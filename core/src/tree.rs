//! The tree of agents as one agent sees it: its kin for its prompt, and the agents that its
//! searches find.

use crate::agent::HarnessState;
use crate::name::AgentName;

/// Maximum children that [`Kin`] names.
pub const KIN_CHILDREN_MAX: u32 = 50;
/// Maximum characters of a role in [`Kin`] and in a list of found agents.
pub const SHOWN_ROLE_CHARS_MAX: usize = 200;
/// Longest search text, in characters.
pub const FIND_TEXT_CHARS_MAX: usize = 256;

/// The parent and the children of an agent, as its prompt names them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Kin {
    /// Role of its parent; empty for a root and for a parent without a role.
    pub parent_role: String,
    /// Its first children by name, at most [`KIN_CHILDREN_MAX`].
    pub children: Vec<Child>,
    /// Number of all its children.
    pub children_count: u32,
}

/// A child in [`Kin`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Child {
    /// The child's name.
    pub name: AgentName,
    /// The beginning of its role.
    pub role: String,
}

/// An agent in the answer to another agent's search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Unique name in the hive.
    pub name: AgentName,
    /// Its parent; `None` for a root.
    pub parent: Option<AgentName>,
    /// The beginning of its role.
    pub role: String,
    /// State of its harness.
    pub state: HarnessState,
    /// Status text that the agent set; empty for none.
    pub status_text: String,
    /// Whether the reader may write to it.
    pub may_write: bool,
}

/// Returns the beginning of a role.
#[must_use]
pub fn shown_role(role: &str) -> String {
    role.chars().take(SHOWN_ROLE_CHARS_MAX).collect()
}
