//! The check of the init event: is claude fenced in as we meant it to be?
//!
//! A settings file with one invalid field is dropped whole and silently, and a bridge that does not start fails no turn. So what claude says
//! of itself is checked. Invariant: a turn whose fences are not proven does no harm: it is stopped at its first event.

use crate::claude::command_line::DENIED_TOOLS;
use crate::claude::event::Init;

/// What claude has to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The name of our MCP server.
    pub server: String,
    /// Full names of the tools that have to be there.
    pub tools: Vec<String>,
}

/// What is wrong with the fences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    /// Our server is not there.
    #[error("claude did not start the MCP server `{server}`: check HIVE_MCP and that hive-mcp is installed")]
    NoServer {
        /// Its name.
        server: String,
    },
    /// Our server does not work.
    #[error("the MCP server `{server}` is {status}, not connected: check that hive-mcp starts and reaches the broker")]
    NotConnected {
        /// Its name.
        server: String,
        /// What claude says of it.
        status: String,
    },
    /// A tool is missing.
    #[error("the tool {tool} of this agent's groups is missing: hive-mcp and hive must be of the same version")]
    NoTool {
        /// Its name.
        tool: String,
    },
    /// A tool is there that must not be.
    #[error("claude offers the denied tool {tool}: its settings were not obeyed")]
    DeniedTool {
        /// Its name.
        tool: String,
    },
    /// The model answered before claude told how it is set up.
    #[error("claude began to work without telling its tools (no init event)")]
    NoInit,
}

impl Expected {
    /// What an agent with these tool groups has to have.
    #[must_use]
    pub fn of(server: &str, tool_groups: &[String]) -> Self {
        let tools = tool_groups.iter().flat_map(|group| tools_of(group)).map(|tool| format!("mcp__{server}__{tool}")).collect();
        Self { server: server.to_owned(), tools }
    }

    /// Compares it with what claude says.
    pub fn check(&self, init: &Init) -> Result<(), Breach> {
        // The worst first: what should not be there can do harm at once.
        if let Some(tool) = DENIED_TOOLS.into_iter().find(|tool| init.tools.iter().any(|offered| offered == tool)) {
            return Err(Breach::DeniedTool { tool: tool.to_owned() });
        }
        let server = self.server.clone();
        match init.mcp_servers.iter().find(|(name, _)| *name == self.server) {
            None => return Err(Breach::NoServer { server }),
            Some((_, status)) if status != "connected" => {
                return Err(Breach::NotConnected { server, status: status.clone() });
            }
            Some(_) => {}
        }
        match self.tools.iter().find(|tool| !init.tools.contains(tool)) {
            Some(tool) => Err(Breach::NoTool { tool: tool.clone() }),
            None => Ok(()),
        }
    }
}

/// The bridge's tools of a group.
fn tools_of(group: &str) -> &'static [&'static str] {
    match group {
        "messaging" => &["send", "recv", "ask", "answer"],
        "inbox" => &["get_loose_ends", "cancel_loose_end", "remind", "request_next_turn"],
        "meta" => &["set_status", "get_agent_meta"],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn init(tools: &[&str], status: &str) -> Init {
        Init { tools: groups(tools), mcp_servers: vec![("hive".into(), status.into())], ..Init::default() }
    }

    const GOOD: [&str; 7] = [
        "Read",
        "mcp__hive__send",
        "mcp__hive__recv",
        "mcp__hive__ask",
        "mcp__hive__answer",
        "mcp__hive__set_status",
        "mcp__hive__get_agent_meta",
    ];

    #[test]
    fn a_sound_process_passes() {
        let expected = Expected::of("hive", &groups(&["messaging", "meta", "execution"]));
        assert_eq!(expected.check(&init(&GOOD, "connected")), Ok(()));
    }

    #[test]
    fn a_group_is_there_as_a_whole_or_not_at_all() {
        for group in hive_core::agent::TOOL_GROUPS {
            let expected = Expected::of("hive", &groups(&[group]));
            for missing in &expected.tools {
                let mut offered = init(&[], "connected");
                offered.tools = expected.tools.iter().filter(|tool| *tool != missing).cloned().collect();
                assert_eq!(expected.check(&offered), Err(Breach::NoTool { tool: missing.clone() }));
            }
        }
        let all = Expected::of("hive", &groups(&hive_core::agent::DEFAULT_TOOL_GROUPS));
        assert_eq!(all.tools.len(), 10);
    }

    #[test]
    fn each_breach_is_named() {
        let expected = Expected::of("hive", &groups(&["messaging", "inbox"]));
        let breach = |init| expected.check(&init).expect_err("a breach");
        assert!(matches!(breach(init(&GOOD, "failed")), Breach::NotConnected { status, .. } if status == "failed"));
        assert!(matches!(breach(Init::default()), Breach::NoServer { .. }));
        assert!(matches!(breach(init(&GOOD, "connected")), Breach::NoTool { tool } if tool == "mcp__hive__get_loose_ends"));
        for denied in DENIED_TOOLS {
            assert_eq!(breach(init(&[denied], "failed")), Breach::DeniedTool { tool: denied.into() });
        }
    }
}
