//! The command line of `hived`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// The broker of a hive: owns all mail, turns and topology, and serves them on one unix socket per
/// agent.
#[derive(Clone, Debug, Parser)]
#[command(name = "hived", version, long_version = hive_core::version::long(), about)]
pub struct Cli {
    /// What to do in place of running the broker.
    #[command(subcommand)]
    pub command: Option<Command>,

    /// The configuration file (hive.toml).
    #[arg(long, value_name = "FILE", env = "HIVE_CONFIG", global = true)]
    pub config: Option<PathBuf>,

    /// Read a configuration file, say what is wrong with it, and exit: 0 when nothing is, 8 when
    /// something is.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "state_dir", "runtime_dir", "agents_dir"])]
    pub check_config: Option<PathBuf>,

    /// The directory of the database; overrides `broker.state_dir`. Default: /var/lib/hive.
    #[arg(long, value_name = "DIR", global = true)]
    pub state_dir: Option<PathBuf>,

    /// The directory of the sockets; overrides `broker.runtime_dir`. Default: /run/hive.
    #[arg(long, value_name = "DIR")]
    pub runtime_dir: Option<PathBuf>,

    /// The parent of state directories: an agent without a state directory in the configuration
    /// file has DIR/NAME/state. `hivectl up` sets it, and deletes the directories of purged agents.
    #[arg(long, value_name = "DIR")]
    pub agents_dir: Option<PathBuf>,

    /// The parent of the folders of long reminders, DIR/NAME/reminders, if the broker cannot write
    /// in the agents' state directories. Each agent has to find its folder as `reminders` in its
    /// own.
    #[arg(long, value_name = "DIR", conflicts_with = "agents_dir")]
    pub reminders_dir: Option<PathBuf>,

    /// Have systemd keep the sockets of agents while hived restarts: its unit has
    /// FileDescriptorStoreMax.
    #[arg(long)]
    pub keep_sockets: bool,

    /// Keep no copy of a database of an older version when it is migrated. Otherwise it is kept in
    /// the state directory as hive.version-N.db.
    #[arg(long, global = true)]
    pub migrate_without_copy: bool,

    /// Most pending reminders of one agent; overrides `broker.limits.reminders_pending_max`.
    #[arg(long, value_name = "NUMBER", env = "HIVE_REMIND_MAX_PENDING_PER_AGENT", value_parser = reminders_pending_max)]
    pub reminders_pending_max: Option<u32>,

    /// The log filter, for example `info` or `hive_broker=debug`.
    #[arg(long, value_name = "FILTER", env = "HIVE_LOG", default_value = "info")]
    pub log: String,

    /// The format of the log: `auto` is the journal where stderr goes there, and text elsewhere.
    #[arg(long, value_name = "FORMAT", default_value = "auto")]
    pub log_format: LogFormat,
}

/// A command of the daemon that does not run the broker.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Put a backup in place of the database of a stopped broker; `hivectl restore` runs this.
    ///
    /// The database that it replaces is kept in the state directory, as hive.replaced-N.db. When
    /// hived is started again, a new log begins, ids go on above those of the replaced database,
    /// and all sessions, open turns and leases of the backup have ended.
    Restore {
        /// The backup: a file that `hivectl backup` made, or a copy of a database.
        backup: PathBuf,
        /// Print the result as JSON, for `hivectl restore`.
        #[arg(long)]
        json: bool,
    },
    /// Migrate the database of an older version now, while no broker runs.
    ///
    /// A start of hived does the same before it answers calls.
    Migrate {
        /// Only print what a migration would do, how long it takes and the room it needs; also
        /// while a broker runs. Exit code 8 if there is not enough room.
        #[arg(long)]
        check: bool,
    },
}

/// Parses the limit. The error names the variable too, because the command line may not have the
/// option.
fn reminders_pending_max(text: &str) -> Result<u32, &'static str> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or("HIVE_REMIND_MAX_PENDING_PER_AGENT must be a whole number from 1 to 4294967295")
}

/// A way of logging.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// The journal of systemd, if stderr goes there; otherwise text.
    Auto,
    /// Lines for people.
    Text,
    /// JSON lines.
    Json,
    /// The journal of systemd, with the fields of each event: HIVE_AGENT, HIVE_REQUEST_ID and
    /// others.
    Journald,
}
