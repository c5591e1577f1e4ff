//! Keeping agents apart: each harness, and all that it starts, runs under bubblewrap where that is installed.
//!
//! It sees the host's files as the user does, because agents work on them. Of the hive it sees its own socket, state directory and home, and it
//! can read the configuration file; over everything else of the hive lies an empty directory. It has a process table of its own: through the host's, `/proc/PID/root` of the
//! broker would lead around every mount, and signals would reach its peers. It holds no capability, so that root's agents cannot unmount.
//!
//! Invariant: without all of this the agents are called NOT ISOLATED, never half isolated.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::binaries::{Binaries, on_path};
use super::child::Spec;
use super::environment::Env;
use super::plan::{AgentPlan, Plan};
use super::shown;
use crate::output::note;
use crate::output::text::visible_line;
use crate::view::status::ACCEPT_ISOLATION;

/// How agents are kept apart in this run.
#[derive(Debug)]
pub(super) enum Confinement {
    /// By this bubblewrap.
    Bubblewrap(PathBuf),
    /// Not at all, and why.
    Absent(String),
}

impl Confinement {
    /// Bubblewrap, if it is there, wanted and able.
    pub(super) fn choose(unwanted: bool, plan: &Plan) -> Self {
        if unwanted {
            return Self::Absent("--no-isolation was given".to_owned());
        }
        let Some(bwrap) = on_path("bwrap") else {
            return Self::Absent(
                "bubblewrap (bwrap) is not installed; install the package `bubblewrap` and start again".to_owned(),
            );
        };
        // Kernels and containers may forbid it; a trial with the real arguments tells.
        let arguments = match plan.agents.first() {
            Some(agent) => arguments(plan, agent),
            None => ["--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL", "--dev-bind", "/", "/", "--proc", "/proc", "--"]
                .map(OsString::from)
                .to_vec(),
        };
        let trial = Command::new(&bwrap).args(arguments).arg("true").stdin(Stdio::null()).output();
        match trial {
            Ok(output) if output.status.success() => Self::Bubblewrap(bwrap),
            Ok(output) => {
                let words = String::from_utf8_lossy(&output.stderr);
                Self::Absent(format!("bubblewrap is not allowed to here: {}", visible_line(words.trim())))
            }
            Err(error) => Self::Absent(format!("bubblewrap cannot be started: {error}")),
        }
    }

    /// Whether agents are kept apart.
    pub(super) fn is_on(&self) -> bool {
        matches!(self, Self::Bubblewrap(_))
    }

    /// Says in one line whether agents are kept apart; loudly where they are not and the configuration does not accept that.
    pub(super) fn announce(&self, accepted: bool) {
        match self {
            Self::Bubblewrap(bwrap) => note(&format!("isolation: each agent in its own namespaces, by {}", shown(bwrap))),
            Self::Absent(why) if accepted => note(&format!("isolation: none, as hive.toml accepts: {why}")),
            Self::Absent(why) => note(&format!(
                "NOT ISOLATED: {why}. A shell tool of an agent could open the sockets of the others, and the operator's; {ACCEPT_ISOLATION}."
            )),
        }
    }

    /// How an agent's harness is started.
    pub(super) fn harness_spec(&self, plan: &Plan, agent: &AgentPlan, binaries: &Binaries, env: Env) -> Spec {
        let (program, mut args) = match self {
            Self::Bubblewrap(bwrap) => {
                let mut args = arguments(plan, agent);
                args.push(binaries.hive.clone().into_os_string());
                (bwrap.clone(), args)
            }
            Self::Absent(_) => (binaries.hive.clone(), Vec::new()),
        };
        args.push("serve".into());
        Spec {
            name: agent.name.to_string(),
            program,
            args,
            env,
            dir: agent.state_dir.clone(),
            log: plan.log_file(agent.name.as_str()),
            // bubblewrap has a way of its own.
            own_death_signal: matches!(self, Self::Absent(_)),
        }
    }
}

