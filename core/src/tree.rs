//! The tree of agents as one agent sees it: its kin for its prompt, and the agents that it finds in
//! a list.

use crate::agent::HarnessState;
use crate::name::AgentName;

/// Most children that [`Kin`] names.
pub const KIN_CHILDREN_MAX: u32 = 50;
/// Most characters of a role in [`Kin`] and in a list of found agents.
pub const SHOWN_ROLE_CHARS_MAX: usize = 200;
/// Most agents that a search for agents answers with.
pub const FOUND_AGENTS_MAX: u32 = 100;
/// Longest text that agents are searched by, in characters.
pub const FIND_TEXT_CHARS_MAX: usize = 256;

/// The parent and the children of an agent, as its prompt names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kin {
    /// The role of its parent; empty for a root, and where nothing was said.
    pub parent_role: String,
    /// Its first children by name, at most [`KIN_CHILDREN_MAX`].
    pub children: Vec<Child>,
    /// How many children it has.
    pub children_count: u32,
}

/// A child in [`Kin`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Child {
    /// Its name.
    pub name: AgentName,
    /// The beginning of its role.
    pub role: String,
}

/// An agent in a list that another reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its name.
    pub name: AgentName,
    /// Its parent; `None` for a root.
    pub parent: Option<AgentName>,
    /// The beginning of its role.
    pub role: String,
    /// What its harness is doing.
    pub state: HarnessState,
    /// Its own status; empty for none.
    pub status_text: String,
    /// Whether the reader may write to it.
    pub may_write: bool,
}

/// The beginning of a role.
#[must_use]
pub fn shown_role(role: &str) -> String {
    role.chars().take(SHOWN_ROLE_CHARS_MAX).collect()
}
