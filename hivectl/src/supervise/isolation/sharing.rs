//! Directories that agents share: what one agent leaves there and another runs acts as the other.

use std::path::{Path, PathBuf};

use hive_core::name::AgentName;

use super::shown;
use crate::supervise::files::expand;
use crate::supervise::setup::plan::{AgentPlan, Plan};

/// The accesses of each agent of a plan to files, outside of the system.
#[derive(Debug)]
pub(super) struct Sharing {
    accesses: Vec<(AgentName, Vec<Access>)>,
}

impl Sharing {
    pub(super) fn new(plan: &Plan) -> Self {
        let accesses =
            plan.agents.iter().map(|agent| (agent.name.clone(), Access::of_agent(plan, agent)));
        Self { accesses: accesses.collect() }
    }

    pub(super) fn notes(&self, agent: &AgentName) -> Vec<String> {
        self.shared(agent)
            .into_iter()
            .map(|(path, peer)| format!("shares {} with {peer}", path.display()))
            .collect()
    }

    /// Returns a sentence on each path that two agents share.
    pub(super) fn sentences(&self) -> Vec<String> {
        let mut sentences = Vec::new();
        for (agent, _) in &self.accesses {
            for (path, peer) in self.shared(agent).into_iter().filter(|(_, peer)| agent < peer) {
                let sentence = format!(
                    "{agent} and {peer} share {}: code that one leaves there and the other runs acts as the other",
                    path.display()
                );
                if !sentences.contains(&sentence) {
                    sentences.push(sentence);
                }
            }
        }
        sentences
    }

    fn shared(&self, agent: &AgentName) -> Vec<(PathBuf, AgentName)> {
        let mut shared = Vec::new();
        // An agent that was created at run time has its own directories only.
        let Some((_, mine)) = self.accesses.iter().find(|(name, _)| name == agent) else {
            return shared;
        };
        for (peer, theirs) in self.accesses.iter().filter(|(name, _)| name != agent) {
            for inner in
                theirs.iter().flat_map(|theirs| mine.iter().filter_map(|mine| mine.shares(theirs)))
            {
                let entry = (inner.to_path_buf(), peer.clone());
                if !shared.contains(&entry) {
                    shared.push(entry);
                }
            }
        }
        shared
    }
}

/// A file or a directory that an agent sees.
#[derive(Debug)]
struct Access {
    path: PathBuf,
    writes: bool,
}

impl Access {
    fn of_agent(plan: &Plan, agent: &AgentPlan) -> Vec<Self> {
        let real = |path: &PathBuf| {
            let path = expand(path, plan.home.as_deref());
            path.canonicalize().unwrap_or(path)
        };
        let sandbox = &agent.config.sandbox;
        let own = agent.dirs().map(Path::to_path_buf);
        let written = own
            .into_iter()
            .chain(sandbox.writable.iter().map(real))
            .map(|path| Self { path, writes: true });
        let read = sandbox.readable.iter().map(real).chain(shown::of_settings(plan, agent));
        written.chain(read.map(|path| Self { path, writes: false })).collect()
    }

    /// Returns the inner one of two directories, if one contains the other and can be written.
    fn shares<'a>(&'a self, other: &'a Self) -> Option<&'a Path> {
        let inner = if self.path.starts_with(&other.path) {
            &self.path
        } else if other.path.starts_with(&self.path) {
            &other.path
        } else {
            return None;
        };
        (self.writes || other.writes).then_some(inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::supervise::setup::plan::planned_in;

    #[test]
    fn overlapping_directories_are_shared_if_one_of_them_can_be_written() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        for name in ["project/sub", "lib"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        let text = "[agents.ada]\nwritable = [\"project\"]\nreadable = [\"lib\"]\n[agents.bob]\nreadable = [\"project/sub\", \"lib\"]\n\
                    [agents.eve]\nwritable = [\"project\"]\n";
        let plan = planned_in(&root, text);
        let sharing = Sharing::new(&plan);
        let of = |agent: usize| {
            sharing
                .notes(&plan.agents[agent].name)
                .join("; ")
                .replace(&*root.to_string_lossy(), "R")
        };
        assert_eq!(
            [of(0), of(1)],
            [
                "shares R/project/sub with bob; shares R/project with eve",
                "shares R/project/sub with ada; shares R/project/sub with eve"
            ]
        );
        assert_eq!(sharing.sentences().len(), 3);
    }

    #[test]
    fn a_path_in_settings_is_shared_with_its_writers() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        for name in ["project/market", "own"] {
            std::fs::create_dir_all(root.join(name)).expect("a directory");
        }
        for name in ["project/prompt.md", "project/server"] {
            std::fs::write(root.join(name), "").expect("a file");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(root.join(name), mode).expect("a mode");
        }
        let text = "[agents.ada]\nwritable = [\"project\"]\n[agents.bob]\nsystem_prompt = \"project/prompt.md\"\nmarketplaces = [\"./project/market\"]\n\
                    [agents.bob.extra_mcp_servers.notes]\ncommand = \"project/server\"\n";
        let plan = planned_in(&root, text);
        let notes = Sharing::new(&plan)
            .notes(&plan.agents[1].name)
            .join("; ")
            .replace(&*root.to_string_lossy(), "R");
        assert_eq!(
            notes,
            "shares R/project/server with ada; shares R/project/market with ada; shares R/project/prompt.md with ada"
        );
    }
}
