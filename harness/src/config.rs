//! The harness's settings, checked once.
//!
//! Invariant: a [`Config`] that exists can be worked with: its directories are there, its numbers make sense.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hive_core::config::{BASH_SERVER, ExtraMcpServer, is_server_name};

use crate::boot::extra_servers::{self, InvalidExtraServers};
use crate::cli::{ConversationArgs, ProcessArgs, ServeArgs};
use crate::plugins::{InvalidList, Plan};
use crate::task::{InvalidSettings, Settings};
use crate::turn::context::Watermarks;

/// Settings of `hive serve`.
#[derive(Clone, Debug)]
pub struct Config {
    /// The agent's socket.
    pub socket: PathBuf,
    /// claude's working directory; absolute.
    pub state_dir: PathBuf,
    /// claude's HOME; absolute.
    pub home_dir: PathBuf,
    /// Where the files for claude are written; absolute.
    pub run_dir: PathBuf,
    /// The claude program, as given.
    pub claude: PathBuf,
    /// The bridge, where one was named.
    pub mcp: Option<PathBuf>,
    /// Name of our MCP server.
    pub mcp_server_name: String,
    /// The agent's name until the broker has told it.
    pub label: String,
    /// The model, where the broker names none.
    pub default_model: String,
    /// Pronouns of the operator, where the broker names none.
    pub operator_pronouns: String,
    /// Further environment of claude.
    pub claude_env: BTreeMap<String, String>,
    /// claude's own retries.
    pub claude_max_retries: u32,
    /// Whether to take over from a harness that is attached.
    pub take_over: bool,
    /// How often to send a sign of life.
    pub heartbeat: Duration,
    /// Spans that the turn machine works with.
    pub spans: Spans,
    /// When the conversation is compacted or begun anew.
    pub watermarks: Watermarks,
    /// A system prompt in place of the built-in one.
    pub system_prompt: Option<PathBuf>,
    /// How claude is run.
    pub process: ProcessArgs,
    /// The agent's own MCP servers.
    pub extra_servers: BTreeMap<String, ExtraMcpServer>,
    /// Plugins to install at the start.
    pub plugins: Plan,
    /// Settings of shell tasks.
    pub tasks: Settings,
}

/// Spans that the turn machine works with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// Longest silence of a turn; `None`: any.
    pub turn_idle: Option<Duration>,
    /// Longest turn; `None`: any.
    pub turn_max: Option<Duration>,
    /// Rest at a rate limit that does not say when it ends; `None`: the broker decides.
    pub rate_limit_sleep: Option<Duration>,
    /// How long a running turn may go on while draining.
    pub drain_grace: Duration,
    /// How long claude has to obey a signal.
    pub kill_grace: Duration,
}

