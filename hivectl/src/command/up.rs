//! `hivectl up`: a whole hive in the foreground, for a machine without service units.

use std::path::PathBuf;

use clap::Args;

use crate::context::Context;
use crate::error::Failure;
use crate::supervise::{self, Options};

const AFTER_HELP: &str = "\
Every agent has a home of its own (.hive/agents/NAME/home), so that sessions and logins do not mix. A key in the environment \
(ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN) reaches every agent. If you are logged in by claude's own \
dialogue instead, that login belongs to your home, not to theirs: either run `claude setup-token` once and export \
CLAUDE_CODE_OAUTH_TOKEN, or log each agent in with `hivectl login NAME` while the hive runs.

Each agent runs in a sandbox, if bubblewrap (bwrap) is installed and works: it sees the system's programs, its own directories and what \
`readable`, `writable` and `devices` in hive.toml grant. `isolation` in hive.toml states the level that has to be reached; without it \
the best that works here is used, and printed.

Ctrl-C drains: running turns get a grace time, accepted mail is on disk. A second Ctrl-C ends everything at once.";

#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Up {
    /// The configuration
    #[arg(long, default_value = "hive.toml", value_name = "FILE")]
    config: PathBuf,
    /// The directory of the hive, for what the configuration does not place: database, sockets,
    /// logs, the agents' directories
    #[arg(long, default_value = ".hive", value_name = "DIR")]
    state: PathBuf,
    /// The claude program, instead of the configuration's
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,
    /// Used where claude is not installed or not logged in
    #[arg(long, value_name = "PATH", conflicts_with = "claude")]
    fallback_claude: Option<PathBuf>,
    /// Start the agents without a sandbox, whatever the configuration states
    #[arg(long)]
    no_isolation: bool,
}

impl Up {
    pub(crate) async fn run(self, context: Context) -> Result<(), Failure> {
        let Self { config, state, claude, fallback_claude, no_isolation } = self;
        let options = Options { config, state, claude, fallback_claude, no_isolation };
        supervise::run(options, context).await
    }
}
