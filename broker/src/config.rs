//! The configuration as the daemon uses it: the file, the overrides of the command line, and the
//! settings of the engine.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use hive_core::action::Actions;
use hive_core::agent::Policy;
use hive_core::config::{
    AgentConfig, AgentLimits, Backup, Broker, Config, ConfigError, Hive, Metrics, Notify, Operator,
    Traces,
};
use hive_core::heartbeat::Heartbeat;
use hive_core::isolation::Level;
use hive_core::limits::Limits;
use hive_core::name::AgentName;

use crate::engine::Identity;
use crate::engine::declared::Declared;
use crate::engine::operator::scheduled::Backups;
use crate::rpc::conn::Peers;
use crate::rpc::listen::Layout;

/// Why the configuration could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the host.
        #[source]
        source: std::io::Error,
    },
    /// The file is invalid.
    #[error("the configuration file {} is not right:\n{error}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The first problem in it.
        error: ConfigError,
    },
    /// The host has no such user.
    #[error(
        "the configuration names the user `{user}` for the agent {agent} (`users`), and this host has none of that name"
    )]
    NoSuchUser {
        /// The agent.
        agent: AgentName,
        /// The name.
        user: String,
    },
    /// The users of the host cannot be read.
    #[error("the user `{user}` of the agent {agent} cannot be looked up")]
    Users {
        /// The agent.
        agent: AgentName,
        /// The name.
        user: String,
        /// The error of the host.
        #[source]
        source: std::io::Error,
    },
}

/// The settings of the daemon.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The directory of the database.
    pub state_dir: PathBuf,
    /// The directory of the sockets.
    pub runtime_dir: PathBuf,
    /// The group of the operator's socket.
    pub socket_group: Option<String>,
    /// Retention of settled mail, in days.
    pub retention_days: u32,
    /// The backups that the broker makes by itself.
    pub backups: Option<Backups>,
    /// Whether a copy of the database is kept when it is migrated.
    pub keeps_copy: bool,
    /// The place where metrics are offered.
    pub metrics: Option<Metrics>,
    /// The collector of traces.
    pub traces: Option<Traces>,
    /// The limits of the hive.
    pub limits: Limits,
    /// The hive's name for itself.
    pub identity: Identity,
    /// The actions that agents may ask for.
    pub actions: Actions,
    /// The agents of the file; `None` without a file, so that nothing is retired.
    pub agents: Option<BTreeMap<AgentName, Declared>>,
    /// The heartbeats of the agents of the file.
    pub heartbeats: BTreeMap<AgentName, Heartbeat>,
    /// The peers that may use each agent's socket.
    pub peers: BTreeMap<AgentName, Peers>,
    /// The unit of agents without peers, with a place for the name.
    pub agent_unit: Option<String>,
    /// The agents' working directories that the file names.
    pub state_dirs: BTreeMap<AgentName, PathBuf>,
    /// The directory below which `hivectl up` puts the directories of all other agents.
    pub agents_dir: Option<PathBuf>,
    /// The directory below which the broker writes long reminders, in place of the state
    /// directories.
    pub reminders_dir: Option<PathBuf>,
    /// The method of notification about items in the operator outbox.
    pub notify: Option<Notify>,
}

/// Reads the file at `path`.
pub fn read(path: &Path) -> Result<Config, LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| LoadError::Read { path: path.to_path_buf(), source })?;
    let mut config = hive_core::config::parse(&text)
        .map_err(|error| LoadError::Invalid { path: path.to_path_buf(), error })?;
    let base = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    config.resolve_paths(&base.canonicalize().unwrap_or_else(|_| base.to_path_buf()));
    Ok(config)
}

