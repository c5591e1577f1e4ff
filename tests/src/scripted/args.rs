//! The flags of claude that the harness uses.

use std::path::PathBuf;

use clap::Parser;

/// A stand-in for the claude CLI that follows a script instead of a model.
#[derive(Debug, Parser)]
#[command(name = "scripted-claude", disable_version_flag = true)]
pub struct Args {
    /// Print the version and exit.
    #[arg(short = 'v', long)]
    pub version: bool,
    /// Run one turn and exit; the only mode there is.
    #[arg(short, long)]
    pub print: bool,
    /// Needed with `--output-format stream-json`.
    #[arg(long)]
    pub verbose: bool,
    /// Only `stream-json`.
    #[arg(long)]
    pub output_format: Option<String>,
    /// The model's name or alias.
    #[arg(long, default_value = "sonnet")]
    pub model: String,
    /// Go on with the newest session of this directory.
    #[arg(short, long = "continue")]
    pub continues: bool,
    /// A settings file.
    #[arg(long)]
    pub settings: Option<PathBuf>,
    /// A file with the system prompt.
    #[arg(long)]
    pub system_prompt_file: Option<PathBuf>,
    /// Whether a session keeps its first system prompt; there is no model here to read it.
    #[arg(long)]
    pub system_prompt_snapshot: Option<String>,
    /// A file with MCP servers.
    #[arg(long)]
    pub mcp_config: Option<PathBuf>,
    /// Only the servers of `--mcp-config`; there are no others here.
    #[arg(long)]
    pub strict_mcp_config: bool,
    /// Built-in tools, comma-separated.
    #[arg(long)]
    pub tools: Option<String>,
    /// Tools that need no permission.
    #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1.., value_delimiter = ',')]
    pub allowed_tools: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_harness_line_is_understood() {
        let line = "claude --print --verbose --output-format stream-json --model haiku --continue --settings s --system-prompt-file p \
            --mcp-config m --strict-mcp-config --system-prompt-snapshot off --tools Edit,Read --allowedTools Edit,Read,mcp__hive__*";
        let args = Args::try_parse_from(line.split_whitespace()).expect("it is understood");
        assert!(args.continues && args.print && args.verbose && args.strict_mcp_config);
        assert_eq!(args.allowed_tools, ["Edit", "Read", "mcp__hive__*"]);
        let none = Args::try_parse_from(["claude", "--print", "--tools", ""]).expect("it is understood");
        assert_eq!(none.tools.as_deref(), Some(""));
    }
}
