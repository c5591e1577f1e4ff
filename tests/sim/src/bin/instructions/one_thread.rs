//! The real broker with its sockets, services and database, on the thread of its clients.
//!
//! What it is not: a simulation; it has the kernel's sockets and files, and no faults. Invariant:
//! the writer runs a batch when no task can go on without it, and before the thread waits for the
//! kernel.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use clap::Parser as _;
use hive_broker::app::{self, Running};
use hive_broker::cli::Cli;
use hive_broker::clock::ManualClock;
use hive_broker::config;
use hive_broker::store::{Step, SteppedStore};
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Most commands of one commit; no run queues as many.
const BATCH_COMMANDS: usize = 512;

/// A seed for the broker's tokens, so that they are the same in each run.
const SEED: u64 = 1;

#[derive(Debug)]
pub(crate) struct OneThread {
    // In this order: the tasks end before the directory is removed.
    runtime: Runtime,
    _running: Running,
    clock: Arc<ManualClock>,
    dir: TempDir,
}

impl OneThread {
    /// Starts a broker with this configuration, and otherwise default settings, on a new database.
    pub(crate) fn start(config: &str) -> anyhow::Result<Self> {
        hive_fault::seed(Some(SEED));
        let dir = hive_sim::directory()?;
        let path = |name: &str| dir.path().join(name).into_os_string();
        std::fs::write(path("hive.toml"), config)?;
        let mut arguments = vec!["hived".into()];
        for (option, name) in
            [("--config", "hive.toml"), ("--state-dir", "state"), ("--runtime-dir", "run")]
        {
            arguments.extend([option.into(), path(name)]);
        }
        let settings = config::load(&Cli::try_parse_from(arguments)?)?;
        // A clock that stands still: nothing falls due because a run takes longer.
        let clock = Arc::new(ManualClock::new("boot-0"));
        let (parts, writer) = app::stepped_parts(&settings, Arc::clone(&clock) as _)?;
        let writer = Mutex::new(writer);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_park(move || step(&writer))
            .build()?;
        let running = runtime.block_on(app::start_on(parts, &settings, app::Parent::default()))?;
        Ok(Self { runtime, _running: running, clock, dir })
    }

    /// Runs clients of the broker.
    pub(crate) fn run<T>(&self, clients: impl Future<Output = T>) -> T {
        self.runtime.block_on(clients)
    }

    /// Returns the clock of the broker, which stands still.
    pub(crate) fn clock(&self) -> Arc<ManualClock> {
        Arc::clone(&self.clock)
    }

    pub(crate) fn operator_socket(&self) -> PathBuf {
        self.dir.path().join("run/hived.sock")
    }

    pub(crate) fn agent_socket(&self, agent: &str) -> PathBuf {
        self.dir.path().join(format!("run/agents/{agent}/hive.sock"))
    }
}

/// Commits what is queued. After a fault of the database it stops, and the clients get errors.
fn step(writer: &Mutex<SteppedStore>) {
    let mut writer = writer.lock().unwrap_or_else(PoisonError::into_inner);
    while writer.step(BATCH_COMMANDS) == (Step::Batch { committed: true }) {}
}