/// Returns the settings of a command line and its file.
pub fn load(cli: &crate::cli::Cli) -> Result<Settings, LoadError> {
    let (config, is_file) = match &cli.config {
        Some(path) => (read(path)?, true),
        None => (Config::default(), false),
    };
    // Destructured, so that a new key is not forgotten here. The keys that only `hivectl up` and
    // the harness need are not used.
    let Config { hive, broker, operator, claude: _, actions, agents } = config;
    let Hive { name, domain, swarm, isolation } = hive;
    let Broker {
        state_dir: broker_dir,
        runtime_dir,
        socket_group,
        agent_unit,
        retention_days,
        backup,
        metrics,
        traces,
        mut limits,
    } = broker;
    if let Some(max) = cli.reminders_pending_max {
        limits.reminders_pending_max = max;
    }
    let Operator { pronouns, notify, journal_units } = operator;
    let agents_dir =
        cli.agents_dir.as_ref().map(|dir| dir.canonicalize().unwrap_or_else(|_| dir.clone()));
    let agents_write = agents_write(agents.values(), agents_dir.as_deref());
    let state_dir = |agent: &AgentConfig| {
        Some(without_operators_links(agent.state_dir.as_ref()?, &agents_write))
    };
    let state_dirs =
        agents.iter().filter_map(|(name, agent)| Some((name.clone(), state_dir(agent)?))).collect();
    let peers = agents
        .iter()
        .map(|(name, agent)| Ok((name.clone(), peers(name, agent)?)))
        .collect::<Result<_, LoadError>>()?;
    let heartbeats = agents
        .iter()
        .filter_map(|(name, agent)| Some((name.clone(), agent.heartbeat.clone()?)))
        .collect();
    let declared = agents.into_iter().map(|(name, agent)| (name, declared(agent))).collect();
    let state_dir =
        cli.state_dir.clone().or(broker_dir).unwrap_or_else(|| PathBuf::from("/var/lib/hive"));
    let backups = backup.map(|Backup { every, keep, dir }| Backups {
        every,
        keep,
        dir: dir.unwrap_or_else(|| state_dir.join("backups")),
    });
    Ok(Settings {
        state_dir,
        runtime_dir: cli
            .runtime_dir
            .clone()
            .or(runtime_dir)
            .unwrap_or_else(|| PathBuf::from("/run/hive")),
        socket_group,
        retention_days,
        backups,
        keeps_copy: !cli.migrate_without_copy,
        metrics,
        traces,
        limits,
        identity: Identity {
            hive_name: name.unwrap_or_default(),
            hive_domain: domain.unwrap_or_default(),
            swarm_name: swarm.unwrap_or_default(),
            operator_pronouns: pronouns.unwrap_or_default(),
            isolation_accepted: isolation == Some(Level::None),
            journal_units,
        },
        actions,
        agents: is_file.then_some(declared),
        heartbeats,
        peers,
        agent_unit,
        state_dirs,
        agents_dir,
        reminders_dir: cli.reminders_dir.clone(),
        notify,
    })
}

/// Returns the existing directories that agents can write in, with links resolved.
fn agents_write<'a>(
    agents: impl Iterator<Item = &'a AgentConfig>,
    agents_dir: Option<&Path>,
) -> HashSet<PathBuf> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let named = agents.flat_map(|agent| {
        agent.state_dir.iter().chain(&agent.home_dir).chain(&agent.sandbox.writable)
    });
    let named = named
        .map(|dir| dir.strip_prefix("~").map_or_else(|_| dir.clone(), |below| home.join(below)));
    named
        .chain(agents_dir.map(Path::to_path_buf))
        .filter_map(|dir| dir.canonicalize().ok())
        .collect()
}

/// Returns the same directory with the operator's links resolved: those outside the directories
/// that agents can write in. A link inside may be an agent's, so it stays in the path, and is not
/// followed when a reminder is written.
fn without_operators_links(dir: &Path, agents_write: &HashSet<PathBuf>) -> PathBuf {
    let mut from_the_root: Vec<&Path> = dir.ancestors().collect();
    from_the_root.reverse();
    // Looked up from the path upwards: there may be as many such directories as agents.
    let is_operators = |real: &PathBuf| !real.ancestors().any(|above| agents_write.contains(above));
    let real = from_the_root.iter().map_while(|above| {
        above.canonicalize().ok().filter(is_operators).map(|real| (*above, real))
    });
    match real.last() {
        Some((above, real)) => real.join(dir.strip_prefix(above).unwrap_or(dir)),
        None => dir.to_path_buf(),
    }
}

/// Returns the peers that may use an agent's socket, users by number.
fn peers(name: &AgentName, agent: &AgentConfig) -> Result<Peers, LoadError> {
    let mut uids = agent.uids.clone();
    for user in &agent.users {
        let named = || (name.clone(), user.clone());
        match nix::unistd::User::from_name(user) {
            Ok(Some(found)) => uids.push(found.uid.as_raw()),
            Ok(None) => {
                let (agent, user) = named();
                return Err(LoadError::NoSuchUser { agent, user });
            }
            Err(errno) => {
                let (agent, user) = named();
                return Err(LoadError::Users { agent, user, source: errno.into() });
            }
        }
    }
    Ok(Peers { uids, unit: agent.unit.clone() })
}

fn declared(agent: AgentConfig) -> Declared {
    let default = Policy::default();
    let AgentLimits {
        sends_per_minute_max,
        sender_stored_bytes_max,
        questions_open_max,
        reminders_pending_max,
        children_max,
        schedules_max,
    } = agent.limits;
    let model = agent.first_model().unwrap_or_default().to_owned();
    Declared {
        parent: agent.parent,
        role: agent.role.unwrap_or_default(),
        model,
        available_models: agent.available_models,
        kick_on_start: agent.kick_on_start,
        on_demand: agent.on_demand,
        policy: Policy {
            tool_groups: agent.tool_groups.unwrap_or(default.tool_groups),
            allowed_recipients: agent.allowed_recipients.unwrap_or_default(),
            capabilities: agent.capabilities.unwrap_or_default(),
            sends_per_minute_max,
            sender_stored_bytes_max,
            questions_open_max,
            reminders_pending_max,
            grants: agent.grants.unwrap_or_default(),
            children_max,
            schedules_max,
        },
    }
}

impl Settings {
    /// Returns the layout of the sockets.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout {
            runtime_dir: self.runtime_dir.clone(),
            socket_group: self.socket_group.clone(),
            peers: self.peers.clone(),
            agent_unit: self.agent_unit.clone(),
        }
    }
}
