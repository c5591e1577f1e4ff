//! `hivectl supervise`: the launcher of a host whose agents are services.

use std::path::PathBuf;

use clap::Args;

use crate::context::Context;
use crate::error::Failure;
use crate::supervise;

const AFTER_HELP: &str = "\
It starts and stops the unit hive@NAME.service of each agent as the broker says, and changes no other unit. So an agent that is created \
while the hive runs has a harness at once, one that is stopped has none, and one that runs on demand has one while there is mail for it. \
hive-launcher.service runs it, as a user that may do that by a rule of polkit. A unit that is masked is left alone.

The units run on when it ends. What it keeps of each agent, so that no restart is lost or made twice, is in one small file.";

/// Start and stop the agents of a host as the broker says, as services.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Supervise {
    /// The agents are units of systemd
    #[arg(long, required = true)]
    systemd: bool,
    /// The directory of what it keeps of each agent
    #[arg(long, env = "STATE_DIRECTORY", hide_env_values = true, default_value = "/var/lib/hive-launcher", value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    state: PathBuf,
}

impl Supervise {
    pub(crate) async fn run(self, context: Context) -> Result<(), Failure> {
        let Self { systemd: _, state } = self;
        supervise::run_units(state, context).await
    }
}
