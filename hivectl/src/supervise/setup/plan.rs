//! The plan of a hive: the configuration and the directories, fixed before any process starts.
//!
//! Invariant: in a plan every path is absolute and without symbolic links, every directory is
//! there, no two agents share one, and every socket has a path that Linux can address.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hive_core::config::{AgentConfig, Config};
use hive_core::limits::SOCKET_PATH_BYTES_MAX;
use hive_core::name::AgentName;

use crate::supervise::UpError;
use crate::supervise::files::expand;
use crate::supervise::files::host_path::{AgentsWrite, HostPath, WalkError};
use crate::supervise::setup::settings::PROMPT_VARIABLE;

/// The directory of a harness's settings, beside its socket.
pub(crate) const SETTINGS_DIR: &str = "settings";
/// The state directory of an agent for which the configuration names none, below the agent's own
/// directory.
const STATE: &str = "state";
const HOME: &str = "home";

#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) config: Config,
    pub(crate) config_file: PathBuf,
    /// The hive's directory, `.hive`.
    pub(crate) base: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) runtime_dir: PathBuf,
    pub(crate) log_dir: PathBuf,
    /// Below it are the directories of agents that the configuration gives none.
    pub(crate) agents_dir: PathBuf,
    pub(crate) agents: Vec<AgentPlan>,
    /// Directories in which agents can make links.
    pub(crate) agents_write: AgentsWrite,
    pub(crate) home: Option<PathBuf>,
    /// Links that lead to the configuration and to the hive's directory.
    pub(crate) links: Vec<PathBuf>,
}

#[derive(Clone, Debug)]
pub(crate) struct AgentPlan {
    pub(crate) name: AgentName,
    pub(crate) config: AgentConfig,
    pub(crate) socket_dir: PathBuf,
    pub(crate) state_dir: PathBuf,
    pub(crate) home_dir: PathBuf,
    /// Whether its directories exist. If an agent has made one unusable, the plan has its path, and
    /// its start reports why.
    pub(crate) is_laid_out: bool,
}

impl Plan {
    /// Reads the configuration and creates the directories.
    pub(crate) fn make(config_file: &Path, base: &Path) -> Result<Self, UpError> {
        let given = config_file;
        let text = std::fs::read_to_string(config_file).map_err(|source| {
            UpError::ConfigUnreadable { path: config_file.to_path_buf(), source }
        })?;
        let config = hive_core::config::parse(&text)
            .map_err(|source| UpError::ConfigInvalid { path: config_file.to_path_buf(), source })?;
        let config_file = config_file.canonicalize().map_err(|source| {
            UpError::ConfigUnreadable { path: config_file.to_path_buf(), source }
        })?;
        let (given_file, given_base) = (std::path::absolute(given), std::path::absolute(base));
        let mut plan =
            Self::lay_out(config, config_file, &directory(base, &AgentsWrite::default())?)?;
        plan.check()?;
        // The links to them determine which hive this is.
        for path in [given_file, given_base].into_iter().flatten() {
            let found = HostPath::find(&path, &plan.agents_write);
            plan.links.extend(found.map_err(|source| UpError::Directory { path, source })?.links);
        }
        Ok(plan)
    }

