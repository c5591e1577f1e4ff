//! The command line of `hive`.
//!
//! Invariant: every setting of `serve` can be given by environment alone, because a container has
//! nothing else.

pub mod conversation;
pub mod extras;
pub mod process;
pub mod tasks;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use hive_core::name::{AgentName, Label};

pub use self::conversation::ConversationArgs;
pub use self::extras::ExtraArgs;
pub use self::process::ProcessArgs;
pub use self::tasks::TaskArgs;
pub use crate::confine::ConfineArgs;
pub use crate::fence::FenceArgs;
pub use crate::guard::GuardArgs;
pub use crate::isolation::ProbeArgs;
pub use crate::scrub::ScrubArgs;
pub use crate::task::init::InitArgs;

/// Runs claude's turns for one agent of a hive, and sends messages to the agent's own inbox.
#[derive(Debug, Parser)]
#[command(name = "hive", version, long_version = hive_core::version::long(), max_term_width = 100, after_help = EXIT_CODES)]
pub struct Cli {
    /// The command to run.
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 success, 1 failure, 2 invalid command line, 7 no broker answers on the socket.\n\
     Logs go to stderr; HIVE_LOG (or RUST_LOG) sets their level, for example HIVE_LOG=hive_harness=debug.";

/// The commands of `hive`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the turn loop until SIGTERM: wait for mail, run claude for it, report the result to the
    /// broker
    #[command(after_help = EXIT_CODES)]
    Serve(Box<ServeArgs>),
    /// Put a message into this agent's own inbox, as a program that runs beside it
    #[command(after_help = WAKE_HELP)]
    Wake(WakeArgs),
    /// Publish the loose ends of a program beside this agent: lines of KEY<TAB>TEXT on stdin
    #[command(after_help = PUBLISH_HELP)]
    Publish(PublishArgs),
    /// Become hive-mcp, the MCP server of Hive's tools
    #[command(disable_help_flag = true)]
    Mcp(McpArgs),
    /// Become a program with an environment from an allow-list; claude starts MCP servers with it
    #[command(hide = true)]
    Scrub(ScrubArgs),
    /// Become a program inside a fence, as claude and the shell tasks of an isolated agent
    #[command(hide = true)]
    Fence(FenceArgs),
    /// Let the harness run a program in a sandbox, as an isolated agent's own MCP servers
    #[command(hide = true)]
    Confine(ConfineArgs),
    /// Refuse a read that an isolated agent must not make; claude runs this before each file tool
    #[command(hide = true)]
    Guard(GuardArgs),
    /// Run as the first process of a shell task's sandbox
    #[command(hide = true)]
    TaskInit(InitArgs),
    /// Print the gaps of this sandbox as one line of JSON; `hivectl up` starts it
    #[command(hide = true)]
    Probe(ProbeArgs),
}

const WAKE_HELP: &str = "Prints the id of the accepted message: when it is printed, the message is on the broker's disk.\n\n\
     Examples:\n  hive wake --from matrix --body 'new message in #dev from @alice'\n  \
     build-log | hive wake --from ci --body - --key nightly\n\n\
     Exit codes: 0 accepted, 1 refused, 2 invalid command line, 7 no broker answers on the socket.";

const PUBLISH_HELP: &str = "The lines on stdin replace all that this label published before; empty stdin clears it. At most 100 entries, each\n\
     with a distinct key and one line of text. The agent sees them with get_loose_ends.\n\n\
     Examples:\n  printf 'pr-7\\treview of the parser\\n' | hive publish --from forge\n  hive publish --from forge </dev/null\n\n\
     Exit codes: 0 published, 1 refused, 2 invalid command line, 7 no broker answers on the socket.";

/// Arguments of `hive publish`.
#[derive(Debug, Args)]
pub struct PublishArgs {
    /// The agent's socket
    #[arg(long, env = hive_proto::SOCKET_ENV, default_value = hive_proto::DEFAULT_AGENT_SOCKET, value_name = "PATH")]
    pub socket: PathBuf,
    /// Name of the program: lower-case letters, digits, `-`, `_` and `.`; not the name of an agent
    #[arg(long, value_name = "LABEL", value_parser = Label::parse)]
    pub from: Label,
}

