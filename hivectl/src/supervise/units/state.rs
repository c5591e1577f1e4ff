//! What systemd says about the units of agents: the output of `systemctl show`, parsed.
//!
//! Invariant: a unit that systemd does not list is inactive; it keeps no unit in memory that has
//! ended and not failed.

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use hive_core::name::AgentName;

/// The properties that are read.
pub(crate) const PROPERTIES: &str =
    "Id,ActiveState,SubState,InvocationID,NRestarts,ExecMainCode,ExecMainStatus,Result,Job";

/// How active a unit is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Active {
    /// It has no process.
    #[default]
    Inactive,
    /// It has no process, and systemd starts none.
    Failed,
    /// It has a process.
    Up,
    /// Its process ended by itself, and systemd starts another one after a pause.
    Waiting,
    /// systemd has an order for it, or ends it.
    Changing,
}

/// The state of a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    pub(crate) active: Active,
    /// Which start of the unit it is; systemd gives each an id.
    pub(crate) invocation: Option<String>,
    /// How often systemd has started it again since the last order.
    pub(crate) restarts: u64,
    /// How its last process ended.
    pub(crate) ending: String,
}

/// Parses the states of units: blocks of `NAME=VALUE`, with an empty line between two.
pub(crate) fn parse(text: &str) -> BTreeMap<AgentName, State> {
    text.split("\n\n").filter_map(block).collect()
}

/// Returns the agent of a unit.
fn agent(unit: &str) -> Option<AgentName> {
    AgentName::parse(unit.strip_prefix("hive@")?.strip_suffix(".service")?).ok()
}

fn block(text: &str) -> Option<(AgentName, State)> {
    let values: BTreeMap<&str, &str> =
        text.lines().filter_map(|line| line.split_once('=')).collect();
    let value = |name: &str| values.get(name).copied().unwrap_or_default();
    let has_job = !matches!(value("Job"), "" | "0");
    let active = match value("ActiveState") {
        _ if has_job => Active::Changing,
        "active" | "reloading" => Active::Up,
        "activating" if value("SubState").starts_with("auto-restart") => Active::Waiting,
        "activating" => Active::Up,
        "failed" => Active::Failed,
        "inactive" => Active::Inactive,
        // Deactivating, or its directories are being deleted.
        _ => Active::Changing,
    };
    let invocation = Some(value("InvocationID")).filter(|id| !id.is_empty()).map(str::to_owned);
    let restarts = value("NRestarts").parse().unwrap_or(0);
    let ending = ending(value("ExecMainCode"), value("ExecMainStatus"), value("Result"));
    Some((agent(value("Id"))?, State { active, invocation, restarts, ending }))
}

/// Returns how a process ended, as `hivectl up` says it.
fn ending(code: &str, status: &str, result: &str) -> String {
    let status: i32 = status.parse().unwrap_or(0);
    match code {
        // CLD_EXITED; then CLD_KILLED and CLD_DUMPED.
        "1" => ExitStatus::from_raw((status & 0xff) << 8).to_string(),
        "2" | "3" => ExitStatus::from_raw(status & 0x7f).to_string(),
        _ => format!("systemd could not start it: {result}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A block as `systemctl show` prints it.
    pub(crate) fn shown(agent: &str, active: &str, sub: &str, rest: &str) -> String {
        format!("Id=hive@{agent}.service\nActiveState={active}\nSubState={sub}\n{rest}")
    }

    #[test]
    fn each_unit_has_its_state() {
        let text = [
            shown("ada", "active", "running", "InvocationID=b8de\nNRestarts=0\nJob=\n"),
            shown("bob", "activating", "auto-restart", "ExecMainCode=2\nExecMainStatus=9\n"),
            shown("cy", "deactivating", "stop-sigterm", "Job=12\n"),
            shown("dee", "failed", "failed", "ExecMainCode=1\nExecMainStatus=3\nNRestarts=4\n"),
            shown("eve", "inactive", "dead", "Job=7\n"),
            shown("fay", "inactive", "dead", "Result=success\n"),
            shown("gil", "maintenance", "cleaning", ""),
            "Id=hived.service\nActiveState=active\n".to_owned(),
            "Id=hive@No.service\nActiveState=active\n".to_owned(),
        ];
        let states = parse(&text.join("\n"));
        let found: Vec<(&str, Active)> =
            states.iter().map(|(name, state)| (name.as_str(), state.active)).collect();
        let expected = [
            ("ada", Active::Up),
            ("bob", Active::Waiting),
            ("cy", Active::Changing),
            ("dee", Active::Failed),
            ("eve", Active::Changing),
            ("fay", Active::Inactive),
            ("gil", Active::Changing),
        ];
        assert_eq!(found, expected);
        let of = |name: &str| &states[&AgentName::parse(name).expect("a name")];
        assert_eq!(of("ada").invocation.as_deref(), Some("b8de"));
        assert_eq!(of("bob").invocation, None);
        assert_eq!(of("bob").ending, "signal: 9 (SIGKILL)");
        assert_eq!((of("dee").ending.as_str(), of("dee").restarts), ("exit status: 3", 4));
    }

    #[test]
    fn what_is_not_a_unit_of_an_agent_is_left_out() {
        assert!(parse("").is_empty());
        assert!(parse("Id=\nActiveState=active\n\nnonsense\n\n=\n").is_empty());
        let resources = ending("0", "0", "resources");
        assert_eq!(resources, "systemd could not start it: resources");
    }
}
