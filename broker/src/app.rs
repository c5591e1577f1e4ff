//! The composition root: builds the parts, runs them, and shuts them down cleanly.
//!
//! Shutdown: new work and waiting calls are refused; calls in flight get `DRAIN_DEADLINE`. Then
//! connections are closed, the writer finishes its queue, and the database is folded and closed.
//! Invariant: whatever was answered "accepted" is on disk before the process ends.

mod tasks;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use hive_core::config::Metrics;
use hive_export::Export;
use sd_notify::NotifyState;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Mutex;

use crate::cli::Cli;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Settings};
pub use crate::doors::Parent;
use crate::doors::{Doors, Ends, Open};
use crate::engine::background::CONFIGURATION;
use crate::engine::directories::Directories;
use crate::engine::memory::Memory;
use crate::engine::start::Started;
use crate::engine::{Engine, Parts, first};
use crate::files;
use crate::metrics::door::Door;
use crate::metrics::page::Page;
use crate::notify::Notifier;
use crate::rpc::listen::Sockets;
use crate::rpc::{Rpc, server};
use crate::service_manager;
use crate::spawn::spawn;
use crate::store::before::Migration;
use crate::store::turn_events::TurnEvents;
use crate::store::{Migrating, SteppedStore, Store, Tx};
use crate::supervisor::Supervisor;
use crate::task::Tracing;
use tasks::{Helpers, start_reconcilers};

/// The status for the service manager while the broker serves calls.
const SERVING: &str = "serving calls";
/// Maximum time for calls in flight when the broker ends.
const DRAIN_DEADLINE: Duration = Duration::from_secs(5);
/// Time that the service manager gives a migration until its next report.
const MIGRATION_SILENCE_MAX: Duration = Duration::from_secs(60);

/// Runs the broker until a signal or the operator ends it.
pub async fn run(cli: Cli) -> anyhow::Result<()> {
    // Before anything else: a process that is started later must not inherit the descriptor.
    let parent = Parent {
        supervisor: Supervisor::from_env()?,
        inherited: service_manager::inherited(),
        keeps_sockets: cli.keep_sockets && service_manager::is_there(),
    };
    files::raise();
    let settings = config::load(&cli)?;
    // Before a client can see the broker: from here on a signal shuts it down cleanly.
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut reload = signal(SignalKind::hangup())?;
    let clock = Arc::new(SystemClock::new().context("the clock of this boot cannot be read")?);
    let running = start(&settings, clock, parent).await?;
    service_manager::tell(&[NotifyState::Ready, NotifyState::Status(SERVING)]);
    running.feed_watchdog();
    tracing::info!(
        state_dir = %settings.state_dir.display(),
        socket = %settings.layout().operator_socket().display(),
        agents = settings.agents.as_ref().map_or(0, std::collections::BTreeMap::len),
        "hived is ready"
    );
    loop {
        tokio::select! {
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
            () = running.ends.shutdown.cancelled() => break,
            _ = reload.recv() => {
                let began = NotifyState::monotonic_usec_now();
                service_manager::tell(&[NotifyState::Reloading].into_iter().chain(began).collect::<Vec<_>>());
                reloaded(&cli, &running).await;
                service_manager::tell(&[NotifyState::Ready, NotifyState::Status(SERVING)]);
            }
        }
    }
    running.end().await;
    Ok(())
}

/// A running broker.
#[derive(Debug)]
pub struct Running {
    engine: Arc<Engine>,
    rpc: Rpc,
    sockets: Arc<Sockets>,
    ends: Ends,
}

/// Tells the log and the service manager how far the migration of the database is. The service
/// manager would otherwise end a start that takes long.
fn report(migrating: &Migrating) {
    tracing::info!("{migrating}");
    let (text, more) = (migrating.to_string(), u32::try_from(MIGRATION_SILENCE_MAX.as_micros()));
    service_manager::tell(&[
        NotifyState::Status(&text),
        NotifyState::ExtendTimeoutUsec(more.unwrap_or(u32::MAX)),
    ]);
}

/// Opens the files of a broker whose writer is a thread. `begin` is called once its directory is
/// its own, if there is a database that needs no migration.
fn parts(
    settings: &Settings,
    clock: Arc<dyn Clock>,
    begin: impl FnOnce(),
) -> anyhow::Result<Parts> {
    let memory = Arc::new(Memory::default());
    let rows = |tx: &Tx<'_>| first::rows(tx, &settings.limits, settings.agents.as_ref());
    let (seen, committed) = (Arc::clone(&clock), Arc::clone(&memory) as _);
    let migration = Migration { report: &report, keeps_copy: settings.keeps_copy };
    let store = Store::open_filled(&settings.state_dir, seen, committed, begin, rows, migration)?;
    Ok(around(store, memory, settings, clock))
}