/// Why the settings cannot be worked with.
#[derive(Debug, thiserror::Error)]
pub enum InvalidConfig {
    /// A directory is not there.
    #[error("{what} {} is no directory: create it, or name another with {variable}", .path.display())]
    NoDirectory {
        /// Which one.
        what: &'static str,
        /// Where it should be.
        path: PathBuf,
        /// How to name another.
        variable: &'static str,
    },
    /// Nothing names claude's HOME.
    #[error("neither HIVE_HOME_DIR nor HOME is set: one of them has to name claude's home directory")]
    NoHome,
    /// The MCP server's name would not make good tool names.
    #[error("HIVE_MCP_SERVER_NAME `{0}` must be 1 to 32 letters, digits, `-` or single `_`, and not `bash`")]
    ServerName(String),
    /// The further environment is no object of strings.
    #[error("HIVE_CLAUDE_ENV must be a JSON object whose values are strings: {0}")]
    ClaudeEnv(String),
    /// The agent's own MCP servers.
    #[error(transparent)]
    ExtraServers(#[from] InvalidExtraServers),
    /// Plugins or marketplaces.
    #[error(transparent)]
    Plugins(#[from] InvalidList),
    /// Shell tasks.
    #[error(transparent)]
    Tasks(#[from] InvalidSettings),
    /// Signs of life would never be sent.
    #[error("HIVE_HEARTBEAT_SECS must be 1 to 30: the broker gives a silent harness's turn back")]
    Heartbeat,
}

impl Config {
    /// Checks the arguments.
    pub fn new(args: ServeArgs, home: Option<PathBuf>) -> Result<Self, InvalidConfig> {
        let ServeArgs {
            take_over,
            socket,
            state_dir,
            home_dir,
            run_dir,
            claude,
            mcp,
            mcp_server_name,
            label,
            default_model,
            operator_pronouns,
            claude_env,
            claude_max_retries,
            turn_idle_timeout_secs,
            turn_max_secs,
            rate_limit_sleep_secs,
            drain_grace_secs,
            heartbeat_secs,
            kill_grace_ms,
            conversation,
            process,
            extras,
            tasks,
        } = args;
        let state_dir = directory("the state directory", &state_dir, "HIVE_STATE_DIR")?;
        let home_dir = home_dir.or(home).ok_or(InvalidConfig::NoHome)?;
        let home_dir = directory("claude's home directory", &home_dir, "HIVE_HOME_DIR")?;
        let run_dir = run_dir.map_or_else(|| home_dir.join(".hive"), |dir| std::path::absolute(&dir).unwrap_or(dir));
        if !is_server_name(&mcp_server_name) || mcp_server_name == BASH_SERVER {
            return Err(InvalidConfig::ServerName(mcp_server_name));
        }
        if !(1..=30).contains(&heartbeat_secs) {
            return Err(InvalidConfig::Heartbeat);
        }
        let read = |path: &PathBuf| extra_servers::read(path, &mcp_server_name);
        let extra_servers = extras.extra_mcp.as_ref().map(read).transpose()?.unwrap_or_default();
        let claude_env = serde_json::from_str(&claude_env).map_err(|error| InvalidConfig::ClaudeEnv(error.to_string()))?;
        let some_secs = |secs: u64| (secs > 0).then(|| Duration::from_secs(secs));
        Ok(Self {
            socket,
            state_dir,
            home_dir,
            run_dir,
            claude,
            mcp,
            mcp_server_name,
            label,
            default_model,
            operator_pronouns,
            claude_env,
            claude_max_retries,
            take_over,
            heartbeat: Duration::from_secs(heartbeat_secs),
            spans: Spans {
                turn_idle: some_secs(turn_idle_timeout_secs),
                turn_max: some_secs(turn_max_secs),
                rate_limit_sleep: rate_limit_sleep_secs.map(Duration::from_secs),
                drain_grace: Duration::from_secs(drain_grace_secs),
                kill_grace: Duration::from_millis(kill_grace_ms),
            },
            watermarks: watermarks(&conversation, std::env::vars()),
            system_prompt: conversation.system_prompt.map(|path| std::path::absolute(&path).unwrap_or(path)),
            process,
            extra_servers,
            plugins: Plan::new(&extras)?,
            tasks: Settings::new(&tasks)?,
        })
    }
}

/// The watermarks; the windows of models by name come from `HIVE_CONTEXT_WINDOW_TOKENS_KEY`.
fn watermarks(args: &ConversationArgs, variables: impl Iterator<Item = (String, String)>) -> Watermarks {
    let windows = variables.filter_map(|(name, value)| {
        let key = name.strip_prefix("HIVE_CONTEXT_WINDOW_TOKENS_")?.to_lowercase();
        Some((key, value.parse().ok()?)).filter(|(key, _)| !key.is_empty())
    });
    let mut windows_by_model: Vec<(String, u64)> = windows.collect();
    // The longest name says most; between equals the order must not depend on the environment's.
    windows_by_model.sort_by(|(left, _), (right, _)| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
    Watermarks {
        compact: if args.auto_compact { args.compact_watermark_tokens } else { Some(0) },
        reset: args.auto_reset_watermark_tokens,
        cache_ttl: Duration::from_secs(args.cache_ttl_secs),
        reset_checkpoint: args.auto_reset_checkpoint,
        window: args.context_window_tokens.filter(|tokens| *tokens > 0),
        windows_by_model,
    }
}

/// The real path, because claude files its sessions under the real path of its working directory.
fn directory(what: &'static str, path: &Path, variable: &'static str) -> Result<PathBuf, InvalidConfig> {
    let missing = || InvalidConfig::NoDirectory { what, path: path.to_path_buf(), variable };
    let real = path.canonicalize().map_err(|_| missing())?;
    if real.is_dir() { Ok(real) } else { Err(missing()) }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::{Cli, Command};

    fn args(more: &[&str]) -> ServeArgs {
        let all = ["hive", "serve"].iter().chain(more);
        match Cli::try_parse_from(all).expect("parses").command {
            Command::Serve(args) => *args,
            Command::Wake(_) | Command::Publish(_) | Command::Mcp(_) | Command::Scrub(_) => unreachable!("serve was asked for"),
        }
    }

    #[test]
    fn a_missing_directory_is_named_with_its_variable() {
        let error = Config::new(args(&["--state-dir", "/no/such/dir"]), None).expect_err("refused");
        assert!(error.to_string().contains("/no/such/dir") && error.to_string().contains("HIVE_STATE_DIR"), "{error}");
    }

    #[test]
    fn zero_switches_the_watchdogs_off_and_nonsense_is_refused() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().to_str().expect("plain path");
        let given = |more: &[&str]| {
            let mut all = vec!["--state-dir", path, "--home-dir", path];
            all.extend_from_slice(more);
            Config::new(args(&all), None)
        };
        let config = given(&["--turn-idle-timeout-secs", "0"]).expect("valid");
        assert_eq!((config.spans.turn_idle, config.spans.turn_max), (None, None));
        assert!(config.run_dir.ends_with(".hive"));
        assert!(given(&["--mcp-server-name", "a__b"]).is_err());
        assert!(given(&["--claude-env", "{\"A\":1}"]).is_err());
        assert!(given(&["--heartbeat-secs", "0"]).is_err());
    }
}
