//! The command line of `hived`.

use std::path::PathBuf;

use clap::Parser;

/// The broker of a hive: owns every inbox and topology lookup, and serves them on one unix socket per agent.
#[derive(Clone, Debug, Parser)]
#[command(name = "hived", version, about)]
pub struct Cli {
    /// The configuration file (hive.toml).
    #[arg(long, value_name = "FILE", env = "HIVE_CONFIG")]
    pub config: Option<PathBuf>,

    /// Read a configuration file, say what is wrong with it, and exit: 0 when nothing is, 8 when something is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "state_dir", "runtime_dir"])]
    pub check_config: Option<PathBuf>,

    /// Where the database lies; overrides `broker.state_dir`. Default: /var/lib/hive.
    #[arg(long, value_name = "DIR")]
    pub state_dir: Option<PathBuf>,

    /// Where the sockets lie; overrides `broker.runtime_dir`. Default: /run/hive.
    #[arg(long, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,

    /// What to log, for example `info` or `hive_broker=debug`.
    #[arg(long, value_name = "FILTER", env = "HIVE_LOG", default_value = "info")]
    pub log: String,

    /// How to log.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

/// A way of logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people.
    Text,
    /// JSON lines.
    Json,
}
