//! The declaration of an agent: its part of the configuration file, which its row keeps as JSON.

use hive_core::agent::{KickOnStart, Policy};
use hive_core::name::AgentName;
use serde::{Deserialize, Serialize};

use crate::store::agent::AgentRow;

/// An agent of the configuration file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declared {
    /// Its parent; `None` for a root.
    pub parent: Option<AgentName>,
    /// The purpose of the agent, as others see it.
    pub role: String,
    /// The model; empty for the default.
    pub model: String,
    /// The rights and limits of the agent.
    pub policy: Policy,
    /// Models that the operator may switch it to; empty: any.
    #[serde(default)]
    pub available_models: Vec<String>,
    /// When a new session notifies it to go on.
    #[serde(default)]
    pub kick_on_start: KickOnStart,
    /// Whether its harness runs on demand only.
    #[serde(default)]
    pub on_demand: bool,
}

/// Returns when a new session notifies this agent to go on: as the file says, else the default.
pub(crate) fn kick_on_start(row: &AgentRow) -> KickOnStart {
    let declared =
        row.declared.as_deref().and_then(|json| serde_json::from_str::<Declared>(json).ok());
    declared.map(|declared| declared.kick_on_start).unwrap_or_default()
}