    fn lay_out(mut config: Config, config_file: PathBuf, base: &Path) -> Result<Self, UpError> {
        config.resolve_paths(config_file.parent().unwrap_or(Path::new("/")));
        let below = |given: &Option<PathBuf>, default: &str| {
            given.clone().unwrap_or_else(|| base.join(default))
        };
        let agents_dir = directory(&base.join("agents"), &AgentsWrite::default())?;
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let home = home.map(|home| home.canonicalize().unwrap_or(home));
        let agents = std::mem::take(&mut config.agents);
        let agents_write = agents_write(&agents, &agents_dir, home.as_deref());
        let directory = |path: &Path| directory(path, &agents_write);
        let state_dir = directory(&below(&config.broker.state_dir, "state"))?;
        let runtime_dir = directory(&below(&config.broker.runtime_dir, "run"))?;
        let log_dir = directory(&base.join("log"))?;
        let mut plan = Self {
            config,
            config_file,
            base: base.to_path_buf(),
            state_dir,
            runtime_dir,
            log_dir,
            agents_dir,
            agents: Vec::new(),
            agents_write,
            home,
            links: Vec::new(),
        };
        for (name, agent) in &agents {
            let agent = plan.lay_out_agent(name, agent)?;
            // A path below one on the list may lead over a link of the agent.
            for dir in agent.dirs() {
                if !plan.agents_write.contains(dir) {
                    plan.agents_write.add(dir);
                }
            }
            plan.agents.push(agent);
        }
        plan.config.agents = agents;
        Ok(plan)
    }

    fn lay_out_agent(&self, name: &AgentName, agent: &AgentConfig) -> Result<AgentPlan, UpError> {
        let below = |given: &Option<PathBuf>, last: &str| {
            given.clone().unwrap_or_else(|| self.agent_dir(name).join(last))
        };
        let (state_dir, has_state) = self.create(&below(&agent.state_dir, STATE))?;
        let (home_dir, has_home) = self.create(&below(&agent.home_dir, HOME))?;
        Ok(AgentPlan {
            name: name.clone(),
            config: agent.clone(),
            // The broker would make it, too; but a harness that is confined has it mounted, and
            // must find it there.
            socket_dir: directory(&self.socket_dir(name), &self.agents_write)?,
            state_dir,
            home_dir,
            is_laid_out: has_state && has_home,
        })
    }

    /// Creates a directory of an agent; returns its path, and whether it can be used. It fails only
    /// for a cause that no agent can have.
    fn create(&self, path: &Path) -> Result<(PathBuf, bool), UpError> {
        match HostPath::directory(path, &self.agents_write) {
            Ok(found) => Ok((found.path, true)),
            Err(why) if why.may_be_an_agents(&self.agents_write) => {
                Ok((HostPath::would_be(path, &self.agents_write), false))
            }
            Err(source) => Err(UpError::Directory { path: path.to_path_buf(), source }),
        }
    }

    /// Returns the part of an agent: of the configuration, or created at run time. Its directories
    /// are created.
    pub(crate) fn agent(&self, name: &AgentName) -> Result<AgentPlan, UpError> {
        let agent = match self.agents.iter().find(|agent| agent.name == *name) {
            Some(agent) => agent.clone(),
            None => self.lay_out_agent(name, &AgentConfig::default())?,
        };
        for dir in agent.own() {
            let path = directory(dir, &self.agents_write)?;
            // The plan was checked with another one.
            if path != dir {
                return Err(UpError::NotHidden { path });
            }
        }
        let sockets = [agent.socket(), agent.task_socket()].into_iter();
        match sockets
            .max_by_key(|socket| socket.as_os_str().len())
            .filter(|socket| is_too_long(socket))
        {
            Some(path) => Err(UpError::SocketTooLong { path }),
            None => Ok(agent),
        }
    }

