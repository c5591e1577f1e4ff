//! `hivectl up`: a whole hive in the foreground, for a machine without service units.
//!
//! ```text
//!   hivectl up ──► hived                      restarted if it dies
//!              ├─► [bwrap] hive serve (ada)   restarted with backoff if it dies
//!              └─► [bwrap] hive serve (bob)
//!   Ctrl-C, `hivectl drain`: every harness is drained, then the broker; a second Ctrl-C kills at once
//!   SIGHUP: the configuration is read again
//! ```
//!
//! Which harnesses run follows the agents that the broker has ([`fleet`]), those that were created
//! at run time included.
//!
//! What it is not: it keeps no state. All of it is in the directories that the broker and the
//! agents own; a second `up` goes on where the first ended.
//!
//! Invariant: when this command ends, however it ends, no process that it started is left.

mod binaries;
mod child;
mod claude;
mod delete;
mod environment;
mod error;
mod fleet;
mod follow;
mod host_path;
mod isolation;
mod link;
mod log;
mod next;
mod plan;
mod process_tree;
mod purge;
mod reload;
mod settings;
mod start;
mod supervise;
mod unconfined;

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;

pub(crate) use self::binaries::resolve;
pub(crate) use self::error::UpError;
pub(crate) use self::isolation::sandboxes;

use self::binaries::Binaries;
use self::child::{Registry, Spec};
use self::fleet::{Fleet, Wanted};
use self::isolation::{Isolation, Tools};
use self::link::{BrokerStart, Registrar};
use self::plan::Plan;
use self::supervise::{Deadline, Ended, Stop, Supervised};
use crate::cli::Global;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::output::{Output, note};

/// How long the broker may take to answer for the first time.
const BROKER_START_MAX: Duration = Duration::from_secs(20);
/// How long a harness may take to end: its running turn has a grace time of its own.
const HARNESS_STOP_MAX: Duration = Duration::from_secs(45);
/// How long the broker may take to end.
const BROKER_STOP_MAX: Duration = Duration::from_secs(15);

/// The first descriptor after the standard ones.
const FIRST_OTHER_FD: i32 = 3;

const AFTER_HELP: &str = "\
Every agent has a home of its own (.hive/agents/NAME/home), so that sessions and logins do not mix. A key in the environment \
(ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN) reaches every agent. If you are logged in by claude's own \
dialogue instead, that login belongs to your home, not to theirs: either run `claude setup-token` once and export \
CLAUDE_CODE_OAUTH_TOKEN, or log each agent in with `hivectl login NAME` while the hive runs.

Each agent runs in a sandbox, if bubblewrap (bwrap) is installed and works: it sees the system's programs, its own directories and what \
`readable`, `writable` and `devices` in hive.toml grant. `isolation` in hive.toml states the level that has to be reached; without it \
the best that works here is used, and printed.

Ctrl-C drains: running turns get a grace time, accepted mail is on disk. A second Ctrl-C ends everything at once.";

/// Run a hive in the foreground: the broker, and one harness for each agent of the configuration.
#[derive(Args, Debug)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Up {
    /// The configuration
    #[arg(long, default_value = "hive.toml", value_name = "FILE")]
    config: PathBuf,
    /// Where the hive lives, as far as the configuration does not say it: database, sockets, logs,
    /// the agents' directories
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
    pub(crate) async fn run(self, global: &Global) -> Result<Exit, Failure> {
        // bubblewrap passes what it inherits on to the agent.
        close_fds::set_fds_cloexec(FIRST_OTHER_FD, &[]);
        let plan = Arc::new(Plan::make(&self.config, &self.state)?);
        let binaries = Binaries::find()?;
        let claude =
            claude::choose(self.claude.as_deref(), self.fallback_claude.as_deref(), &plan)?;
        supervise::refuse_second(&plan).await?;
        let mut signals = Signals::new().map_err(UpError::Signals)?;
        let registry = Registry::new().map_err(UpError::Signals)?;
        let registrar = Registrar::start();
        let broker = broker_spec(&plan, &binaries, registrar.clone());
        let tools = Tools {
            claude: claude.program.clone(),
            binaries,
            caller: environment::of_caller(),
            registry: registry.clone(),
            registrar,
        };
        let mut isolation = Isolation::new(self.no_isolation, tools);
        let mut chosen = BTreeMap::new();
        for agent in &plan.agents {
            let choice = tokio::select! {
                choice = isolation.choose(&plan, agent) => choice,
                () = signals.stop.asked() => {
                    registry.bury_all().await;
                    return Err(UpError::Interrupted.into());
                }
            };
            match choice {
                Ok(choice) => drop(chosen.insert(agent.name.clone(), choice)),
                // The others are started; the fleet reports this one, and tries it again.
                Err(error) if error.may_pass() => {}
                Err(error) => return Err(error.into()),
            }
        }

        let (told, mut ended) = mpsc::unbounded_channel();
        let broker = Supervised::start(broker, registry.clone(), Some(told));
        if let Err(failure) = supervise::first_answer(&plan, &mut ended, &mut signals.stop).await {
            broker.stop(Deadline::Now).await;
            return Err(failure.into());
        }
        claude.announce(&plan);
        isolation.announce(&plan, &chosen);
        next::print(&plan);

        let context = Context {
            socket: plan.operator_socket(),
            timeout: global.answer_timeout(),
            patience: None,
            out: Output::stdout(global.json),
        };
        let (wants, mut wanted) = watch::channel(Wanted::default());
        let watching = tokio::spawn(follow::run(context, wants));
        let mut hive = Hive {
            fleet: Fleet::new(plan, isolation),
            broker,
            config: self.config,
            state: self.state,
        };
        let why = hive.run(&mut signals, &mut wanted, &mut ended, &registry).await;
        watching.abort();
        hive.end(why, &mut signals.stop, &mut ended, &registry).await;
        Ok(Exit::Ok)
    }
}

