//! What will run where: the configuration and the directories, settled before anything is started.
//!
//! Invariant: in a plan every path is absolute and without symbolic links, every directory is there, no two agents share one, and every
//! socket has a path that Linux can address.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use hive_core::config::{AgentConfig, Config};
use hive_core::limits::SOCKET_PATH_BYTES_MAX;
use hive_core::name::AgentName;

use super::UpError;

/// What will run where.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) config: Config,
    pub(super) config_file: PathBuf,
    /// The hive's directory, `.hive`.
    pub(super) base: PathBuf,
    /// The broker's database.
    pub(super) state_dir: PathBuf,
    /// The sockets.
    pub(super) runtime_dir: PathBuf,
    pub(super) log_dir: PathBuf,
    /// Below it are the directories of agents that the configuration gives none.
    pub(super) agents_dir: PathBuf,
    pub(super) agents: Vec<AgentPlan>,
}

/// One agent's part.
#[derive(Clone, Debug)]
pub(super) struct AgentPlan {
    pub(super) name: AgentName,
    pub(super) config: AgentConfig,
    pub(super) socket_dir: PathBuf,
    pub(super) state_dir: PathBuf,
    pub(super) home_dir: PathBuf,
}

impl Plan {
    /// Reads the configuration and creates the directories.
    pub(super) fn make(config_file: &Path, base: &Path) -> Result<Self, UpError> {
        let text = std::fs::read_to_string(config_file)
            .map_err(|source| UpError::ConfigUnreadable { path: config_file.to_path_buf(), source })?;
        let config = hive_core::config::parse(&text)
            .map_err(|source| UpError::ConfigInvalid { path: config_file.to_path_buf(), source })?;
        let config_file =
            config_file.canonicalize().map_err(|source| UpError::ConfigUnreadable { path: config_file.to_path_buf(), source })?;
        let plan = Self::lay_out(config, config_file, &directory(base)?)?;
        plan.check()?;
        Ok(plan)
    }

    fn lay_out(mut config: Config, config_file: PathBuf, base: &Path) -> Result<Self, UpError> {
        config.resolve_paths(config_file.parent().unwrap_or(Path::new("/")));
        let below = |given: &Option<PathBuf>, default: &str| given.clone().unwrap_or_else(|| base.join(default));
        let state_dir = directory(&below(&config.broker.state_dir, "state"))?;
        let runtime_dir = directory(&below(&config.broker.runtime_dir, "run"))?;
        let log_dir = directory(&base.join("log"))?;
        let agents_dir = directory(&base.join("agents"))?;
        let agents = std::mem::take(&mut config.agents);
        let mut plan = Self {
            config,
            config_file,
            base: base.to_path_buf(),
            state_dir,
            runtime_dir,
            log_dir,
            agents_dir,
            agents: Vec::new(),
        };
        for (name, agent) in &agents {
            plan.agents.push(plan.lay_out_agent(name, agent)?);
        }
        plan.config.agents = agents;
        Ok(plan)
    }

    fn lay_out_agent(&self, name: &AgentName, agent: &AgentConfig) -> Result<AgentPlan, UpError> {
        let below =
            |given: &Option<PathBuf>, last: &str| given.clone().unwrap_or_else(|| self.agents_dir.join(name.as_str()).join(last));
        Ok(AgentPlan {
            name: name.clone(),
            config: agent.clone(),
            // The broker would make it, too; but a harness that is confined has it mounted, and must find it there.
            socket_dir: directory(&self.socket_dir(name))?,
            state_dir: directory(&below(&agent.state_dir, "state"))?,
            home_dir: directory(&below(&agent.home_dir, "home"))?,
        })
    }

    /// Returns the part of an agent: of the configuration, or created at run time. Its directories are created.
    pub(super) fn agent(&self, name: &AgentName) -> Result<AgentPlan, UpError> {
        if let Some(agent) = self.agents.iter().find(|agent| agent.name == *name) {
            for dir in agent.own() {
                directory(dir)?;
            }
            return Ok(agent.clone());
        }
        let agent = self.lay_out_agent(name, &AgentConfig::default())?;
        let sockets = [agent.socket(), agent.task_socket()].into_iter();
        match sockets.max_by_key(|socket| socket.as_os_str().len()).filter(|socket| is_too_long(socket)) {
            Some(path) => Err(UpError::SocketTooLong { path }),
            None => Ok(agent),
        }
    }

