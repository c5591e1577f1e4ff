//! `hivectl up`: a whole hive in the foreground, for a machine without service units.
//!
//! ```text
//!   hivectl up ──► hived                      restarted if it dies
//!              ├─► [bwrap] hive serve (ada)   restarted with backoff if it dies
//!              └─► [bwrap] hive serve (bob)
//!   Ctrl-C: every harness is drained, then the broker; a second Ctrl-C kills at once
//! ```
//!
//! What it is not: it keeps no state. All of it is in the directories that the broker and the agents own; a second `up` goes on where the
//! first ended.
//!
//! Invariant: when this command ends, however it ends, no process that it started is left.

mod binaries;
mod child;
mod claude;
mod confine;
mod environment;
mod error;
mod extra_mcp;
mod next;
mod plan;
mod process_tree;
mod supervise;
mod watch;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

pub(crate) use self::binaries::{on_path, resolve};
pub(crate) use self::error::UpError;

use self::binaries::Binaries;
use self::child::{Registry, Spec};
use self::confine::Confinement;
use self::plan::{AgentPlan, Plan};
use crate::cli::Global;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::{Output, note};
use supervise::{Deadline, Stop, Supervised};

/// How long the broker may take to answer for the first time.
const BROKER_START_MAX: Duration = Duration::from_secs(20);
/// How long a harness may take to end: its running turn has a grace time of its own.
const HARNESS_STOP_MAX: Duration = Duration::from_secs(45);
/// How long the broker may take to end.
const BROKER_STOP_MAX: Duration = Duration::from_secs(15);

const AFTER_HELP: &str = "\
Every agent has a home of its own (.hive/agents/NAME/home), so that sessions and logins do not mix. A key in the environment \
(ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN) reaches every agent. If you are logged in by claude's own \
dialogue instead, that login belongs to your home, not to theirs: either run `claude setup-token` once and export \
CLAUDE_CODE_OAUTH_TOKEN, or log each agent in with `hivectl login NAME` while the hive runs.

With bubblewrap (bwrap) on PATH each agent sees the host's files as you do, but of the hive only its own socket, home and state directory.

Ctrl-C drains: running turns get a grace time, accepted mail is on disk. A second Ctrl-C ends everything at once.";

/// Run a hive in the foreground: the broker, and one harness for each agent of the configuration.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Up {
    /// The configuration
    #[arg(long, default_value = "hive.toml", value_name = "FILE")]
    config: PathBuf,
    /// Where the hive lives, as far as the configuration does not say it: database, sockets, logs, the agents' directories
    #[arg(long, default_value = ".hive", value_name = "DIR")]
    state: PathBuf,
    /// The claude program, instead of the configuration's
    #[arg(long, value_name = "PATH")]
    claude: Option<PathBuf>,
    /// Used where claude is not installed or not logged in
    #[arg(long, value_name = "PATH", conflicts_with = "claude")]
    fallback_claude: Option<PathBuf>,
    /// Do not confine the agents, even if bubblewrap is installed
    #[arg(long)]
    no_isolation: bool,
}

impl Up {
    pub(crate) async fn run(self, global: &Global) -> Result<Exit, Failure> {
        let plan = Plan::make(&self.config, &self.state)?;
        let binaries = Binaries::find()?;
        let claude = claude::choose(self.claude.as_deref(), self.fallback_claude.as_deref(), &plan)?;
        let confinement = Confinement::choose(self.no_isolation, &plan);
        supervise::refuse_second(&plan).await?;
        let extra_mcp = plan.agents.iter().map(extra_mcp::write).collect::<Result<Vec<_>, _>>()?;
        let mut stop = Stop::on_signals().map_err(UpError::Signals)?;
        let registry = Registry::new().map_err(UpError::Signals)?;

        let (told, mut ended) = mpsc::unbounded_channel();
        let broker = Supervised::start(broker_spec(&plan, &binaries), registry.clone(), Some(told));
        if let Err(failure) = supervise::first_answer(&plan, &mut ended, &mut stop).await {
            broker.stop(Deadline::Now).await;
            return Err(failure.into());
        }
        claude.announce(&plan);
        confinement.announce(plan.config.hive.isolation.is_some());
        let caller = environment::of_caller();
        let start = |(agent, extra_mcp): (&AgentPlan, &Option<PathBuf>)| {
            let env = environment::for_agent(&caller, &plan, agent, &claude.program, &binaries, extra_mcp.as_deref());
            let spec = confinement.harness_spec(&plan, agent, &binaries, env);
            Supervised::start(spec, registry.clone(), None)
        };
        let harnesses: Vec<Supervised> = plan.agents.iter().zip(&extra_mcp).map(start).collect();
        next::print(&plan);

        let context = Context {
            socket: plan.operator_socket(),
            timeout: global.answer_timeout(),
            patience: None,
            out: Output::stdout(global.json),
        };
        let watching = tokio::spawn(watch::run(context));
        stop.asked().await;
        note("draining: running turns get their grace time; Ctrl-C again ends everything at once");
        watching.abort();
        let mut drained = std::pin::pin!(drain(harnesses, broker));
        tokio::select! {
            () = &mut drained => note("all is down; the mail is kept"),
            () = stop.asked() => {
                registry.kill_all();
                // To see them all dead, and nothing started again.
                drained.await;
                note("killed; what was accepted is on disk");
            }
        }
        Ok(Exit::Ok)
    }
}

/// Harnesses first, all at once, so that they can still hand their turns back; then the broker.
async fn drain(harnesses: Vec<Supervised>, broker: Supervised) {
    let stopping: Vec<_> =
        harnesses.into_iter().map(|harness| tokio::spawn(harness.stop(Deadline::After(HARNESS_STOP_MAX)))).collect();
    for harness in stopping {
        // A panic of its task has killed the harness by dropping it.
        let _ = harness.await;
    }
    broker.stop(Deadline::After(BROKER_STOP_MAX)).await;
}

fn broker_spec(plan: &Plan, binaries: &Binaries) -> Spec {
    let mut args = vec!["--config".into(), plan.config_file.clone().into_os_string()];
    args.extend(["--state-dir".into(), plan.state_dir.clone().into_os_string()]);
    args.extend(["--runtime-dir".into(), plan.runtime_dir.clone().into_os_string()]);
    args.extend(["--agents-dir".into(), plan.agents_dir.clone().into_os_string()]);
    Spec {
        name: "hived".to_owned(),
        program: binaries.hived.clone(),
        args,
        env: environment::for_broker(&environment::of_caller()),
        dir: plan.base.clone(),
        log: plan.log_file("hived"),
        own_death_signal: true,
    }
}

impl Stop {
    /// Ctrl-C, SIGTERM, or a closed terminal.
    fn on_signals() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }
}

/// A path for a person: relative to where they are, if it is below.
fn shown(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    match path.strip_prefix(&here) {
        Ok(below) if below.as_os_str().is_empty() => ".".to_owned(),
        Ok(below) => below.display().to_string(),
        Err(_) => path.display().to_string(),
    }
}
