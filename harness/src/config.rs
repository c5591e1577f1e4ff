//! The harness's settings, checked once.
//!
//! Invariant: a [`Config`] that exists is usable: its directories exist, and its numbers are
//! consistent.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hive_core::config::{BASH_SERVER, ExtraMcpServer, OWN_PREFIX, is_server_name};
use hive_core::secret::{Secret, SecretError};
use jiff::tz::TimeZone;

use crate::boot::extra_servers::{self, InvalidExtraServers};
use crate::cli::{ConversationArgs, ProcessArgs, ServeArgs};
use crate::isolation::Isolation;
use crate::plugins::{InvalidList, Plan};
use crate::secrets;
use crate::task::{InvalidSettings, Settings};
use crate::tool_groups::{Narrowing, UnknownGroup};
use crate::turn::context::Watermarks;
use crate::turn::reset_rule::ResetRule;
use crate::turn::windows::{Parts, Windows};

/// Settings of `hive serve`.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub socket: PathBuf,
    /// claude's working directory; absolute.
    pub state_dir: PathBuf,
    /// claude's HOME; absolute.
    pub home_dir: PathBuf,
    /// Directory of the files for claude; absolute.
    pub run_dir: PathBuf,
    /// The claude program, not resolved.
    pub claude: PathBuf,
    /// The bridge, if one was named.
    pub mcp: Option<PathBuf>,
    pub mcp_server_name: String,
    /// The agent's name until the broker reports it.
    pub label: String,
    /// The model, if the broker names none.
    pub default_model: String,
    /// Pronouns of the operator, if the broker names none.
    pub operator_pronouns: String,
    /// Additional environment of claude.
    pub claude_env: BTreeMap<String, String>,
    /// Maximum retries of claude itself.
    pub claude_max_retries: u32,
    /// Whether to take over from a harness that is attached.
    pub take_over: bool,
    /// Interval of signs of life.
    pub heartbeat: Duration,
    /// Durations of the turn machine.
    pub spans: Spans,
    /// When the conversation is compacted or replaced.
    pub watermarks: Watermarks,
    /// A system prompt in place of the built-in one.
    pub system_prompt: Option<PathBuf>,
    /// Options of the claude process.
    pub process: ProcessArgs,
    /// The tool groups to which the policy's are narrowed.
    pub tool_groups: Narrowing,
    pub extra_servers: BTreeMap<String, ExtraMcpServer<String>>,
    /// Plugins to install at the start.
    pub plugins: Plan,
    pub tasks: Settings,
    /// The isolation of the agent; `None`: it has none.
    pub isolation: Option<Arc<Isolation>>,
}

/// Durations of the turn machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// Longest silence of a turn; `None`: no limit.
    pub turn_idle: Option<Duration>,
    /// Longest turn; `None`: no limit.
    pub turn_max: Option<Duration>,
    /// Pause at a rate limit that does not state its end; `None`: the broker decides.
    pub rate_limit_sleep: Option<Duration>,
    /// Maximum time that a running turn may continue while the harness drains.
    pub drain_grace: Duration,
    /// Maximum time for claude to obey a signal.
    pub kill_grace: Duration,
}

