//! The values of a valid configuration.
//!
//! Invariant: `None` means that the file has no value, so the program's own default applies; this
//! module has no default directory.

use core::net::SocketAddr;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::backup::Backup;
use super::settings::Settings;
use super::traces::Traces;
use crate::action::Actions;
use crate::agent::KickOnStart;
use crate::heartbeat::Heartbeat;
use crate::isolation::Level;
use crate::limits::Limits;
use crate::name::AgentName;
use crate::secret::{Place, Secret};

/// A whole `hive.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `[hive]`: names and isolation.
    pub hive: Hive,
    /// `[broker]`: settings of the daemon.
    pub broker: Broker,
    /// `[operator]`: pronouns, notifications, and units whose journal agents may read.
    pub operator: Operator,
    /// `[claude]`: the start of claude.
    pub claude: Claude,
    /// `[actions.NAME]`: the commands that agents may ask to run, by name.
    pub actions: Actions,
    /// `[agents.NAME]`: all agents by name.
    pub agents: BTreeMap<AgentName, AgentConfig>,
}

/// The hive's name for qualified names in prompts, and the isolation of its agents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hive {
    /// Short name of the hive.
    pub name: Option<String>,
    /// Domain at the end of its agents' qualified names.
    pub domain: Option<String>,
    /// Swarm that it belongs to.
    pub swarm: Option<String>,
    /// Level of isolation of agents that state none; `None`: the strongest that works on this host.
    pub isolation: Option<Level>,
}

/// Settings of the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Directory of the database.
    pub state_dir: Option<PathBuf>,
    /// Directory of the sockets.
    pub runtime_dir: Option<PathBuf>,
    /// The group that may use the operator socket.
    pub socket_group: Option<String>,
    /// The unit of agents for which neither users nor a unit are named, with [`AGENT_IN_UNIT`] for
    /// the name of the agent.
    pub agent_unit: Option<String>,
    /// Retention of acked mail, in days.
    pub retention_days: u32,
    /// Backups that it makes by itself.
    pub backup: Option<Backup>,
    /// Where it offers its metrics; `None`: nowhere.
    pub metrics: Option<Metrics>,
    /// The collector to which it sends traces; `None`: none.
    pub traces: Option<Traces>,
    /// Limits of the broker.
    pub limits: Limits,
}

/// What stands for the name of the agent in `agent_unit`.
pub const AGENT_IN_UNIT: &str = "{name}";

/// Default of `retention_days`.
pub(super) const RETENTION_DAYS_DEFAULT: u32 = 30;

impl Default for Broker {
    fn default() -> Self {
        Self {
            state_dir: None,
            runtime_dir: None,
            socket_group: None,
            agent_unit: None,
            retention_days: RETENTION_DAYS_DEFAULT,
            backup: None,
            metrics: None,
            traces: None,
            limits: Limits::default(),
        }
    }
}

/// The place where a broker offers its metrics, over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metrics {
    /// A unix socket.
    Socket {
        /// The path of its file.
        path: PathBuf,
        /// The group that can read it beside the broker's user; `None`: the one that its directory
        /// hands down, or that of the operator's socket.
        group: Option<String>,
    },
    /// A port of loopback, which every local user can read.
    Listen(SocketAddr),
}

/// Settings of the operator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// The operator's pronouns in prompts, as `she/her`.
    pub pronouns: Option<String>,
    /// The method that delivers the operator outbox.
    pub notify: Option<Notify>,
    /// The units of the host whose journal agents may read, if their policy lets them: full names.
    pub journal_units: Vec<String>,
}

/// The method of notification about entries in the operator outbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notify {
    /// By a program: its name on PATH or its path, and its arguments. Never empty.
    Command(Vec<String>),
    /// By a POST to this http or https URL, which may hold a secret.
    Webhook(Secret),
}

/// The start of claude.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claude {
    /// The program: a name on PATH, or a path.
    pub command: String,
    /// Added to the environment of every agent's claude.
    pub env: BTreeMap<String, Secret>,
    /// Settings of every agent's harness; an agent's own table overrides them.
    pub settings: Settings,
    /// The windows of models, in tokens, by a part of their names in lower case.
    pub context_windows: BTreeMap<String, u64>,
    /// The name of our tools' server in claude, as in `mcp__hive__send`.
    pub mcp_server_name: String,
}

