//! The effects of a changed configuration on a running hive.
//!
//! Invariant: a file that is not valid changes nothing, and every changed key that holds only after
//! a restart is named.

use hive_core::config::{Claude, Config, SandboxConfig};

use crate::supervise::setup::plan::Plan;

/// Returns the changed keys that hold only when `hivectl up` is started again.
pub(crate) fn needs_restart(old: &Plan, new: &Plan) -> Vec<String> {
    let Config { hive, broker, operator, claude, actions, agents } = &old.config;
    let mut keys: Vec<String> = Vec::new();
    let mut changed = |key: &str, is_changed: bool| {
        if is_changed {
            keys.push(key.to_owned());
        }
    };
    changed("[hive]", *hive != new.config.hive);
    changed("[broker]", *broker != new.config.broker);
    changed("[operator]", *operator != new.config.operator);
    changed("[actions]", *actions != new.config.actions);
    // The rest of [claude] are settings of the harnesses.
    let Claude { command, env: _, settings: _, context_windows: _, mcp_server_name: _ } = claude;
    changed("claude.command", *command != new.config.claude.command);
    for (name, agent) in agents {
        let Some(now) = new.config.agents.get(name) else { continue };
        changed(&format!("agents.{name}.state_dir"), agent.state_dir != now.state_dir);
        changed(&format!("agents.{name}.home_dir"), agent.home_dir != now.home_dir);
        let (sandbox, now) = (&agent.sandbox, &now.sandbox);
        let SandboxConfig { isolation, readable: _, writable: _, devices: _, user_namespaces } =
            sandbox;
        changed(&format!("agents.{name}.isolation"), *isolation != now.isolation);
        changed(&format!("agents.{name}.user_namespaces"), *user_namespaces != now.user_namespaces);
        for ((key, paths), (_, now)) in sandbox.paths().into_iter().zip(now.paths()) {
            changed(&format!("agents.{name}.{key}"), paths != now);
        }
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::setup::plan::planned_in;

    #[test]
    fn keys_that_hold_only_after_a_restart_are_named() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = |text: &str| planned_in(dir.path(), text);
        let old = plan("[claude]\nmax_retries = 1\n[agents.ada]\n[agents.bob]\n");
        let new = plan(
            "[hive]\nname = \"x\"\n[broker]\nretention_days = 3\n[claude]\ncommand = \"other\"\nmax_retries = 2\n\
             [agents.ada]\nhome_dir = \"ada\"\nmodel = \"opus\"\n[agents.eve]\nhome_dir = \"eve\"\n",
        );
        assert_eq!(needs_restart(&old, &old), Vec::<String>::new());
        assert_eq!(
            needs_restart(&old, &new),
            ["[hive]", "[broker]", "claude.command", "agents.ada.home_dir"]
        );
    }
}