    /// This plan, with the directories of these agents where the old plan has them: their harnesses run there.
    pub(super) fn keeping_places_of<'a>(mut self, old: &Self, running: impl Iterator<Item = &'a AgentName>) -> Self {
        for name in running {
            let before = old.agents.iter().find(|agent| agent.name == *name);
            let now = self.agents.iter_mut().find(|agent| agent.name == *name);
            if let (Some(before), Some(now)) = (before, now) {
                now.state_dir.clone_from(&before.state_dir);
                now.home_dir.clone_from(&before.home_dir);
            }
        }
        self
    }

    /// Where an agent's socket and settings are.
    pub(super) fn socket_dir(&self, name: &AgentName) -> PathBuf {
        self.runtime_dir.join("agents").join(name.as_str())
    }

    fn check(&self) -> Result<(), UpError> {
        let of_agents = self.agents.iter().flat_map(|agent| [agent.socket(), agent.task_socket()]);
        let sockets = of_agents.chain([self.operator_socket()]);
        let longest = sockets.max_by_key(|socket| socket.as_os_str().len()).unwrap_or_default();
        if is_too_long(&longest) {
            return Err(UpError::SocketTooLong { path: longest });
        }
        let broker = "the broker".to_owned();
        let mut owned: Vec<(String, &Path)> = vec![(broker.clone(), &self.state_dir), (broker, &self.runtime_dir)];
        for agent in &self.agents {
            let name = format!("agent {}", agent.name);
            for dir in [agent.state_dir.as_path(), agent.home_dir.as_path()] {
                let shared =
                    owned.iter().find(|(owner, other)| *owner != name && (dir.starts_with(other) || other.starts_with(dir)));
                if let Some((owner, _)) = shared {
                    return Err(UpError::Shared { first: owner.clone(), second: name, path: dir.to_path_buf() });
                }
                owned.push((name.clone(), dir));
            }
        }
        Ok(())
    }

    /// Where the operator reaches the broker.
    pub(super) fn operator_socket(&self) -> PathBuf {
        self.runtime_dir.join("hived.sock")
    }

    /// Where a process writes what it has to say.
    pub(super) fn log_file(&self, name: &str) -> PathBuf {
        self.log_dir.join(format!("{name}.log"))
    }

    /// What an agent must not see: the sockets, the database, the logs, and the directories of its peers.
    pub(super) fn hidden_from(&self, agent: &AgentPlan) -> Vec<&Path> {
        let peers = self.agents.iter().filter(|peer| peer.name != agent.name);
        let of_peers = peers.flat_map(|peer| [peer.state_dir.as_path(), peer.home_dir.as_path()]);
        let of_hive = [&self.runtime_dir, &self.state_dir, &self.log_dir, &self.agents_dir].map(PathBuf::as_path);
        of_hive.into_iter().chain(of_peers).collect()
    }
}

impl AgentPlan {
    /// Where the agent reaches the broker.
    pub(super) fn socket(&self) -> PathBuf {
        self.socket_dir.join("hive.sock")
    }

    /// Where its harness serves the shell tools.
    fn task_socket(&self) -> PathBuf {
        self.home_dir.join(".hive/tasks.sock")
    }

    /// Its own directories, which it can write in.
    pub(super) fn dirs(&self) -> [&Path; 2] {
        [&self.state_dir, &self.home_dir]
    }

    /// What it is given of the hive.
    pub(super) fn own(&self) -> [&Path; 3] {
        [&self.socket_dir, &self.state_dir, &self.home_dir]
    }
}

/// Whether Linux cannot address a socket.
fn is_too_long(socket: &Path) -> bool {
    socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX
}

/// Creates a directory for its owner only, if it is not there; answers with its real path.
fn directory(path: &Path) -> Result<PathBuf, UpError> {
    let failed = |source| UpError::Directory { path: path.to_path_buf(), source };
    if !path.is_dir() {
        DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    }
    path.canonicalize().map_err(failed)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn plan(dir: &Path, text: &str) -> Result<Plan, UpError> {
        let file = dir.join("hive.toml");
        std::fs::write(&file, text).expect("a file");
        Plan::make(&file, &dir.join("h"))
    }

    #[test]
    fn what_the_configuration_does_not_say_lies_below_the_hives_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().canonicalize().expect("a path");
        let plan = plan(dir.path(), "[agents.ada]\n[agents.bob]\nparent = \"ada\"\nhome_dir = \"bobs\"\n").expect("a plan");
        assert_eq!(plan.state_dir, root.join("h/state"));
        assert_eq!(plan.operator_socket(), root.join("h/run/hived.sock"));
        assert_eq!(plan.agents[0].socket(), root.join("h/run/agents/ada/hive.sock"));
        assert_eq!(plan.agents[0].home_dir, root.join("h/agents/ada/home"));
        assert_eq!(plan.agents[1].home_dir, root.join("bobs"));
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!([mode(&plan.base), mode(&plan.agents[0].home_dir), mode(&plan.runtime_dir)], [0o700; 3]);
        assert!(!plan.agents[0].state_dir.join("CLAUDE.md").exists());
    }

    #[test]
    fn a_socket_path_that_linux_cannot_address_is_refused_up_front() {
        let dir = tempfile::tempdir().expect("a directory");
        let text = format!("[agents.{}]", "a".repeat(60));
        let deep = dir.path().join("d".repeat(30));
        std::fs::create_dir(&deep).expect("a directory");
        let error = plan(&deep, &text).expect_err("too long");
        assert!(matches!(error, UpError::SocketTooLong { .. }), "{error}");
        assert_eq!(error.exit(), crate::exit::Exit::Usage);

        // So is that of the shell tools, which lies in the agent's home.
        let text = format!("[agents.ada]\nhome_dir = \"{}\"", "h".repeat(100));
        let error = plan(dir.path(), &text).expect_err("too long");
        assert!(matches!(&error, UpError::SocketTooLong { path } if path.ends_with(".hive/tasks.sock")), "{error}");
    }

    #[test]
    fn agents_do_not_share_directories_with_each_other_or_the_broker() {
        let dir = tempfile::tempdir().expect("a directory");
        for text in [
            "[agents.ada]\nhome_dir = \"x\"\n[agents.bob]\nhome_dir = \"x\"",
            "[agents.ada]\nhome_dir = \"x\"\n[agents.bob]\nstate_dir = \"x/y\"",
            "[broker]\nstate_dir = \"x/db\"\n[agents.ada]\nhome_dir = \"x\"",
        ] {
            assert!(matches!(plan(dir.path(), text), Err(UpError::Shared { .. })), "{text}");
        }
        assert!(plan(dir.path(), "[agents.ada]\nhome_dir = \"z\"\nstate_dir = \"z/work\"").is_ok());
    }
}
