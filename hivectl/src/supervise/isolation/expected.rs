//! The checks that a harness makes from inside: a file beside its settings, which it can read and
//! not change.

use std::path::{Path, PathBuf};

use hive_core::isolation::{EXPECTED_FILE, Expected, Level};

use super::grants::Grants;
use super::own::Own;
use super::programs::Shown;
use crate::supervise::UpError;
use crate::supervise::files::host_path::HostPath;
use crate::supervise::setup::plan::{AgentPlan, Plan};
use crate::supervise::setup::settings;

/// Files of a home that make programs run or let in elsewhere.
const IN_A_HOME: [&str; 10] = [
    ".ssh",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".gnupg",
    ".aws",
    ".claude",
    ".claude.json",
    ".gitconfig",
];

#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) level: Level,
    pub(super) bwrap: &'a Path,
    pub(super) user_namespaces: bool,
    pub(super) own: &'a Own,
    pub(super) shown: &'a [Shown],
    pub(super) grants: &'a Grants,
    pub(super) programs: &'a [PathBuf],
}

/// Returns where the file of an agent is.
pub(super) fn path(agent: &AgentPlan) -> PathBuf {
    agent.settings_dir().join(EXPECTED_FILE)
}

pub(super) fn write(plan: &Plan, agent: &AgentPlan, facts: &Facts<'_>) -> Result<(), UpError> {
    let text = serde_json::to_string_pretty(&expected(plan, agent, facts))
        .expect("paths of a configuration are text");
    settings::put(&path(agent), Some(&format!("{text}\n"))).map(drop)
}

fn expected(plan: &Plan, agent: &AgentPlan, facts: &Facts<'_>) -> Expected {
    let Facts { level, bwrap, user_namespaces, own, shown, grants, programs } = *facts;
    let paths = |granted: &[HostPath]| {
        granted.iter().map(|granted| granted.path.clone()).collect::<Vec<_>>()
    };
    let mut hidden =
        vec![plan.operator_socket(), plan.state_dir.join("hive.db"), plan.log_file("hived")];
    let peers = plan.agents.iter().filter(|peer| peer.name != agent.name);
    match level {
        Level::Sandbox => {
            hidden.push(plan.config_file.clone());
            hidden.extend(peers.flat_map(|peer| peer.own().map(Path::to_path_buf)));
            hidden.extend(plan.home.iter().flat_map(|home| IN_A_HOME.map(|name| home.join(name))));
        }
        // Directories outside of the hive's own are covered by an empty directory.
        Level::SharedFiles | Level::None => hidden.extend(peers.map(AgentPlan::socket)),
    }
    let is_granted = |path: &PathBuf| grants.all().any(|granted| path.starts_with(&granted.path));
    hidden.retain(|path| !is_granted(path) && !agent.own().iter().any(|own| path.starts_with(own)));
    let mut read_only = vec![settings::path(agent), path(agent)];
    match level {
        Level::Sandbox => read_only.extend_from_slice(programs),
        Level::SharedFiles | Level::None => read_only.push(plan.config_file.clone()),
    }
    let (writable, devices) = (paths(&grants.writable), paths(&grants.devices));
    let private = agent.settings_dir();
    let mounted = match level {
        Level::Sandbox => {
            let own = [
                (&own.tmp, Path::new("/tmp")),
                (&own.state, &agent.state_dir),
                (&own.home, &agent.home_dir),
            ];
            let own = own.into_iter().map(|(source, dest)| source.mounted_at(dest));
            let shown = shown.iter().filter_map(|shown| match shown {
                Shown::File { source, dest } => Some(source.mounted_at(dest)),
                Shown::Link { .. } => None,
            });
            own.chain(shown)
                .chain(grants.all().map(|granted| granted.mounted_at(&granted.path)))
                .collect()
        }
        Level::SharedFiles | Level::None => Vec::new(),
    };
    Expected {
        level,
        bwrap: bwrap.to_path_buf(),
        user_namespaces,
        hidden,
        read_only,
        writable,
        devices,
        private,
        mounted,
    }
}

#[cfg(test)]
mod tests {
    use super::super::own::Trial;
    use super::*;
    use crate::supervise::setup::plan::planned;

    #[test]
    fn peers_and_the_operators_home_are_hidden_and_programs_are_read_only() {
        let (_dir, root, mut plan) = planned("[agents.ada]\n[agents.bob]\n");
        let file = root.join("hive.toml");
        let grants = Grants::default();
        let programs = [PathBuf::from("/p/hive")];
        let bwrap = Path::new("/usr/bin/bwrap");
        plan.home = Some("/home/me".into());
        let trial = Trial::new(&plan).expect("directories");
        let of = |level| Facts {
            level,
            bwrap,
            user_namespaces: false,
            own: &trial.own,
            shown: &[],
            grants: &grants,
            programs: &programs,
        };
        write(&plan, &plan.agents[0], &of(Level::Sandbox)).expect("written");
        let text = std::fs::read_to_string(root.join("h/run/agents/ada/settings/isolation.json"))
            .expect("a file");
        let read: Expected = serde_json::from_str(&text).expect("JSON");
        assert_eq!(read, expected(&plan, &plan.agents[0], &of(Level::Sandbox)));
        for path in [
            "h/run/hived.sock",
            "h/run/agents/bob",
            "h/agents/bob/home",
            "hive.toml",
            "h/state/hive.db",
        ] {
            assert!(read.hidden.contains(&root.join(path)), "{path}");
        }
        assert!(read.hidden.contains(&PathBuf::from("/home/me/.ssh")));
        assert!(read.read_only.contains(&programs[0]));
        let shared = expected(&plan, &plan.agents[0], &of(Level::SharedFiles));
        assert!(!shared.hidden.contains(&file) && shared.read_only.contains(&file));
        assert!(!shared.hidden.contains(&PathBuf::from("/home/me/.ssh")));
    }
}