/// Opens the database and closes it again, which migrates one of an older version.
pub fn migrate(settings: &Settings, clock: Arc<dyn Clock>) -> anyhow::Result<()> {
    parts(settings, clock, || {})?.store.close();
    Ok(())
}

/// Opens the files of a broker whose writer is stepped, so that it needs no thread of its own.
pub fn stepped_parts(
    settings: &Settings,
    clock: Arc<dyn Clock>,
) -> anyhow::Result<(Parts, SteppedStore)> {
    let memory = Arc::new(Memory::default());
    let (store, stepped) =
        Store::open_stepped(&settings.state_dir, Arc::clone(&clock), Arc::clone(&memory) as _)?;
    Ok((around(store, memory, settings, clock), stepped))
}

/// Returns the parts of an engine on this store.
fn around(store: Store, memory: Arc<Memory>, settings: &Settings, clock: Arc<dyn Clock>) -> Parts {
    Parts {
        store,
        // Its first use opens it: mail does not wait for lines of turns.
        turn_events: Arc::new(TurnEvents::closed(&settings.state_dir)),
        memory,
        clock,
        limits: settings.limits.clone(),
        identity: settings.identity.clone(),
        actions: settings.actions.clone(),
        directories: Directories::new(
            settings.state_dirs.clone(),
            settings.agents_dir.clone(),
            settings.reminders_dir.clone(),
        ),
        sandboxes: Arc::default(),
    }
}

/// Starts a broker and returns once it serves calls.
pub async fn start(
    settings: &Settings,
    clock: Arc<dyn Clock>,
    parent: Parent,
) -> anyhow::Result<Running> {
    let (ends, sandboxes) = (Ends::default(), Arc::default());
    let mut doors = Doors::new(settings, ends.clone(), Arc::clone(&sandboxes), parent);
    let parts = parts(settings, clock, || doors.begin());
    serve(parts.map(|parts| Parts { sandboxes, ..parts }), settings, ends, doors).await
}

/// Starts a broker on open files. If its writer is stepped, it must be stepped already: the start
/// waits for commits.
pub async fn start_on(
    parts: Parts,
    settings: &Settings,
    parent: Parent,
) -> anyhow::Result<Running> {
    let ends = Ends::default();
    let doors = Doors::new(settings, ends.clone(), Arc::clone(&parts.sandboxes), parent);
    serve(Ok(parts), settings, ends, doors).await
}

/// Serves calls on the sockets, or removes them if the broker does not start.
async fn serve(
    parts: anyhow::Result<Parts>,
    settings: &Settings,
    ends: Ends,
    mut doors: Doors,
) -> anyhow::Result<Running> {
    let running = match parts {
        Ok(parts) => begin(parts, settings, ends, &mut doors).await,
        Err(error) => Err(error),
    };
    if running.is_err() {
        doors.abandon().await;
    }
    running
}

