//! The check of the init event: does claude have exactly the intended servers and tools?
//!
//! claude silently drops a settings file with one invalid field, and a bridge that does not start
//! fails no turn. So claude's own report is checked. Invariant: a turn whose fences are not proven
//! does no harm: it is stopped at its first event.

use hive_core::agent::{APPROVALS, DIAGNOSTICS, LIFECYCLE, SCHEDULING};
use hive_core::config::BASH_SERVER;

use crate::boot::mcp::BASH_TOOLS;
use crate::claude::command_line::{DENIED_TOOLS, EXECUTION_GROUP};
use crate::claude::event::Init;

/// The servers and tools that claude must report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The names of Hive's own MCP servers.
    pub servers: Vec<String>,
    /// Full names of the required tools.
    pub tools: Vec<String>,
}

/// A failed check of the fences.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Breach {
    #[error(
        "claude did not start the MCP server `{server}`: check HIVE_MCP and that hive-mcp is installed"
    )]
    NoServer { server: String },
    #[error(
        "the MCP server `{server}` is {status}, not connected: check that hive-mcp starts and reaches its socket"
    )]
    NotConnected { server: String, status: String },
    #[error(
        "the tool {tool} of this agent's groups is missing: hive-mcp and hive must be of the same version"
    )]
    NoTool { tool: String },
    #[error("claude offers the denied tool {tool} against its settings: update Claude Code")]
    DeniedTool { tool: String },
    #[error(
        "claude began to work before it reported its tools (no init event): update Claude Code"
    )]
    NoInit,
}

impl Expected {
    /// Returns the servers and tools of an agent with these tool groups.
    pub fn for_agent(server: &str, tool_groups: &[String]) -> Self {
        let has_bash = tool_groups.iter().any(|group| group == EXECUTION_GROUP);
        let servers = [server]
            .into_iter()
            .chain(has_bash.then_some(BASH_SERVER))
            .map(str::to_owned)
            .collect();
        let of_bridge = tool_groups
            .iter()
            .flat_map(|group| tools_of(group))
            .map(|tool| format!("mcp__{server}__{tool}"));
        let of_bash = BASH_TOOLS
            .iter()
            .filter(|_| has_bash)
            .map(|tool| format!("mcp__{BASH_SERVER}__{tool}"));
        Self { servers, tools: of_bridge.chain(of_bash).collect() }
    }