    /// This plan, with the directories of these agents where the old plan has them: their harnesses
    /// run there.
    pub(crate) fn keeping_dirs_of<'a>(
        mut self,
        old: &Self,
        running: impl Iterator<Item = &'a AgentName>,
    ) -> Self {
        self.agents_write.add_all(&old.agents_write);
        for name in running {
            let before = old.agents.iter().find(|agent| agent.name == *name);
            let now = self.agents.iter_mut().find(|agent| agent.name == *name);
            if let (Some(before), Some(now)) = (before, now) {
                now.state_dir.clone_from(&before.state_dir);
                now.home_dir.clone_from(&before.home_dir);
                now.is_laid_out = before.is_laid_out;
            }
        }
        self
    }

    pub(crate) fn system_prompt(&self, agent: &AgentPlan) -> Option<PathBuf> {
        self.config.harness_variables(&agent.config).remove(PROMPT_VARIABLE).map(PathBuf::from)
    }

    pub(crate) fn named_dirs(&self) -> Vec<(&AgentName, &Path)> {
        let named = self.agents.iter().flat_map(|agent| {
            let AgentConfig { state_dir, home_dir, .. } = &agent.config;
            let named = state_dir
                .as_ref()
                .map(|_| &agent.state_dir)
                .into_iter()
                .chain(home_dir.as_ref().map(|_| &agent.home_dir));
            named.map(|dir| (&agent.name, dir.as_path()))
        });
        named.collect()
    }

    /// Returns the directory that the hive makes for an agent, and deletes when it is purged.
    pub(crate) fn agent_dir(&self, name: &AgentName) -> PathBuf {
        self.agents_dir.join(name.as_str())
    }

    pub(crate) fn tmp_dir(&self, name: &AgentName) -> PathBuf {
        self.agent_dir(name).join("tmp")
    }

    /// Returns the directory of a trial, which is deleted after it.
    pub(crate) fn trial_dir(&self) -> PathBuf {
        self.base.join("trial")
    }

    /// Returns the directory of an agent's socket, with the settings of its harness beside it.
    pub(crate) fn socket_dir(&self, name: &AgentName) -> PathBuf {
        self.runtime_dir.join("agents").join(name.as_str())
    }

    fn check(&self) -> Result<(), UpError> {
        let of_agents = self.agents.iter().flat_map(|agent| [agent.socket(), agent.task_socket()]);
        let sockets = of_agents.chain([self.operator_socket()]);
        let longest = sockets.max_by_key(|socket| socket.as_os_str().len()).unwrap_or_default();
        if is_too_long(&longest) {
            return Err(UpError::SocketTooLong { path: longest });
        }
        for agent in &self.agents {
            if let Some(dir) =
                agent.dirs().into_iter().find(|dir| self.is_the_hives(&agent.name, dir))
            {
                let (first, second) = ("the hive".to_owned(), format!("agent {}", agent.name));
                return Err(UpError::Shared { first, second, path: dir.to_path_buf() });
            }
        }
        let broker = "the broker".to_owned();
        let mut owned: Vec<(String, &Path)> =
            vec![(broker.clone(), &self.state_dir), (broker, &self.runtime_dir)];
        for agent in &self.agents {
            let name = format!("agent {}", agent.name);
            for dir in [agent.state_dir.as_path(), agent.home_dir.as_path()] {
                let shared = owned.iter().find(|(owner, other)| {
                    *owner != name && (dir.starts_with(other) || other.starts_with(dir))
                });
                if let Some((owner, _)) = shared {
                    return Err(UpError::Shared {
                        first: owner.clone(),
                        second: name,
                        path: dir.to_path_buf(),
                    });
                }
                owned.push((name.clone(), dir));
            }
        }
        Ok(())
    }

    /// Returns whether a directory holds those of agents, or is where `up` deletes what an agent
    /// has left.
    fn is_the_hives(&self, name: &AgentName, dir: &Path) -> bool {
        let own = self.agent_dir(name);
        let is_deleted =
            dir.starts_with(&self.agents_dir) && dir != own.join(STATE) && dir != own.join(HOME);
        self.agents_dir.starts_with(dir) || is_deleted || dir.starts_with(self.trial_dir())
    }

    pub(crate) fn operator_socket(&self) -> PathBuf {
        self.runtime_dir.join("hived.sock")
    }

    pub(crate) fn log_file(&self, name: &str) -> PathBuf {
        self.log_dir.join(format!("{name}.log"))
    }

    /// Returns what an agent must not see: the sockets, the database, the logs, and the directories
    /// of its peers.
    pub(crate) fn hidden_from(&self, agent: &AgentPlan) -> Vec<&Path> {
        // A mount over a link of a peer's would fail.
        let peers = self.agents.iter().filter(|peer| peer.name != agent.name && peer.is_laid_out);
        let of_peers = peers.flat_map(|peer| [peer.state_dir.as_path(), peer.home_dir.as_path()]);
        let of_hive = [&self.runtime_dir, &self.state_dir, &self.log_dir, &self.agents_dir]
            .map(PathBuf::as_path);
        of_hive.into_iter().chain(of_peers).collect()
    }
}

