//! Shared files: separate namespaces, with the host's files except for the rest of the hive.
//!
//! What it is not: a sandbox. The agent can write everything that its user can, so it can replace
//! programs of its user. Invariant: of the hive it sees its own socket, state directory and home,
//! and can read the configuration file. Empty directories cover the rest of the hive.

use std::ffi::OsString;
use std::path::Path;

use super::own::Own;
use crate::supervise::setup::plan::{AgentPlan, Plan};

/// Returns the arguments of bubblewrap, up to those of the start itself.
pub(super) fn arguments(plan: &Plan, agent: &AgentPlan, own: &Own) -> Vec<OsString> {
    let mut args: Vec<OsString> = [
        "--die-with-parent",
        "--new-session",
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--cap-drop",
        "ALL",
    ]
    .map(OsString::from)
    .to_vec();
    args.extend(["--dev-bind", "/", "/", "--proc", "/proc"].map(OsString::from));
    // Deeper paths are mounted later, so that nothing covers them.
    let hidden = plan.hidden_from(agent);
    // Below an empty directory there is nothing to hide, and a mount there would show its name.
    let covered =
        |path: &Path| hidden.iter().any(|other| *other != path && path.starts_with(other));
    let mut mounts: Vec<(&Path, Option<(&str, &Path)>)> =
        hidden.iter().filter(|path| !covered(path)).map(|path| (*path, None)).collect();
    mounts.extend(
        agent
            .dirs()
            .into_iter()
            .zip([&own.state, &own.home])
            .map(|(dest, own)| (dest, Some(("--bind", &*own.path)))),
    );
    // Its settings are beside its socket; a program that could change them could choose the
    // programs of its harness.
    mounts.push((&agent.socket_dir, Some(("--ro-bind", &agent.socket_dir))));
    mounts.sort_by_key(|(path, _)| path.components().count());
    for (dest, source) in mounts {
        match source {
            Some((how, source)) => args.extend([
                how.into(),
                source.as_os_str().to_owned(),
                dest.as_os_str().to_owned(),
            ]),
            None => args.extend(["--tmpfs".into(), dest.as_os_str().to_owned()]),
        }
    }
    // A program that could change the configuration could choose what the next hive runs.
    if !hidden.iter().any(|path| plan.config_file.starts_with(path)) {
        args.extend([
            "--ro-bind".into(),
            plan.config_file.clone().into_os_string(),
            plan.config_file.clone().into_os_string(),
        ]);
    }
    args
}

#[cfg(test)]
mod tests {
    use super::super::own::Trial;
    use super::*;
    use crate::supervise::setup::plan::planned;

    #[test]
    fn an_agent_sees_its_own_part_of_the_hive_only() {
        let text = "[agents.ada]\n[agents.bob]\nparent = \"ada\"\nhome_dir = \"elsewhere\"\n";
        let (_dir, root, plan) = planned(text);
        let trial = Trial::new(&plan).expect("directories");
        let shown = |agent: usize| {
            let root = root.to_string_lossy();
            let args = arguments(&plan, &plan.agents[agent], &trial.own);
            let words: Vec<String> =
                args.iter().map(|arg| arg.to_string_lossy().replace(&*root, "R")).collect();
            words.join(" ").replace(" --", "\n--")
        };
        insta::assert_snapshot!(shown(0), @r"
        --die-with-parent
        --new-session
        --unshare-user
        --unshare-pid
        --unshare-ipc
        --cap-drop ALL
        --dev-bind / /
        --proc /proc
        --tmpfs R/elsewhere
        --tmpfs R/h/run
        --tmpfs R/h/state
        --tmpfs R/h/log
        --tmpfs R/h/agents
        --bind R/h/trial/state R/h/agents/ada/state
        --bind R/h/trial/home R/h/agents/ada/home
        --ro-bind R/h/run/agents/ada R/h/run/agents/ada
        --ro-bind R/hive.toml R/hive.toml
        ");
        assert!(shown(1).contains("--bind R/h/trial/home R/elsewhere"));
    }
}