    /// Checks claude's report.
    pub fn check(&self, init: &Init) -> Result<(), Breach> {
        // The most dangerous first: a denied tool can do harm at once.
        if let Some(tool) =
            DENIED_TOOLS.into_iter().find(|tool| init.tools.iter().any(|offered| offered == tool))
        {
            return Err(Breach::DeniedTool { tool: tool.to_owned() });
        }
        for server in &self.servers {
            let server = server.clone();
            match status(init, &server) {
                None => return Err(Breach::NoServer { server }),
                Some(CONNECTED) => {}
                Some(status) => {
                    return Err(Breach::NotConnected { server, status: status.to_owned() });
                }
            }
        }
        match self.tools.iter().find(|tool| !init.tools.contains(tool)) {
            Some(tool) => Err(Breach::NoTool { tool: tool.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns which of the agent's own servers do not work, with the state that claude reports. They
/// are not a fence: a turn continues without them.
pub fn missing_extras<'a>(
    keys: impl IntoIterator<Item = &'a String>,
    init: &Init,
) -> Vec<(String, String)> {
    let missing = |key: &'a String| match status(init, key) {
        Some(CONNECTED) => None,
        Some(status) => Some((key.clone(), status.to_owned())),
        None => Some((key.clone(), "not started".to_owned())),
    };
    keys.into_iter().filter_map(missing).collect()
}

/// State that claude reports for a server that works.
const CONNECTED: &str = "connected";

fn status<'i>(init: &'i Init, server: &str) -> Option<&'i str> {
    init.mcp_servers.iter().find(|(name, _)| name == server).map(|(_, status)| status.as_str())
}

/// Returns the bridge's tools of a group.
fn tools_of(group: &str) -> &'static [&'static str] {
    match group {
        "messaging" => &["send", "recv", "ask", "answer"],
        "inbox" => &["get_loose_ends", "cancel_loose_end", "remind", "request_next_turn"],
        "meta" => &["set_status", "get_agent_meta", "list_agents"],
        LIFECYCLE => &["start", "kill", "restart", "list_containers"],
        // Those of actions are beside them; which there are, the bridge asks the broker.
        APPROVALS => &[
            "request_create_agent",
            "request_retire_agent",
            "request_set_agent",
            "request_set_policy",
        ],
        DIAGNOSTICS => &["get_logs", "get_host_journal"],
        SCHEDULING => &[
            "request_schedule_prompt",
            "edit_schedule",
            "cancel_schedule",
            "fire_schedule_now",
            "list_schedules",
        ],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn init(tools: &str, status: &str) -> Init {
        let servers = ["hive", "bash"].map(|server| (server.to_owned(), status.to_owned()));
        let tools = tools.split_whitespace().map(str::to_owned).collect();
        Init { tools, mcp_servers: servers.to_vec(), ..Init::default() }
    }

    const GOOD: &str = "Read mcp__hive__send mcp__hive__recv mcp__hive__ask mcp__hive__answer \
                        mcp__hive__set_status mcp__hive__get_agent_meta mcp__hive__list_agents mcp__bash__run \
                        mcp__bash__status";

    #[test]
    fn a_sound_process_passes() {
        let expected = Expected::for_agent("hive", &groups(&["messaging", "meta", "execution"]));
        assert_eq!(expected.check(&init(GOOD, "connected")), Ok(()));
    }

    #[test]
    fn a_group_is_there_as_a_whole_or_not_at_all() {
        for group in hive_core::agent::TOOL_GROUPS {
            let expected = Expected::for_agent("hive", &groups(&[group]));
            for missing in &expected.tools {
                let mut offered = init("", "connected");
                offered.tools =
                    expected.tools.iter().filter(|tool| *tool != missing).cloned().collect();
                assert_eq!(expected.check(&offered), Err(Breach::NoTool { tool: missing.clone() }));
            }
        }
        let all = Expected::for_agent("hive", &groups(&hive_core::agent::DEFAULT_TOOL_GROUPS));
        assert_eq!(all.tools.len(), 13);
    }

    #[test]
    fn the_shell_server_is_demanded_where_its_group_is() {
        let mut without = init(GOOD, "connected");
        without.mcp_servers.pop();
        let server = || "bash".to_owned();
        let breach = |init: &Init| {
            Expected::for_agent("hive", &groups(&["messaging", "execution"])).check(init)
        };
        assert_eq!(breach(&without), Err(Breach::NoServer { server: server() }));
        without.mcp_servers.push((server(), "failed".into()));
        assert_eq!(
            breach(&without),
            Err(Breach::NotConnected { server: server(), status: "failed".into() })
        );
        assert_eq!(Expected::for_agent("hive", &groups(&["messaging"])).check(&without), Ok(()));
    }

    #[test]
    fn an_extra_server_that_does_not_work_is_reported_and_is_no_breach() {
        let mut reported = init(GOOD, "connected");
        reported
            .mcp_servers
            .extend([("a".into(), "connected".into()), ("b".into(), "failed".into())]);
        let keys = groups(&["a", "b", "c"]);
        let pair = |key: &str, status: &str| (key.to_owned(), status.to_owned());
        assert_eq!(
            missing_extras(&keys, &reported),
            [pair("b", "failed"), pair("c", "not started")]
        );
        assert_eq!(
            Expected::for_agent("hive", &groups(&["messaging", "execution"])).check(&reported),
            Ok(())
        );
    }

    #[test]
    fn each_breach_is_named() {
        let expected = Expected::for_agent("hive", &groups(&["messaging", "inbox"]));
        let breach = |init| expected.check(&init).expect_err("a breach");
        assert!(
            matches!(breach(init(GOOD, "failed")), Breach::NotConnected { status, .. } if status == "failed")
        );
        assert!(matches!(breach(Init::default()), Breach::NoServer { .. }));
        assert!(
            matches!(breach(init(GOOD, "connected")), Breach::NoTool { tool } if tool == "mcp__hive__get_loose_ends")
        );
        for denied in DENIED_TOOLS {
            assert_eq!(breach(init(denied, "failed")), Breach::DeniedTool { tool: denied.into() });
        }
    }
}