impl Default for Claude {
    fn default() -> Self {
        Self {
            command: "claude".to_owned(),
            env: BTreeMap::new(),
            settings: Settings::default(),
            context_windows: BTreeMap::new(),
            mcp_server_name: "hive".to_owned(),
        }
    }
}

/// One agent's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its parent; `None` for a root, whose parent is the operator.
    pub parent: Option<AgentName>,
    /// The agent's purpose.
    pub role: Option<String>,
    /// The model it runs on.
    pub model: Option<String>,
    /// Tool groups that its bridge offers, from [`crate::agent::TOOL_GROUPS`].
    pub tool_groups: Option<Vec<String>>,
    /// Names it may send to; `None`: all. Never empty.
    pub allowed_recipients: Option<Vec<String>>,
    /// Further rights, from [`crate::agent::CAPABILITIES`].
    pub capabilities: Option<Vec<String>>,
    /// What it may do without asking the operator.
    pub grants: Option<Vec<String>>,
    /// Limits that override those of the hive.
    pub limits: AgentLimits,
    /// User ids that may use its socket; if there are no [`Self::users`] either, the broker's own.
    pub uids: Vec<u32>,
    /// Names of users that may use its socket, too; not looked up.
    pub users: Vec<String>,
    /// The unit of systemd in which a program has to run to use its socket.
    pub unit: Option<String>,
    /// Its working directory.
    pub state_dir: Option<PathBuf>,
    /// Its home, where claude keeps sessions and login.
    pub home_dir: Option<PathBuf>,
    /// Added to its claude's environment, after `[claude].env`.
    pub env: BTreeMap<String, Secret>,
    /// Settings of its harness; those of `[claude]` apply to the rest.
    pub settings: Settings,
    /// When a new session of its harness notifies it to go on.
    pub kick_on_start: KickOnStart,
    /// Whether its harness runs on demand only.
    pub on_demand: bool,
    /// When it looks after its own work; `None`: never.
    pub heartbeat: Option<Heartbeat>,
    /// Models that it may be switched to; empty: any. A list contains [`AgentConfig::model`] if
    /// that is set.
    pub available_models: Vec<String>,
    /// Its own MCP servers, by their names.
    pub extra_mcp_servers: BTreeMap<String, ExtraMcpServer>,
    /// Plugins that its claude installs when its harness starts.
    pub plugins: Vec<String>,
    /// Marketplaces of the plugins; `None`: the official one.
    pub marketplaces: Option<Vec<String>>,
    /// The sandbox: its level, and the files in it besides the agent's own directories.
    pub sandbox: SandboxConfig,
}

/// The sandbox of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The level of isolation; `None`: that of [`Hive::isolation`].
    pub isolation: Option<Level>,
    /// Files, directories and sockets that it can read.
    pub readable: Vec<PathBuf>,
    /// Directories that it can write to.
    pub writable: Vec<PathBuf>,
    /// Device files that it can use.
    pub devices: Vec<PathBuf>,
    /// Whether its programs may create user namespaces.
    pub user_namespaces: bool,
}

impl SandboxConfig {
    /// Returns each list of paths with its key.
    #[must_use]
    pub fn paths(&self) -> [(&'static str, &[PathBuf]); 3] {
        [("readable", &self.readable), ("writable", &self.writable), ("devices", &self.devices)]
    }
}

impl AgentConfig {
    /// Returns the initial model: the configured one, else the first of the available ones.
    #[must_use]
    pub fn first_model(&self) -> Option<&str> {
        self.model.as_deref().or_else(|| self.available_models.first().map(String::as_str))
    }
}

/// An agent's own MCP server. `V` is a value of its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraMcpServer<V = Secret> {
    /// The program: a name on PATH, or a path.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Variables in addition to those that every program needs; it gets no others.
    pub env: BTreeMap<String, V>,
    /// Its tools that need no further permission, with `*` for any part of a name. Never empty.
    pub allowed_tools: Vec<String>,
    /// Maximum duration of a call of one of its tools, in seconds; a longer call ends with an
    /// error.
    pub timeout_seconds: u64,
}