/// Arguments of `hive mcp`.
#[derive(Debug, Args)]
pub struct McpArgs {
    /// Arguments of hive-mcp
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENT")]
    pub arguments: Vec<std::ffi::OsString>,
}

/// Arguments of `hive wake`.
#[derive(Debug, Args)]
pub struct WakeArgs {
    /// The agent's socket
    #[arg(long, env = hive_proto::SOCKET_ENV, default_value = hive_proto::DEFAULT_AGENT_SOCKET, value_name = "PATH")]
    pub socket: PathBuf,
    /// Name of the sender: lower-case letters, digits, `-`, `_` and `.`; not the name of an agent
    #[arg(long, value_name = "LABEL", value_parser = Label::parse)]
    pub from: Label,
    /// Text of the message; `-` reads it from stdin (UTF-8)
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub body: String,
    /// Replace an undelivered message with this label and key
    #[arg(long, value_name = "KEY")]
    pub key: Option<String>,
}

/// Arguments of `hive serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Take the agent over from a harness that is attached now
    #[arg(long)]
    pub take_over: bool,
    /// A JSON object of variables of this command and their values, read again before each turn; a
    /// variable in this file overrides the environment
    #[arg(long, env = "HIVE_SETTINGS", value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// The configuration of the hive (hive.toml), read again before each turn; its keys for this
    /// agent override the environment
    #[arg(
        long,
        env = "HIVE_CONFIG",
        value_name = "FILE",
        requires = "agent",
        conflicts_with = "settings"
    )]
    pub config: Option<PathBuf>,
    /// The agent whose keys in the configuration apply
    #[arg(long, env = "HIVE_AGENT", value_name = "NAME", value_parser = AgentName::parse)]
    pub agent: Option<AgentName>,
    /// The agent's socket
    #[arg(long, env = hive_proto::SOCKET_ENV, default_value = hive_proto::DEFAULT_AGENT_SOCKET, value_name = "PATH")]
    pub socket: PathBuf,
    /// claude's working directory
    #[arg(long, env = "HIVE_STATE_DIR", default_value = "/state", value_name = "DIR")]
    pub state_dir: PathBuf,
    /// claude's HOME, which keeps its login and sessions; the agent's own [default: $HOME]
    #[arg(long, env = "HIVE_HOME_DIR", value_name = "DIR")]
    pub home_dir: Option<PathBuf>,
    /// The directory of the files for claude [default: `.hive` in claude's HOME]
    #[arg(long, env = "HIVE_RUN_DIR", value_name = "DIR")]
    pub run_dir: Option<PathBuf>,
    /// The claude program
    #[arg(long, env = "HIVE_CLAUDE", default_value = "claude", value_name = "PROGRAM")]
    pub claude: PathBuf,
    /// The hive-mcp program [default: beside this program, then on PATH]
    #[arg(long, env = "HIVE_MCP", value_name = "PROGRAM")]
    pub mcp: Option<PathBuf>,
    /// Name of our MCP server, which prefixes claude's tools: mcp__NAME__send
    #[arg(long, env = "HIVE_MCP_SERVER_NAME", default_value = "hive", value_name = "NAME")]
    pub mcp_server_name: String,
    /// The agent's name until the broker reports it
    #[arg(long, env = "HIVE_LABEL", default_value = "hive", value_name = "NAME")]
    pub label: String,
    /// The model, if the broker names none
    #[arg(long, env = "HIVE_DEFAULT_MODEL", default_value = "haiku", value_name = "MODEL")]
    pub default_model: String,
    /// Tool groups, separated by commas, to which the policy's groups are narrowed [default: all
    /// that the policy grants]
    #[arg(long, env = "HIVE_TOOL_GROUPS", value_delimiter = ',', value_name = "GROUPS")]
    pub tool_groups: Option<Vec<String>>,
    /// Pronouns of the operator for the prompt, if the broker names none
    #[arg(long, env = "HIVE_OPERATOR_PRONOUNS", default_value = "she/her", value_name = "TEXT")]
    pub operator_pronouns: String,
    /// Further environment of claude, as a JSON object of strings
    #[arg(
        long,
        env = "HIVE_CLAUDE_ENV",
        hide_env_values = true,
        default_value = "{}",
        value_name = "JSON"
    )]
    pub claude_env: String,
    /// Maximum retries of a failing API call by claude itself
    #[arg(long, env = "HIVE_CLAUDE_MAX_RETRIES", default_value_t = 2, value_name = "COUNT")]
    pub claude_max_retries: u32,
    /// Longest silence of a turn before it is ended; 0: no limit
    #[arg(long, env = "HIVE_TURN_IDLE_TIMEOUT_SECS", default_value_t = 1800, value_name = "SECS")]
    pub turn_idle_timeout_secs: u64,
    /// Longest turn before it is ended; 0: no limit
    #[arg(long, env = "HIVE_TURN_MAX_SECS", default_value_t = 0, value_name = "SECS")]
    pub turn_max_secs: u64,
    /// Pause at a rate limit that does not state its end [default: the broker decides]
    #[arg(long, env = "HIVE_RATE_LIMIT_SLEEP_SECS", value_name = "SECS")]
    pub rate_limit_sleep_secs: Option<u64>,
    /// Maximum time that a running turn may continue after SIGTERM
    #[arg(long, env = "HIVE_DRAIN_GRACE_SECS", default_value_t = 20, value_name = "SECS")]
    pub drain_grace_secs: u64,
    /// Interval of the heartbeats to the broker
    #[arg(long, env = "HIVE_HEARTBEAT_SECS", default_value_t = 10, value_name = "SECS")]
    pub heartbeat_secs: u64,
    /// Time for claude to obey a signal before a stronger one follows
    #[arg(long, env = "HIVE_KILL_GRACE_MS", default_value_t = 5000, value_name = "MS")]
    pub kill_grace_ms: u64,
    /// The conversation: its window, compaction and resets
    #[command(flatten)]
    pub conversation: ConversationArgs,
    /// The process that claude runs in
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Further MCP servers and plugins
    #[command(flatten)]
    pub extras: ExtraArgs,
    /// Shell tasks
    #[command(flatten)]
    pub tasks: TaskArgs,
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use clap::CommandFactory as _;
    use hive_core::config::{OTHER_VARIABLES, SETTINGS};

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_variable_of_serve_has_a_key_or_is_named_as_one_that_has_none() {
        let cli = Cli::command();
        let serve = cli.find_subcommand("serve").expect("serve");
        let variables: BTreeMap<String, String> = serve
            .get_arguments()
            .filter_map(|arg| {
                let default = arg
                    .get_default_values()
                    .first()
                    .map(|value| value.to_string_lossy().into_owned());
                Some((arg.get_env()?.to_str()?.to_owned(), default.unwrap_or_default()))
            })
            .collect();
        let keys = SETTINGS.iter().map(|setting| setting.variable);
        let known: BTreeSet<&str> =
            keys.chain(OTHER_VARIABLES.iter().map(|(variable, _)| *variable)).collect();
        assert_eq!(variables.keys().map(String::as_str).collect::<BTreeSet<_>>(), known);
        for setting in SETTINGS {
            let default = &variables[setting.variable];
            assert!(default.is_empty() || default == setting.default, "{}: {default}", setting.key);
            let is_value =
                setting.default.parse::<u64>().is_ok() || setting.default.parse::<bool>().is_ok();
            assert!(
                !default.is_empty() || !is_value,
                "{} has the default {} in the list only",
                setting.key,
                setting.default
            );
        }
    }

    #[test]
    fn a_body_may_be_a_lone_hyphen_or_begin_with_one() {
        for body in ["-", "-x", "--"] {
            let cli = Cli::try_parse_from(["hive", "wake", "--from", "ci", "--body", body])
                .expect("parses");
            let Command::Wake(wake) = cli.command else { unreachable!("wake was asked for") };
            assert_eq!(wake.body, body);
        }
    }

    #[test]
    fn labels_of_others_are_a_usage_error() {
        for from in ["operator", "self", "Matrix", ""] {
            let error = Cli::try_parse_from(["hive", "wake", "--from", from, "--body", "x"])
                .expect_err("refused");
            assert_eq!(error.exit_code(), 2, "{from}");
        }
    }
}
