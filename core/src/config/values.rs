//! The values of a configuration: what a program works with after the file was found valid.
//!
//! Invariant: `None` means that the file says nothing, so that the program's own default applies; no default directory is made up here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::agent::KickOnStart;
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

/// How the hive is called; used for qualified names in prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hive {
    /// Its name.
    pub name: Option<String>,
    /// The domain its agents' qualified names end with.
    pub domain: Option<String>,
    /// The swarm it belongs to.
    pub swarm: Option<String>,
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

/// How claude's process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessMode {
    /// A process for each turn.
    PerTurn,
    /// One process for many turns.
    Resident,
}

impl ProcessMode {
    /// The word of the file, and of `HIVE_PROCESS`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::PerTurn => "per-turn",
            Self::Resident => "resident",
        }
    }
}

/// How claude is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claude {
    /// The program: a name on PATH, or a path.
    pub command: String,
    /// Added to the environment of every agent's claude.
    pub env: BTreeMap<String, String>,
    /// How claude's process lives, where an agent's own table does not say it.
    pub process: Option<ProcessMode>,
    /// How often claude repeats a failed API call by itself; `None`: the harness' default.
    pub max_retries: Option<u32>,
    /// The name under which claude knows our tools, as in `mcp__hive__send`.
    pub mcp_server_name: String,
}

impl Default for Claude {
    fn default() -> Self {
        Self {
            command: "claude".to_owned(),
            env: BTreeMap::new(),
            process: None,
            max_retries: None,
            mcp_server_name: "hive".to_owned(),
        }
    }
}

/// One agent.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// The size of its model's window, where claude does not tell.
    pub context_window_tokens: Option<u64>,
    /// How its claude's process lives; `None`: as `[claude]` says.
    pub process: Option<ProcessMode>,
    /// Whether its conversation is compacted before the window is full.
    pub auto_compact: bool,
    /// When it is told, at a new session of its harness, to go on.
    pub kick_on_start: KickOnStart,
    /// Models that it may be switched to; empty: any. With a [`AgentConfig::model`] there it is one of them.
    pub available_models: Vec<String>,
    /// Its MCP servers besides Hive's own, by their names.
    pub extra_mcp_servers: BTreeMap<String, ExtraMcpServer>,
    /// Plugins that its claude installs when its harness starts.
    pub plugins: Vec<String>,
    /// Where plugins come from; `None`: the official marketplace.
    pub marketplaces: Option<Vec<String>>,
    /// Whether the marketplaces are read anew before plugins are installed.
    pub plugins_auto_update: bool,
    /// Whether cargo in its shell tells errors and warnings in short.
    pub cargo_short_messages: bool,
}

impl AgentConfig {
    /// The model that it begins with: the one that was chosen, else the first of those that it may have.
    #[must_use]
    pub fn first_model(&self) -> Option<&str> {
        self.model.as_deref().or_else(|| self.available_models.first().map(String::as_str))
    }
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            parent: None,
            role: None,
            model: None,
            tool_groups: None,
            allowed_recipients: None,
            capabilities: None,
            limits: AgentLimits::default(),
            uids: Vec::new(),
            state_dir: None,
            home_dir: None,
            env: BTreeMap::new(),
            context_window_tokens: None,
            process: None,
            auto_compact: true,
            kick_on_start: KickOnStart::default(),
            available_models: Vec::new(),
            extra_mcp_servers: BTreeMap::new(),
            plugins: Vec::new(),
            marketplaces: None,
            plugins_auto_update: false,
            cargo_short_messages: true,
        }
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
    /// Makes every relative path one below `base`, the directory of the configuration file. A command without a `/` stays a name on PATH, and
    /// a marketplace is a path only if it begins with `./` or `../`.
    pub fn resolve_paths(&mut self, base: &Path) {
        let resolve = |path: &mut Option<PathBuf>| {
            if let Some(path) = path {
                *path = base.join(&*path);
            }
        };
        resolve(&mut self.broker.state_dir);
        resolve(&mut self.broker.runtime_dir);
        let mut programs = vec![&mut self.claude.command];
        if let Some(Notify::Command(command)) = &mut self.operator.notify {
            programs.extend(command.first_mut());
        }
        for agent in self.agents.values_mut() {
            resolve(&mut agent.state_dir);
            resolve(&mut agent.home_dir);
            programs.extend(agent.extra_mcp_servers.values_mut().map(|server| &mut server.command));
            // Others are names of repositories, or URLs.
            let directories = agent.marketplaces.iter_mut().flatten();
            programs.extend(directories.filter(|source| source.starts_with("./") || source.starts_with("../")));
        }
        for program in programs.into_iter().filter(|program| program.contains('/')) {
            *program = base.join(&*program).to_string_lossy().into_owned();
        }
    }
}