/// Why the settings are not usable.
#[derive(Debug, thiserror::Error)]
pub enum InvalidConfig {
    #[error("{what} {} is no directory: create it, or name another with {variable}", .path.display())]
    NoDirectory { what: &'static str, path: PathBuf, variable: &'static str },
    #[error(
        "neither HIVE_HOME_DIR nor HOME is set: one of them has to name claude's home directory"
    )]
    NoHome,
    #[error(
        "HIVE_MCP_SERVER_NAME `{0}` must be 1 to 32 letters, digits, `-` or single `_`, and not `bash`"
    )]
    ServerName(String),
    #[error(
        "HIVE_CLAUDE_ENV must be a JSON object whose values are strings, {{\"file\": PATH}} or {{\"credential\": NAME}}: {0}"
    )]
    ClaudeEnv(String),
    #[error("HIVE_CLAUDE_ENV, variable {0}: {1}")]
    ClaudeSecret(String, SecretError),
    #[error(
        "HIVE_CLAUDE_ENV names {0}, which has no effect on claude: set it in the environment of `hive serve`"
    )]
    OwnVariable(String),
    #[error("{0} must be a whole number of tokens")]
    Window(String),
    #[error("HIVE_CONTEXT_WINDOWS must be a JSON object whose values are whole numbers: {0}")]
    Windows(String),
    #[error(transparent)]
    ToolGroups(#[from] UnknownGroup),
    #[error(transparent)]
    ExtraServers(#[from] InvalidExtraServers),
    #[error(transparent)]
    Plugins(#[from] InvalidList),
    #[error(transparent)]
    Tasks(#[from] InvalidSettings),
    #[error("HIVE_HEARTBEAT_SECS must be 1 to 30: the broker ends the turn of a silent harness")]
    Heartbeat,
}

impl Config {
    /// Checks the arguments.
    pub fn new(args: ServeArgs, home: Option<PathBuf>) -> Result<Self, InvalidConfig> {
        let ServeArgs {
            take_over,
            settings: _,
            config: _,
            agent: _,
            socket,
            state_dir,
            home_dir,
            run_dir,
            claude,
            mcp,
            mcp_server_name,
            label,
            default_model,
            tool_groups,
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
        let run_dir = run_dir
            .map_or_else(|| home_dir.join(".hive"), |dir| std::path::absolute(&dir).unwrap_or(dir));
        if !is_server_name(&mcp_server_name) || mcp_server_name == BASH_SERVER {
            return Err(InvalidConfig::ServerName(mcp_server_name));
        }
        if !(1..=30).contains(&heartbeat_secs) {
            return Err(InvalidConfig::Heartbeat);
        }
        let read = |path: &PathBuf| extra_servers::read(path, &mcp_server_name);
        let extra_servers = extras.extra_mcp.as_ref().map(read).transpose()?.unwrap_or_default();
        let claude_env: BTreeMap<String, Secret> = serde_json::from_str(&claude_env)
            .map_err(|error| InvalidConfig::ClaudeEnv(error.to_string()))?;
        if let Some(name) = claude_env.keys().find(|name| name.starts_with(OWN_PREFIX)) {
            return Err(InvalidConfig::OwnVariable(name.escape_debug().to_string()));
        }
        let claude_env = secrets::values(claude_env).map_err(|(name, error)| {
            InvalidConfig::ClaudeSecret(name.escape_debug().to_string(), error)
        })?;
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
            watermarks: watermarks(&conversation, std::env::vars_os())?,
            system_prompt: conversation
                .system_prompt
                .map(|path| std::path::absolute(&path).unwrap_or(path)),
            process,
            tool_groups: Narrowing::new(tool_groups.as_deref())?,
            extra_servers,
            plugins: Plan::new(&extras)?,
            tasks: Settings::new(&tasks)?,
            isolation: None,
        })
    }
}

/// Returns the watermarks; variables `HIVE_CONTEXT_WINDOW_TOKENS_KEY` set windows by a part of the
/// model's name.
fn watermarks(
    args: &ConversationArgs,
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<Watermarks, InvalidConfig> {
    let mut by_key = BTreeMap::new();
    for (name, value) in variables {
        let Some(key) =
            name.to_str().and_then(|name| name.strip_prefix("HIVE_CONTEXT_WINDOW_TOKENS_"))
        else {
            continue;
        };
        let tokens = value.to_str().and_then(|value| value.parse().ok());
        let tokens: u64 =
            tokens.ok_or_else(|| InvalidConfig::Window(name.to_string_lossy().into_owned()))?;
        if tokens > 0 && !key.is_empty() {
            by_key.insert(key.to_lowercase(), tokens);
        }
    }
    let by_model = serde_json::from_str(&args.context_windows)
        .map_err(|error| InvalidConfig::Windows(error.to_string()))?;
    Ok(Watermarks {
        compact: if args.auto_compact { args.compact_watermark_tokens } else { Some(0) },
        reset: args.auto_reset_watermark_tokens,
        cache_ttl: Duration::from_secs(args.cache_ttl_secs),
        reset_checkpoint: args.auto_reset_checkpoint,
        reset_rule: ResetRule {
            daily_at: args.reset_daily_at.0,
            idle: (args.reset_idle_minutes > 0)
                .then(|| Duration::from_secs(args.reset_idle_minutes.saturating_mul(60))),
            notes: args.reset_notes,
            zone: TimeZone::system(),
        },
        windows: Windows {
            of_agent: args.agent_context_window_tokens.filter(|tokens| *tokens > 0),
            by_key: Parts::new(by_key),
            of_harness: args.context_window_tokens.filter(|tokens| *tokens > 0),
            by_model: Parts::new(by_model),
        },
    })
}

/// Returns the real path, because claude files its sessions under the real path of its working
/// directory.
fn directory(
    what: &'static str,
    path: &Path,
    variable: &'static str,
) -> Result<PathBuf, InvalidConfig> {
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
        let Command::Serve(args) = Cli::try_parse_from(all).expect("parses").command else {
            unreachable!("serve was asked for")
        };
        *args
    }

    #[test]
    fn a_missing_directory_is_named_with_its_variable() {
        let error = Config::new(args(&["--state-dir", "/no/such/dir"]), None).expect_err("refused");
        assert!(
            error.to_string().contains("/no/such/dir")
                && error.to_string().contains("HIVE_STATE_DIR"),
            "{error}"
        );
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
        assert!(given(&["--context-windows", "{\"opus\":\"1\"}"]).is_err());
        assert!(given(&["--tool-groups", "meta,shell"]).is_err());
        let error = given(&["--claude-env", "{\"HIVE_TURN_MAX_SECS\":\"1\"}"])
            .expect_err("refused")
            .to_string();
        assert!(error.contains("HIVE_TURN_MAX_SECS"), "{error}");
    }

    #[test]
    fn the_windows_are_read_from_all_their_variables() {
        let conversation =
            args(&["--agent-context-window-tokens", "1", "--context-windows", "{\"haiku\":4000}"])
                .conversation;
        let read = |pairs: &[(&str, &str)]| {
            watermarks(&conversation, pairs.iter().map(|(name, value)| (name.into(), value.into())))
                .map(|marks| marks.windows)
        };
        let mut windows =
            read(&[("HIVE_CONTEXT_WINDOW_TOKENS_OPUS", "2000"), ("OTHER", "x")]).expect("valid");
        assert_eq!(windows.of_agent.take(), Some(1));
        assert_eq!(
            (windows.effective("claude-opus", 0), windows.effective("haiku", 0)),
            (2000, 4000)
        );
        let error =
            read(&[("HIVE_CONTEXT_WINDOW_TOKENS_OPUS", "many")]).expect_err("refused").to_string();
        assert!(error.starts_with("HIVE_CONTEXT_WINDOW_TOKENS_OPUS must be"), "{error}");
    }
}
