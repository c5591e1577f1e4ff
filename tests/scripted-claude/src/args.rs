//! The flags of claude that the harness uses.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A stand-in for the claude CLI that follows a script instead of a model.
#[derive(Debug, Parser)]
#[command(name = "scripted-claude", disable_version_flag = true)]
pub struct Args {
    /// Print the version and exit.
    #[arg(short = 'v', long)]
    pub version: bool,
    /// The command to run in place of a turn.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Run without a terminal; turns know no other way.
    #[arg(short, long)]
    pub print: bool,
    /// `stream-json`: one turn for each line of stdin; else all of stdin is the prompt of one turn.
    #[arg(long)]
    pub input_format: Option<String>,
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
    /// Further directories to work in; there is no tool here that would need them.
    #[arg(long = "add-dir", num_args = 1..)]
    pub add_dir: Vec<PathBuf>,
    /// Tools that need no permission.
    #[arg(long = "allowedTools", alias = "allowed-tools", num_args = 1.., value_delimiter = ',')]
    pub allowed_tools: Vec<String>,
}

/// Commands other than turns.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The login.
    Auth {
        /// The command for the login.
        #[command(subcommand)]
        command: Auth,
    },
    /// Plugins.
    #[command(alias = "plugins")]
    Plugin {
        /// The command for plugins.
        #[command(subcommand)]
        command: Plugin,
    },
}

/// Commands for the login.
#[derive(Debug, Subcommand)]
pub enum Auth {
    /// Prints whether there is a login.
    Status,
    /// Asks for one.
    Login,
}

/// Commands for plugins.
#[derive(Debug, Subcommand)]
pub enum Plugin {
    /// Marketplaces, the sources of plugins.
    Marketplace {
        /// The command for marketplaces.
        #[command(subcommand)]
        command: Marketplace,
    },
    /// Installs one.
    Install {
        /// `PLUGIN@MARKETPLACE`.
        plugin: String,
    },
}

/// Commands for marketplaces.
#[derive(Debug, Subcommand)]
pub enum Marketplace {
    /// Adds one.
    Add {
        /// A directory, an address, or `OWNER/REPOSITORY`.
        source: String,
    },
    /// Updates all marketplaces, or one.
    Update {
        /// The marketplace.
        name: Option<String>,
    },
}

impl Args {
    /// Whether the process stays for one turn after another.
    pub fn is_resident(&self) -> bool {
        self.input_format.as_deref() == Some("stream-json")
    }
}

impl Command {
    /// The command line, as a rule of a script names it.
    pub fn line(&self) -> String {
        match self {
            Self::Auth { command: Auth::Status } => "$ auth status".to_owned(),
            Self::Auth { command: Auth::Login } => "$ auth login".to_owned(),
            Self::Plugin { command: Plugin::Install { plugin } } => {
                format!("$ plugin install {plugin}")
            }
            Self::Plugin {
                command: Plugin::Marketplace { command: Marketplace::Add { source } },
            } => {
                format!("$ plugin marketplace add {source}")
            }
            Self::Plugin {
                command: Plugin::Marketplace { command: Marketplace::Update { name } },
            } => format!("$ plugin marketplace update {}", name.as_deref().unwrap_or_default())
                .trim_end()
                .to_owned(),
        }
    }
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
        let none =
            Args::try_parse_from(["claude", "--print", "--tools", ""]).expect("it is understood");
        assert_eq!(none.tools.as_deref(), Some(""));
        assert!(!none.is_resident());
    }

    #[test]
    fn commands_are_reported_as_typed() {
        for typed in [
            "auth status",
            "auth login",
            "plugin marketplace add owner/repository",
            "plugin marketplace update",
            "plugin marketplace update some",
            "plugin install hello@some",
        ] {
            let args = Args::try_parse_from(std::iter::once("claude").chain(typed.split(' ')))
                .expect("it is understood");
            assert_eq!(args.command.map(|command| command.line()), Some(format!("$ {typed}")));
        }
    }
}