/// Limits of one agent, each of which overrides that of [`Limits`] of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLimits {
    /// Maximum messages that it may send per minute.
    pub sends_per_minute_max: Option<u32>,
    /// Maximum bytes of unsettled bodies that it may have stored.
    pub sender_stored_bytes_max: Option<u64>,
    /// Maximum open questions that it may have asked.
    pub questions_open_max: Option<u32>,
    /// Maximum pending reminders.
    pub reminders_pending_max: Option<u32>,
    /// Maximum agents below it, for creating by a grant.
    pub children_max: Option<u32>,
    /// Maximum schedules of its own that have not ended.
    pub schedules_max: Option<u32>,
}

impl Config {
    /// Returns the level of isolation that the file states for an agent.
    #[must_use]
    pub fn isolation_of(&self, agent: Option<&AgentConfig>) -> Option<Level> {
        agent.and_then(|agent| agent.sandbox.isolation).or(self.hive.isolation)
    }

    /// Returns the settings of an agent's harness, as variables of `hive serve`.
    #[must_use]
    pub fn harness_variables(&self, agent: &AgentConfig) -> BTreeMap<&'static str, String> {
        agent.settings.variables(&self.claude.settings)
    }

    /// Resolves relative paths against `base`, the directory of the configuration file. A command
    /// without a `/` stays a name on PATH; a marketplace is a path only if it begins with `./` or
    /// `../`. A path of a sandbox that begins with `~/` stays, because only the caller knows the
    /// home.
    pub fn resolve_paths(&mut self, base: &Path) {
        let resolve = |path: &mut Option<PathBuf>| {
            if let Some(path) = path {
                *path = base.join(&*path);
            }
        };
        resolve(&mut self.broker.state_dir);
        resolve(&mut self.broker.runtime_dir);
        if let Some(backup) = &mut self.broker.backup {
            resolve(&mut backup.dir);
        }
        if let Some(Metrics::Socket { path, .. }) = &mut self.broker.metrics {
            *path = base.join(&*path);
        }
        self.claude.settings.resolve_paths(base);
        let mut programs = vec![&mut self.claude.command];
        let mut secrets: Vec<&mut Secret> = self.claude.env.values_mut().collect();
        secrets
            .extend(self.broker.traces.iter_mut().flat_map(|traces| traces.headers.values_mut()));
        match &mut self.operator.notify {
            Some(Notify::Command(command)) => programs.extend(command.first_mut()),
            Some(Notify::Webhook(url)) => secrets.push(url),
            None => {}
        }
        for action in self.actions.values_mut() {
            programs.extend(action.command.first_mut());
            programs.extend(action.preview.iter_mut().flat_map(|words| words.first_mut()));
        }
        for agent in self.agents.values_mut() {
            resolve(&mut agent.state_dir);
            resolve(&mut agent.home_dir);
            agent.settings.resolve_paths(base);
            secrets.extend(agent.env.values_mut());
            for server in agent.extra_mcp_servers.values_mut() {
                programs.push(&mut server.command);
                secrets.extend(server.env.values_mut());
            }
            let sandbox = &mut agent.sandbox;
            let granted = [&mut sandbox.readable, &mut sandbox.writable, &mut sandbox.devices]
                .into_iter()
                .flatten();
            for path in granted.filter(|path| !path.starts_with("~")) {
                *path = base.join(&*path);
            }
            // Other marketplaces are names of repositories, or URLs.
            let directories = agent.marketplaces.iter_mut().flatten();
            programs.extend(
                directories.filter(|source| source.starts_with("./") || source.starts_with("../")),
            );
        }
        for program in programs.into_iter().filter(|program| program.contains('/')) {
            *program = base.join(&*program).to_string_lossy().into_owned();
        }
        for place in secrets.into_iter().filter_map(Secret::place_mut) {
            if let Place::File(path) = place {
                *path = base.join(&*path);
            }
        }
    }
}