impl AgentPlan {
    pub(crate) fn socket(&self) -> PathBuf {
        self.socket_dir.join("hive.sock")
    }

    /// Returns the socket on which its harness serves the shell tools.
    fn task_socket(&self) -> PathBuf {
        self.home_dir.join(".hive/tasks.sock")
    }

    /// Returns where the settings of its harness are. They may hold keys: its shell tasks see its
    /// socket, and not this directory.
    pub(crate) fn settings_dir(&self) -> PathBuf {
        self.socket_dir.join(SETTINGS_DIR)
    }

    /// Returns its own directories, in which it can write.
    pub(crate) fn dirs(&self) -> [&Path; 2] {
        [&self.state_dir, &self.home_dir]
    }

    /// Returns all its directories of the hive.
    pub(crate) fn own(&self) -> [&Path; 3] {
        [&self.socket_dir, &self.state_dir, &self.home_dir]
    }
}

/// Returns whether Linux cannot address a socket.
fn is_too_long(socket: &Path) -> bool {
    socket.as_os_str().len() > SOCKET_PATH_BYTES_MAX
}

/// Creates a directory for its owner only, if it is not there; answers with its real path.
fn directory(path: &Path, agents_write: &AgentsWrite) -> Result<PathBuf, UpError> {
    let found = HostPath::directory(path, agents_write);
    found
        .map(|found| found.path)
        .map_err(|source| UpError::Directory { path: path.to_path_buf(), source })
}

/// Returns the directories that agents can write in, as far as they are there.
fn agents_write(
    agents: &BTreeMap<AgentName, AgentConfig>,
    agents_dir: &Path,
    home: Option<&Path>,
) -> AgentsWrite {
    let mut all = AgentsWrite::default();
    all.add(agents_dir);
    let mut dirs: Vec<PathBuf> = Vec::new();
    for agent in agents.values() {
        dirs.extend(agent.state_dir.iter().chain(&agent.home_dir).cloned());
        dirs.extend(agent.sandbox.writable.iter().map(|dir| expand(dir, home)));
    }
    // A directory behind a link of an agent is not its own. So outer directories are added before
    // inner ones.
    dirs.sort_by_key(|dir| dir.components().count());
    let leads_over_link =
        |dir: &Path, all: &AgentsWrite| matches!(HostPath::find(dir, all), Err(WalkError::Link(_)));
    let mut added = Vec::new();
    for dir in &dirs {
        if !leads_over_link(dir, &all) {
            all.add(dir);
            added.push(dir);
        }
    }
    // Links of the operator's can make an inner one the first. Then the list may be wrong, and
    // everything that could be on it is.
    if added.into_iter().any(|dir| leads_over_link(dir, &all)) {
        dirs.iter().for_each(|dir| all.add(dir));
    }
    all
}

/// Makes a plan of a configuration, in a directory of its own; `h` is the directory of the hive.
#[cfg(test)]
pub(crate) fn planned(text: &str) -> (tempfile::TempDir, PathBuf, Plan) {
    let dir = tempfile::tempdir().expect("a directory");
    let root = dir.path().canonicalize().expect("a path");
    let plan = planned_in(&root, text);
    (dir, root, plan)
}

#[cfg(test)]
pub(crate) fn planned_in(dir: &Path, text: &str) -> Plan {
    let file = dir.join("hive.toml");
    std::fs::write(&file, text).expect("a file");
    Plan::make(&file, &dir.join("h")).expect("a plan")
}

#[cfg(test)]
mod tests;