/// Why a hive ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// A signal, or the terminal was closed.
    Asked,
    /// The operator drained the broker, which has ended.
    Drained,
}

/// What runs.
#[derive(Debug)]
struct Hive {
    fleet: Fleet,
    broker: Supervised,
    /// The configuration and the hive's directory, as given.
    config: PathBuf,
    state: PathBuf,
}

impl Hive {
    /// Runs until there is a reason to end.
    async fn run(
        &mut self,
        signals: &mut Signals,
        wanted: &mut watch::Receiver<Wanted>,
        ended: &mut UnboundedReceiver<Ended>,
        registry: &Registry,
    ) -> Why {
        let had_terminal = has_terminal();
        loop {
            let retry_at = self.fleet.retry_at();
            tokio::select! {
                () = signals.stop.asked() => return Why::Asked,
                _ = signals.hangup.recv() => {
                    // That is how a closed terminal says so.
                    if had_terminal && !has_terminal() {
                        return Why::Asked;
                    }
                    tokio::select! {
                        () = self.reload() => {}
                        () = signals.stop.asked() => return Why::Asked,
                    }
                }
                _ = signals.child.recv() => registry.reap(),
                Ok(()) = wanted.changed() => {
                    let now = wanted.borrow_and_update().clone();
                    tokio::select! {
                        () = self.fleet.follow(now) => {}
                        () = signals.stop.asked() => return Why::Asked,
                    }
                }
                () = self.fleet.ended() => {
                    tokio::select! {
                        () = self.fleet.reconcile() => {}
                        () = signals.stop.asked() => return Why::Asked,
                    }
                }
                () = at(retry_at) => {
                    tokio::select! {
                        () = self.fleet.try_again() => {}
                        () = signals.stop.asked() => return Why::Asked,
                    }
                }
                Some(Ended { is_clean, .. }) = ended.recv() => {
                    // Only the operator's drain ends it so; whatever else ended it, it is started
                    // again.
                    if is_clean {
                        return Why::Drained;
                    }
                }
            }
        }
    }

    /// Reads the configuration again and passes it on.
    async fn reload(&mut self) {
        let plan = match Plan::make(&self.config, &self.state) {
            Ok(plan) => plan,
            Err(error) => {
                let error = Failure::from(error);
                note(&format!("the configuration is not taken over, and nothing changed: {error}"));
                return;
            }
        };
        let restart = reload::needs_restart(self.fleet.plan(), &plan);
        let changed = self.fleet.configure(plan).await;
        self.broker.hang_up();
        let names: Vec<String> = changed.iter().map(ToString::to_string).collect();
        note(&format!("{} was read again", shown(&self.fleet.plan().config_file)));
        if !names.is_empty() {
            note(&format!(
                "    from their next turns on, settings of {} have changed",
                names.join(", ")
            ));
        }
        if !restart.is_empty() {
            note(&format!(
                "    changed, and in force only when `hivectl up` is started again: {}",
                restart.join(", ")
            ));
        }
    }

    /// Ends everything: harnesses first, so that they can still hand their turns back; then the
    /// broker.
    async fn end(
        self,
        why: Why,
        stop: &mut Stop,
        ended: &mut UnboundedReceiver<Ended>,
        registry: &Registry,
    ) {
        let Self { fleet, broker, .. } = self;
        match why {
            Why::Asked => note(
                "draining: running turns get their grace time; Ctrl-C again ends everything at once",
            ),
            Why::Drained => note(
                "the broker was drained; it runs again until the harnesses have handed their turns back",
            ),
        }
        let plan = fleet.plan().clone();
        let down = async {
            if why == Why::Drained {
                // Without it the turns that run could not be settled, and would cost their mail an
                // attempt.
                supervise::answers_again(&plan, ended).await;
            }
            fleet.drain().await;
            broker.stop(Deadline::After(BROKER_STOP_MAX)).await;
        };
        let mut down = std::pin::pin!(down);
        tokio::select! {
            () = &mut down => note("all is down; the mail is kept"),
            () = stop.asked() => {
                registry.kill_all();
                // To see them all dead, and nothing started again.
                down.await;
                note("killed; what was accepted is on disk");
            }
        }
    }
}

/// Waits until then, or for ever.
async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Whether this program still has the terminal that it was started from.
fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}

fn broker_spec(plan: &Plan, binaries: &Binaries, registrar: Registrar) -> Spec {
    let mut args = vec!["--config".into(), plan.config_file.clone().into_os_string()];
    args.extend(["--state-dir".into(), plan.state_dir.clone().into_os_string()]);
    args.extend(["--runtime-dir".into(), plan.runtime_dir.clone().into_os_string()]);
    args.extend(["--agents-dir".into(), plan.agents_dir.clone().into_os_string()]);
    let env = environment::for_broker(&environment::of_caller());
    Spec {
        name: "hived".to_owned(),
        start: Arc::new(BrokerStart { program: binaries.hived.clone(), args, env, registrar }),
        dir: plan.base.clone(),
        log: plan.log_file("hived"),
        is_filtered: false,
        own_death_signal: true,
    }
}

/// The signals that this program acts on.
#[derive(Debug)]
struct Signals {
    /// Ctrl-C and SIGTERM.
    stop: Stop,
    /// SIGHUP: the configuration is read again.
    hangup: Signal,
    /// SIGCHLD.
    child: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        let stop = Stop {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        };
        Ok(Self {
            stop,
            hangup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
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
