//! Settings of further MCP servers and plugins besides Hive's own tools.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

/// Further MCP servers and plugins.
#[derive(Clone, Debug, Args)]
pub struct ExtraArgs {
    /// The agent's own MCP servers: a JSON object of { "command", "args", "env", "allowedTools" }
    /// by name
    #[arg(long, env = "HIVE_EXTRA_MCP", value_name = "FILE")]
    pub extra_mcp: Option<PathBuf>,
    /// Plugins that claude installs at the start, as a JSON array of strings
    #[arg(long, env = "HIVE_PLUGINS", default_value = "[]", value_name = "JSON")]
    pub plugins: String,
    /// Sources of plugins, as a JSON array of strings [default:
    /// anthropics/claude-plugins-official, if plugins are named]
    #[arg(long, env = "HIVE_MARKETPLACES", value_name = "JSON")]
    pub marketplaces: Option<String>,
    /// Whether the marketplaces are read again at the start
    #[arg(long, env = "HIVE_PLUGINS_AUTO_UPDATE", default_value_t = false, action = clap::ArgAction::Set,
          value_parser = BoolishValueParser::new(), value_name = "BOOL")]
    pub plugins_auto_update: bool,
}
