//! The variables of `hive serve` that a configuration sets for the harness of one agent.
//!
//! Invariant: this is the only list of them, whichever program reads the file. Not in it: the
//! agent's own MCP servers, its directories and its socket, whose places the program knows.

use std::collections::BTreeMap;

use super::values::{AgentConfig, Config};
use crate::secret::Secret;

impl Config {
    /// Returns what is added to the environment of an agent's claude.
    #[must_use]
    pub fn claude_env(&self, agent: &AgentConfig) -> BTreeMap<String, Secret> {
        let all = self.claude.env.iter().chain(&agent.env);
        all.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Returns the variables; `claude_env` is that of [`Self::claude_env`], with the places at
    /// which the harness finds its secrets.
    #[must_use]
    pub fn serve_variables(
        &self,
        agent: &AgentConfig,
        claude_env: &BTreeMap<String, Secret>,
    ) -> BTreeMap<&'static str, String> {
        let mut variables = self.harness_variables(agent);
        let mut set = |name: &'static str, value: Option<String>| {
            variables.extend(value.map(|value| (name, value)));
        };
        set("HIVE_MCP_SERVER_NAME", Some(self.claude.mcp_server_name.clone()));
        set("HIVE_CLAUDE_ENV", Some(as_json(claude_env)));
        set("HIVE_DEFAULT_MODEL", agent.first_model().map(str::to_owned));
        set("HIVE_PLUGINS", (!agent.plugins.is_empty()).then(|| as_json(&agent.plugins)));
        set("HIVE_MARKETPLACES", agent.marketplaces.as_ref().map(as_json));
        set("HIVE_OPERATOR_PRONOUNS", self.operator.pronouns.clone());
        let windows = &self.claude.context_windows;
        set("HIVE_CONTEXT_WINDOWS", (!windows.is_empty()).then(|| as_json(windows)));
        variables
    }
}

fn as_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("strings and numbers are JSON")
}
