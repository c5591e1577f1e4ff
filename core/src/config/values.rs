//! The values of a configuration: what a program works with after the file was found valid.
//!
//! Invariant: `None` means that the file says nothing, so that the program's own default applies;
//! no default directory is made up here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::settings::Settings;
use crate::agent::KickOnStart;
use crate::isolation::Level;
use crate::limits::Limits;
use crate::name::AgentName;

/// A whole `hive.toml`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `[hive]`: how the hive is called.
    pub hive: Hive,
    /// `[broker]`: how the daemon runs.
    pub broker: Broker,
    /// `[operator]`: who is in charge.
    pub operator: Operator,
    /// `[claude]`: how claude is started.
    pub claude: Claude,
    /// `[agents.NAME]`: who lives here.
    pub agents: BTreeMap<AgentName, AgentConfig>,
}

/// What the hive is called, for qualified names in prompts, and how it keeps its agents apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hive {
    /// Its name.
    pub name: Option<String>,
    /// The domain its agents' qualified names end with.
    pub domain: Option<String>,
    /// The swarm it belongs to.
    pub swarm: Option<String>,
    /// The level of isolation of agents that state none of their own; `None`: the best that works
    /// here.
    pub isolation: Option<Level>,
}

/// How the daemon runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broker {
    /// Where the database is.
    pub state_dir: Option<PathBuf>,
    /// Where the sockets are.
    pub runtime_dir: Option<PathBuf>,
    /// The group that may use the operator socket.
    pub socket_group: Option<String>,
    /// How long acked mail is kept, in days.
    pub retention_days: u32,
    /// The bounds in force.
    pub limits: Limits,
}

/// Days that acked mail is kept, where the file says nothing else.
pub(super) const RETENTION_DAYS_DEFAULT: u32 = 30;

impl Default for Broker {
    fn default() -> Self {
        Self {
            state_dir: None,
            runtime_dir: None,
            socket_group: None,
            retention_days: RETENTION_DAYS_DEFAULT,
            limits: Limits::default(),
        }
    }
}

/// Who is in charge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Operator {
    /// How prompts speak of the operator, as `she/her`.
    pub pronouns: Option<String>,
    /// What runs when something starts to wait on the operator.
    pub notify: Option<Notify>,
}

/// How the operator is told that something waits on them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notify {
    /// By a program: its name on PATH or its path, and its arguments. Never empty.
    Command(Vec<String>),
    /// By a POST to this http or https URL.
    Webhook(String),
}

/// How claude is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claude {
    /// The program: a name on PATH, or a path.
    pub command: String,
    /// Added to the environment of every agent's claude.
    pub env: BTreeMap<String, String>,
    /// Settings of every agent's harness, where an agent's own table does not have them.
    pub settings: Settings,
    /// The windows of models, in tokens, by a part of their names in lower case.
    pub context_windows: BTreeMap<String, u64>,
    /// The name under which claude knows our tools, as in `mcp__hive__send`.
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

/// One agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentConfig {
    /// Its parent; `None` for a root, whose parent is the operator.
    pub parent: Option<AgentName>,
    /// What it is for.
    pub role: Option<String>,
    /// The model it runs on.
    pub model: Option<String>,
    /// Tool groups that its bridge offers; every one is of [`crate::agent::TOOL_GROUPS`].
    pub tool_groups: Option<Vec<String>>,
    /// Names it may send to; `None`: everyone. Never empty.
    pub allowed_recipients: Option<Vec<String>>,
    /// Further rights; every one is of [`crate::agent::CAPABILITIES`].
    pub capabilities: Option<Vec<String>>,
    /// Bounds of its own.
    pub limits: AgentLimits,
    /// User ids that may use its socket; empty: the broker's own.
    pub uids: Vec<u32>,
    /// Its working directory.
    pub state_dir: Option<PathBuf>,
    /// Its home, where claude keeps sessions and login.
    pub home_dir: Option<PathBuf>,
    /// Added to its claude's environment, after `[claude].env`.
    pub env: BTreeMap<String, String>,
    /// Settings of its harness; what is not there holds as `[claude]` has it.
    pub settings: Settings,
    /// When a new session of its harness notifies it to go on.
    pub kick_on_start: KickOnStart,
    /// Models that it may be switched to; empty: any. With a [`AgentConfig::model`] there it is one
    /// of them.
    pub available_models: Vec<String>,
    /// Its MCP servers besides Hive's own, by their names.
    pub extra_mcp_servers: BTreeMap<String, ExtraMcpServer>,
    /// Plugins that its claude installs when its harness starts.
    pub plugins: Vec<String>,
    /// Where plugins come from; `None`: the official marketplace.
    pub marketplaces: Option<Vec<String>>,
    /// What its sandbox is, and what is in it besides its own directories.
    pub sandbox: SandboxConfig,
}

