//! The hive from its start to its end.
//!
//! ```text
//!   hivectl up ──► hived                      restarted if it dies
//!              ├─► [bwrap] hive serve (ada)   restarted with backoff if it dies
//!              └─► [bwrap] hive serve (bob)
//!   Ctrl-C, `hivectl drain`: every harness is drained, then the broker; a second Ctrl-C kills at once
//!   SIGHUP: the configuration is read again
//! ```
//!
//! Invariant: harnesses end before the broker does, so that they can requeue their turns.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hive_core::name::AgentName;
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::sync::watch;

use crate::context::Context;
use crate::error::Failure;
use crate::output::note;
use crate::spawn::spawn;
use crate::supervise::broker::link::Registrar;
use crate::supervise::files::display_path;
use crate::supervise::fleet::{Fleet, lines};
use crate::supervise::isolation::{Choice, Isolation, Tools};
use crate::supervise::launch::wanted::{self, Wanted, Wishes};
use crate::supervise::logs::{self, Harnesses};
use crate::supervise::process::child::Registry;
use crate::supervise::process::supervised::{Ended, Moment, Supervised};
use crate::supervise::setup::binaries::Binaries;
use crate::supervise::setup::plan::Plan;
use crate::supervise::setup::{claude, environment, reload};
use crate::supervise::signals::{Signals, Stop};
use crate::supervise::{UpError, broker, next};

/// Maximum time for the broker to end.
const BROKER_STOP_MAX: Duration = Duration::from_secs(15);

/// The first descriptor after the standard ones.
const FIRST_OTHER_FD: i32 = 3;

#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) config: PathBuf,
    pub(crate) state: PathBuf,
    /// The claude program, instead of the configuration's.
    pub(crate) claude: Option<PathBuf>,
    /// Used if claude is not installed or has no login.
    pub(crate) fallback_claude: Option<PathBuf>,
    pub(crate) no_isolation: bool,
}

/// Runs a hive until it is asked to end, or drained.
pub(crate) async fn run(options: Options, mut context: Context) -> Result<(), Failure> {
    // bubblewrap passes inherited descriptors on to the agent.
    close_fds::set_fds_cloexec(FIRST_OTHER_FD, &[]);
    let plan = Arc::new(Plan::make(&options.config, &options.state)?);
    let binaries = Binaries::find()?;
    let claude =
        claude::choose(options.claude.as_deref(), options.fallback_claude.as_deref(), &plan)?;
    let _place = broker::take_place(&plan).await?;
    let mut signals = Signals::new().map_err(UpError::Signals)?;
    let registry = Registry::new().map_err(UpError::Signals)?;
    let registrar = Registrar::start();
    let spec = broker::spec(&plan, &binaries, registrar.clone());
    let tools = Tools {
        claude: claude.program.clone(),
        binaries,
        caller: environment::of_caller(),
        registry: registry.clone(),
        registrar,
    };
    let mut isolation = Isolation::new(options.no_isolation, tools);
    let chosen = tokio::select! {
        chosen = choose_levels(&mut isolation, &plan) => chosen?,
        () = signals.stop.asked() => {
            registry.bury_all().await;
            return Err(UpError::Interrupted.into());
        }
    };

    let (sender, mut ended) = mpsc::unbounded_channel();
    let observer = move |moment| {
        if let Moment::Ended(ended) = moment {
            // After the start there may be no receiver.
            let _ = sender.send(ended);
        }
    };
    let broker = Supervised::start(spec, registry.clone(), Box::new(observer));
    if let Err(failure) = broker::first_answer(&plan, &mut ended, &mut signals.stop).await {
        broker.stop(None).await;
        return Err(failure.into());
    }
    claude.announce(&plan);
    isolation.announce(&plan, &chosen);
    next::print(&plan);

    context.socket = plan.operator_socket();
    let (wants, mut wanted) = watch::channel(Wanted::default());
    let (wants_logs, logs_wanted) = mpsc::unbounded_channel();
    let wishes = Wishes { fleet: wants, logs: wants_logs };
    let launching = wanted::run(context.socket.clone(), context.timeout, wishes);
    let launching = spawn("launcher", launching);
    let harnesses = Harnesses::Files(Arc::clone(&plan), registry.clone());
    let logs = logs::run(context.socket.clone(), harnesses, logs_wanted);
    let logs = spawn("logs", logs);
    let lines = spawn("lines of the hive", lines::run(context));
    let mut hive = Hive { fleet: Fleet::new(plan, isolation), broker, options };
    let why = hive.run(&mut signals, &mut wanted, &mut ended, &registry).await;
    lines.abort();
    launching.abort();
    logs.abort();
    hive.end(why, &mut signals.stop, &mut ended, &registry).await;
    Ok(())
}

async fn choose_levels(
    isolation: &mut Isolation,
    plan: &Arc<Plan>,
) -> Result<BTreeMap<AgentName, Choice>, UpError> {
    let mut chosen = BTreeMap::new();
    for agent in &plan.agents {
        match isolation.choose(plan, agent).await {
            Ok(choice) => drop(chosen.insert(agent.name.clone(), choice)),
            // The others are started; the fleet reports this one, and tries it again.
            Err(error) if error.may_pass() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(chosen)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// A signal, or the terminal was closed.
    Asked,
    /// The operator drained the broker, which has ended.
    Drained,
}

#[derive(Debug)]
struct Hive {
    fleet: Fleet,
    broker: Supervised,
    options: Options,
}

/// The next work of the hive, which a signal may interrupt.
enum Task {
    Reload,
    Follow(Wanted),
    Reconcile,
    Retry,
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
            let task = tokio::select! {
                () = signals.stop.asked() => return Why::Asked,
                // A closed terminal sends this signal, too.
                _ = signals.hangup.recv() => if had_terminal && !has_terminal() {
                    return Why::Asked;
                } else {
                    Task::Reload
                },
                _ = signals.child.recv() => {
                    registry.reap();
                    continue;
                }
                Ok(()) = wanted.changed() => Task::Follow(wanted.borrow_and_update().clone()),
                () = self.fleet.ended() => Task::Reconcile,
                () = at(retry_at) => Task::Retry,
                // Only the operator's drain ends it cleanly; otherwise it is started again.
                Some(Ended { is_clean, .. }) = ended.recv() => if is_clean {
                    return Why::Drained;
                } else {
                    continue;
                },
            };
            tokio::select! {
                () = self.perform(task) => {}
                () = signals.stop.asked() => return Why::Asked,
            }
        }
    }

    async fn perform(&mut self, task: Task) {
        match task {
            Task::Reload => self.reload().await,
            Task::Follow(wanted) => self.fleet.follow(wanted).await,
            Task::Reconcile => self.fleet.reconcile().await,
            Task::Retry => self.fleet.try_again().await,
        }
    }

    /// Reads the configuration again and passes it on.
    async fn reload(&mut self) {
        let plan = match Plan::make(&self.options.config, &self.options.state) {
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
        note(&format!("{} was read again", display_path(&self.fleet.plan().config_file)));
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

    /// Ends everything: harnesses first, so that they can still requeue their turns; then the
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
                broker::answers_again(&plan, ended).await;
            }
            fleet.drain().await;
            broker.stop(Some(BROKER_STOP_MAX)).await;
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

async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

/// Returns whether this program still has the terminal that it was started from.
fn has_terminal() -> bool {
    io::stdin().is_terminal() || io::stdout().is_terminal() || io::stderr().is_terminal()
}