/// Starts the engine, and has the sockets serve its calls.
async fn begin(
    parts: Parts,
    settings: &Settings,
    ends: Ends,
    doors: &mut Doors,
) -> anyhow::Result<Running> {
    let traced = |traces| Export::new(traces, &settings.identity.hive_name).map(Arc::new);
    let export = settings.traces.as_ref().map(traced).transpose()?;
    if export.is_some() {
        parts.store.begin_traces();
    }
    let notifier = settings.notify.as_ref().map(Notifier::new).transpose()?;
    if notifier.is_some() {
        parts.store.use_outbox();
    }
    let measures = settings.metrics.as_ref().map(|_| parts.store.measure());
    let Started { engine, names } = Engine::start_with(parts, settings.agents.clone()).await?;
    let engine = Arc::new(engine);
    engine.declare_heartbeats(settings.heartbeats.clone());
    let Open { sockets, agent_calls, operator_calls } = doors.open().await?;
    let rpc = Rpc::new(
        Arc::clone(&engine),
        ends.tasks.clone(),
        ends.shutdown.clone(),
        Arc::clone(&sockets),
    );
    rpc.open_sockets(&names);
    sockets.close_unused();
    sockets.settled().await;
    engine.ready().await.context("the database could not be prepared")?;
    // The place in the event log is taken before the first call, whose spans would be missing else.
    let tracing = match export {
        Some(export) => {
            let follower = engine.follower().await.context("the event log could not be read")?;
            Some(Tracing { export, follower: Mutex::new(follower) })
        }
        None => None,
    };
    // Before the first call: a broker that does not start must not have answered one.
    let door = match &settings.metrics {
        Some(Metrics::Socket { path, group }) => {
            let operators = settings.socket_group.as_deref();
            let door = Door::open(path, group.as_deref(), operators);
            Some(door.context("the metrics cannot be offered (broker.metrics.socket)")?)
        }
        // One that is taken is tried again below: it must not keep the broker from starting.
        Some(Metrics::Listen(address)) => Door::port(*address).ok(),
        None => None,
    };
    let health = tonic_health::server::HealthReporter::new();
    operator_calls.set(server::operator_calls(&rpc, &health))?;
    agent_calls.set(server::agent_calls(&rpc, &health))?;
    let counts = tracing.as_ref().map(|tracing| tracing.export.counts()).unwrap_or_default();
    start_reconcilers(
        &ends.tasks,
        &engine,
        &ends.stop,
        settings,
        Helpers { notifier, tracing, health },
    );
    if let (Some(place), Some(measures)) = (&settings.metrics, measures) {
        let (page, stop) =
            (Arc::new(Page::new(Arc::clone(&engine), measures, counts)), ends.stop.clone());
        match (door, place) {
            (Some(door), _) => spawn(&ends.tasks, door.serve(page, stop)),
            (None, Metrics::Listen(address)) => {
                spawn(&ends.tasks, Door::serve_port(*address, page, stop));
            }
            (None, Metrics::Socket { .. }) => {}
        }
    }
    Ok(Running { engine, rpc, sockets, ends })
}

/// Applies a changed configuration file. An invalid file is rejected with an error.
async fn reloaded(cli: &Cli, running: &Running) {
    let settings = match config::load(cli) {
        Ok(settings) => settings,
        Err(error) => {
            running.engine.task_ended_badly(CONFIGURATION, &error);
            tracing::error!("{error}\nnothing was changed");
            return;
        }
    };
    let Some(agents) = settings.agents.clone() else {
        tracing::warn!("there is no configuration file to read again");
        return;
    };
    let applied = async {
        running.engine.declare(agents).await?;
        running.engine.declare_heartbeats(settings.heartbeats);
        running.engine.directories().set_named(settings.state_dirs);
        running.sockets.set_peers(settings.peers);
        running.rpc.reconcile_sockets().await
    };
    match applied.await {
        Ok(()) => {
            running.engine.task_succeeded(CONFIGURATION);
            tracing::info!(
                "the configuration file was read again; bounds and names of the hive, `notify`, `journal_units`, `actions`, `metrics`, `traces`, and directories change with a restart"
            );
        }
        Err(error) => {
            running.engine.task_ended_badly(CONFIGURATION, &error);
            tracing::error!(%error, "the configuration file could not be applied; nothing was changed");
        }
    }
}

impl Running {
    /// Returns the engine behind the services.
    #[must_use]
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Tells the service manager again and again that the broker works: that its tasks run, and
    /// that its writer does.
    fn feed_watchdog(&self) {
        let Some(longest) = service_manager::watchdog() else { return };
        let (engine, stop) = (Arc::clone(&self.engine), self.ends.stop.clone());
        spawn(&self.ends.tasks, async move {
            // As systemd advises: twice as often as it has to be.
            while stop.run_until_cancelled(tokio::time::sleep(longest / 2)).await.is_some() {
                engine.writer_answers().await;
                service_manager::tell(&[NotifyState::Watchdog]);
            }
        });
    }

    async fn end(self) {
        tracing::info!("hived is ending");
        service_manager::tell(&[NotifyState::Stopping]);
        self.engine.drain();
        self.ends.stop.cancel();
        for tracker in [&self.ends.servers, &self.ends.tasks, &self.ends.accepting] {
            tracker.close();
        }
        let calls = async {
            self.ends.servers.wait().await;
            self.ends.tasks.wait().await;
        };
        if tokio::time::timeout(DRAIN_DEADLINE, calls).await.is_err() {
            tracing::warn!("some calls did not end in time; their connections are closed");
        }
        self.ends.close.cancel();
        self.sockets.remove_files();
        let rest = async {
            self.ends.accepting.wait().await;
            self.ends.servers.wait().await;
        };
        if tokio::time::timeout(DRAIN_DEADLINE, rest).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
        let engine = self.engine;
        if tokio::task::spawn_blocking(move || engine.store().close()).await.is_err() {
            tracing::error!("the database could not be closed; the next start will put it right");
        }
        tracing::info!("hived has ended");
    }
}
