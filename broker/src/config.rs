//! The configuration as the daemon uses it: the file, what the command line overrides, and what the engine is told of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hive_core::agent::Policy;
use hive_core::config::{AgentConfig, Broker, Config, ConfigError, Hive, Operator};
use hive_core::limits::Limits;
use hive_core::name::AgentName;

use crate::engine::Identity;
use crate::engine::declare::Declared;
use crate::rpc::listen::Layout;

/// Why there is no configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("the configuration file {} cannot be read", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the host said.
        #[source]
        source: std::io::Error,
    },
    /// It is not right.
    #[error("the configuration file {} is not right:\n{error}", .path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: ConfigError,
    },
}

/// What the daemon is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Where the database lies.
    pub state_dir: PathBuf,
    /// Where the sockets lie.
    pub runtime_dir: PathBuf,
    /// The group of the operator's socket.
    pub socket_group: Option<String>,
    /// How long settled mail is kept, in days.
    pub retention_days: u32,
    /// Every bound.
    pub limits: Limits,
    /// What the hive calls itself.
    pub identity: Identity,
    /// The agents of the file; `None` without a file, so that nothing is retired.
    pub agents: Option<BTreeMap<AgentName, Declared>>,
    /// Who may use which agent's socket.
    pub uids: BTreeMap<AgentName, Vec<u32>>,
}

/// Reads the file at `path`.
pub fn read(path: &Path) -> Result<Config, LoadError> {
    let text = std::fs::read_to_string(path).map_err(|source| LoadError::Read { path: path.to_path_buf(), source })?;
    let mut config = hive_core::config::parse(&text).map_err(|error| LoadError::Invalid { path: path.to_path_buf(), error })?;
    let base = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    config.resolve_paths(&base.canonicalize().unwrap_or_else(|_| base.to_path_buf()));
    Ok(config)
}

/// The settings of a command line and its file.
pub fn load(cli: &crate::cli::Cli) -> Result<Settings, LoadError> {
    let (config, is_file) = match &cli.config {
        Some(path) => (read(path)?, true),
        None => (Config::default(), false),
    };
    // Destructured, so that a new key is not forgotten here. What only `hivectl up` and the harness need is theirs.
    let Config { hive, broker, operator, claude: _, agents } = config;
    let Hive { name, domain, swarm } = hive;
    let Broker { state_dir, runtime_dir, socket_group, retention_days, limits } = broker;
    let Operator { pronouns } = operator;
    let uids = agents.iter().map(|(name, agent)| (name.clone(), agent.uids.clone())).collect();
    let declared = agents.into_iter().map(|(name, agent)| (name, declared(agent))).collect();
    Ok(Settings {
        state_dir: cli.state_dir.clone().or(state_dir).unwrap_or_else(|| PathBuf::from("/var/lib/hive")),
        runtime_dir: cli.runtime_dir.clone().or(runtime_dir).unwrap_or_else(|| PathBuf::from("/run/hive")),
        socket_group,
        retention_days,
        limits,
        identity: Identity {
            hive_name: name.unwrap_or_default(),
            hive_domain: domain.unwrap_or_default(),
            swarm_name: swarm.unwrap_or_default(),
            operator_pronouns: pronouns.unwrap_or_default(),
        },
        agents: is_file.then_some(declared),
        uids,
    })
}

fn declared(agent: AgentConfig) -> Declared {
    let default = Policy::default();
    Declared {
        parent: agent.parent,
        role: agent.role.unwrap_or_default(),
        model: agent.model.unwrap_or_default(),
        policy: Policy {
            tool_groups: agent.tool_groups.unwrap_or(default.tool_groups),
            allowed_recipients: agent.allowed_recipients.unwrap_or_default(),
            capabilities: agent.capabilities.unwrap_or_default(),
        },
    }
}

impl Settings {
    /// How sockets are made.
    #[must_use]
    pub fn layout(&self) -> Layout {
        Layout { runtime_dir: self.runtime_dir.clone(), socket_group: self.socket_group.clone(), uids: self.uids.clone() }
    }
}