/// The sandbox of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The level of isolation; `None`: that of [`Hive::isolation`].
    pub isolation: Option<Level>,
    /// Files, directories and sockets that it can read.
    pub readable: Vec<PathBuf>,
    /// Directories that it can write in.
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
    /// The model that it begins with: the one that was chosen, else the first of those that it may
    /// have.
    #[must_use]
    pub fn first_model(&self) -> Option<&str> {
        self.model.as_deref().or_else(|| self.available_models.first().map(String::as_str))
    }
}

/// An MCP server besides Hive's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtraMcpServer {
    /// The program: a name on PATH, or a path.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Its environment, besides what every program needs; it gets nothing else.
    pub env: BTreeMap<String, String>,
    /// Tools of it that need no further permission, with `*` for any part of a name. Never empty.
    pub allowed_tools: Vec<String>,
    /// How long a call of one of its tools may take; then it ends with an error.
    pub timeout_seconds: u64,
}

/// Bounds of one agent, each in place of that of [`Limits`] of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgentLimits {
    /// What it may send per minute.
    pub sends_per_minute_max: Option<u32>,
    /// Most bytes of unsettled bodies that it may have stored.
    pub sender_stored_bytes_max: Option<u64>,
    /// Most open questions that it may have asked.
    pub questions_open_max: Option<u32>,
    /// Most pending reminders that it may have.
    pub reminders_pending_max: Option<u32>,
}

impl Config {
    /// Returns the level of isolation that the file states for an agent.
    #[must_use]
    pub fn isolation_of(&self, agent: Option<&AgentConfig>) -> Option<Level> {
        agent.and_then(|agent| agent.sandbox.isolation).or(self.hive.isolation)
    }

    /// The settings of an agent's harness, as variables of `hive serve`.
    #[must_use]
    pub fn harness_variables(&self, agent: &AgentConfig) -> BTreeMap<&'static str, String> {
        agent.settings.variables(&self.claude.settings)
    }

    /// Makes every relative path one below `base`, the directory of the configuration file. A
    /// command without a `/` stays a name on PATH, and a marketplace is a path only if it begins
    /// with `./` or `../`. A path of a sandbox that begins with `~/` stays: the caller knows the
    /// home.
    pub fn resolve_paths(&mut self, base: &Path) {
        let resolve = |path: &mut Option<PathBuf>| {
            if let Some(path) = path {
                *path = base.join(&*path);
            }
        };
        resolve(&mut self.broker.state_dir);
        resolve(&mut self.broker.runtime_dir);
        self.claude.settings.resolve_paths(base);
        let mut programs = vec![&mut self.claude.command];
        if let Some(Notify::Command(command)) = &mut self.operator.notify {
            programs.extend(command.first_mut());
        }
        for agent in self.agents.values_mut() {
            resolve(&mut agent.state_dir);
            resolve(&mut agent.home_dir);
            agent.settings.resolve_paths(base);
            programs.extend(agent.extra_mcp_servers.values_mut().map(|server| &mut server.command));
            let sandbox = &mut agent.sandbox;
            let granted = [&mut sandbox.readable, &mut sandbox.writable, &mut sandbox.devices]
                .into_iter()
                .flatten();
            for path in granted.filter(|path| !path.starts_with("~")) {
                *path = base.join(&*path);
            }
            // Others are names of repositories, or URLs.
            let directories = agent.marketplaces.iter_mut().flatten();
            programs.extend(
                directories.filter(|source| source.starts_with("./") || source.starts_with("../")),
            );
        }
        for program in programs.into_iter().filter(|program| program.contains('/')) {
            *program = base.join(&*program).to_string_lossy().into_owned();
        }
    }
}
