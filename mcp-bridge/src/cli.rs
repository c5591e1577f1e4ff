//! The command line, which is mostly environment: claude starts the bridge from its MCP
//! configuration.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The environment variable with the process token; it has no flag, because flags show in the
/// process list.
pub const PROCESS_TOKEN_ENV: &str = "HIVE_PROCESS_TOKEN";

/// Gives a Claude Code agent its Hive tools: MCP over stdin and stdout, gRPC to the broker over a
/// unix socket.
///
/// Claude starts this; the harness writes the configuration. Logs go to stderr.
#[derive(Debug, Parser)]
#[command(name = "hive-mcp", version, long_version = hive_core::version::long(), after_help = AFTER_HELP)]
pub struct Args {
    /// The agent's socket.
    #[arg(long, env = hive_proto::SOCKET_ENV, default_value = hive_proto::DEFAULT_AGENT_SOCKET)]
    pub socket: PathBuf,
    /// Tool groups to offer, comma-separated: messaging, inbox, meta, execution, lifecycle,
    /// approvals, diagnostics, scheduling.
    #[arg(long, env = "HIVE_TOOL_GROUPS", default_value = "messaging,inbox,meta,execution")]
    pub tool_groups: String,
    /// The agent's name, for the log.
    #[arg(long, env = "HIVE_LABEL", default_value = "hive")]
    pub label: String,
    /// Another server than that of Hive's tools.
    #[command(subcommand)]
    pub server: Option<Server>,
}

/// Further servers.
#[derive(Clone, Debug, Subcommand)]
pub enum Server {
    /// Serve the tools `run` and `status`: shell tasks, which the harness runs outside claude
    Bash {
        /// The harness's socket for shell tasks.
        #[arg(long, env = "HIVE_TASK_SOCKET", value_name = "PATH")]
        task_socket: PathBuf,
    },
}

const AFTER_HELP: &str = "Environment:
  HIVE_PROCESS_TOKEN  the secret that ties this process to its turn; without it the broker answers HARNESS_ATTACHED
  HIVE_CALL_LOG       the harness's socket for a line about each call, without its body
  HIVE_LOG, RUST_LOG  what to log, for example `debug` (message bodies show from debug on)";

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }
}