/// The arguments of bubblewrap for one agent, up to the program.
fn arguments(plan: &Plan, agent: &AgentPlan) -> Vec<OsString> {
    let mut args: Vec<OsString> = ["--die-with-parent", "--new-session", "--unshare-pid", "--unshare-ipc", "--cap-drop", "ALL"]
        .map(OsString::from)
        .to_vec();
    args.extend(["--dev-bind", "/", "/", "--proc", "/proc"].map(OsString::from));
    // What lies deeper is mounted later, so that nothing covers it again.
    let hidden = plan.hidden_from(agent);
    // Below an empty directory there is nothing to hide, and a mount there would show its name.
    let covered = |path: &Path| hidden.iter().any(|other| *other != path && path.starts_with(other));
    let mut mounts: Vec<(&Path, &str)> = hidden.iter().filter(|path| !covered(path)).map(|path| (*path, "--tmpfs")).collect();
    mounts.extend(agent.dirs().map(|path| (path, "--bind")));
    // Its settings are beside its socket; who may change them decides what its harness starts.
    mounts.push((&agent.socket_dir, "--ro-bind"));
    mounts.sort_by_key(|(path, _)| path.components().count());
    for (path, mount) in mounts {
        args.extend([mount.into(), path.as_os_str().to_owned()]);
        if mount != "--tmpfs" {
            args.push(path.as_os_str().to_owned());
        }
    }
    // Who may change the configuration decides what the next hive runs, and with which rights.
    if !hidden.iter().any(|path| plan.config_file.starts_with(path)) {
        args.extend(["--ro-bind".into(), plan.config_file.clone().into_os_string(), plan.config_file.clone().into_os_string()]);
    }
    args.extend(["--chdir".into(), agent.state_dir.clone().into_os_string(), "--".into()]);
    args
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(dir: &Path) -> Plan {
        let file = dir.join("hive.toml");
        std::fs::write(&file, "[agents.ada]\n[agents.bob]\nparent = \"ada\"\nhome_dir = \"elsewhere\"\n").expect("a file");
        Plan::make(&file, &dir.join("h")).expect("a plan")
    }

    fn told(plan: &Plan, dir: &Path, agent: usize) -> String {
        let root = dir.canonicalize().expect("a path").to_string_lossy().into_owned();
        let words: Vec<String> =
            arguments(plan, &plan.agents[agent]).iter().map(|arg| arg.to_string_lossy().replace(&root, "R")).collect();
        words.join(" ").replace(" --", "\n--")
    }

    #[test]
    fn an_agent_sees_its_own_part_of_the_hive_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = plan(dir.path());
        insta::assert_snapshot!(told(&plan, dir.path(), 0), @r"
        --die-with-parent
        --new-session
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
        --bind R/h/agents/ada/state R/h/agents/ada/state
        --bind R/h/agents/ada/home R/h/agents/ada/home
        --ro-bind R/h/run/agents/ada R/h/run/agents/ada
        --ro-bind R/hive.toml R/hive.toml
        --chdir R/h/agents/ada/state
        --
        ");
        assert!(told(&plan, dir.path(), 1).contains("--bind R/elsewhere R/elsewhere"));
    }

    #[test]
    fn without_bubblewrap_the_harness_is_started_as_it_is() {
        let dir = tempfile::tempdir().expect("a directory");
        let plan = plan(dir.path());
        let binaries = Binaries { hived: "/b/hived".into(), hive: "/b/hive".into(), hive_mcp: "/b/hive-mcp".into() };
        let confinement = Confinement::choose(true, &plan);
        assert!(matches!(&confinement, Confinement::Absent(why) if why.contains("--no-isolation")));
        let spec = confinement.harness_spec(&plan, &plan.agents[0], &binaries, Env::new());
        assert_eq!((spec.program.as_path(), spec.args.as_slice()), (Path::new("/b/hive"), &[OsString::from("serve")][..]));
    }
}
