//! Runs claude for a step of a turn: in a new process, or in the resident one.
//!
//! Invariant: a claude is started only while the harness holds the lock on the state directory. A
//! resident one is used again only for a turn with the same fingerprint.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};

use crate::boot;
use crate::claude::event;
use crate::claude::outcome::Exit;
use crate::cli::process::ProcessMode;
use crate::config::Config;
use crate::driver::LoopEvent;
use crate::driver::prepare::{self, Prepared};
use crate::process::child::{self, Printed, RunError};
use crate::process::family::Family;
use crate::process::lock::{LockError, StateLock};
use crate::process::resident::{Resident, ResidentLimits, Turn};
use crate::turn::input::Input;
use crate::turn::output::{Launch, Signal};

/// Why a turn's claude did not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error(transparent)]
    Files(#[from] boot::WriteError),
    #[error("cannot use {path}: {source}; check its owner and permissions")]
    Directory { path: String, source: std::io::Error },
    #[error(
        "cannot read the system prompt {path}: {source}; correct HIVE_SYSTEM_PROMPT, or unset it for the built-in one"
    )]
    SystemPrompt { path: String, source: std::io::Error },
    #[error("hive-mcp was not found: install it beside hive or on PATH, or name it with HIVE_MCP")]
    NoBridge,
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(transparent)]
    Run(#[from] RunError),
    #[error("stopped before claude was started")]
    Stopped,
}

/// A runner of claude, for one turn after the other.
#[derive(Clone, Debug)]
pub struct Runner {
    config: Arc<Config>,
    family: Arc<Family>,
    /// The resident claude, if there is one.
    resident: Arc<Mutex<Option<Resident>>>,
    /// Whether the plugins were installed.
    plugins: Arc<AtomicBool>,
}

impl Runner {
    /// Creates a runner with this configuration.
    pub fn new(config: Arc<Config>, family: Arc<Family>) -> Self {
        Self { config, family, resident: Arc::default(), plugins: Arc::default() }
    }

    /// Returns the process token of the resident claude, if there is one: the next turn runs in it.
    pub fn process_token(&self) -> Option<String> {
        // While a turn runs in it, no other turn begins.
        let resident = self.resident.try_lock().ok()?;
        resident
            .as_ref()
            .filter(|resident| resident.is_alive())
            .map(|resident| resident.process_token.clone())
    }

    /// Applies other settings from the next turn on.
    pub fn configure(&mut self, config: Arc<Config>, plugins_changed: bool) {
        self.config = config;
        if plugins_changed {
            self.plugins.store(false, Ordering::Relaxed);
        }
    }

    /// Returns whether the plugins must still be installed, and marks them as installed.
    pub fn claim_plugins(&self) -> bool {
        !self.plugins.swap(true, Ordering::Relaxed)
    }

    /// Ends the resident claude.
    pub async fn end_resident(&self) {
        if let Some(resident) = self.resident.lock().await.take() {
            resident.end().await;
        }
    }

    /// Ends all other processes except tasks and the resident claude. Call it only while no turn
    /// runs.
    pub async fn end_strays(&self) {
        self.family.end_all().await;
    }

    /// Runs claude for a step of a turn and reports the result.
    pub async fn run(
        self,
        launch: Launch,
        process_token: String,
        signals: mpsc::UnboundedReceiver<Signal>,
        to: mpsc::Sender<LoopEvent>,
    ) {
        let (printer, mut printed) = mpsc::channel(256);
        let forward = async {
            while let Some(line) = printed.recv().await {
                let _ = to.send(LoopEvent::Printed(line)).await;
            }
        };
        let run = async {
            for remark in prepare::guard(&self.config, &launch)? {
                let _ = to.send(LoopEvent::Noted(remark)).await;
            }
            match self.config.process.mode {
                ProcessMode::PerTurn => {
                    // A resident one may remain from before a change of the mode.
                    self.end_resident().await;
                    self.once(&launch, &process_token, signals, printer).await
                }
                ProcessMode::Resident => {
                    self.within_resident(&launch, &process_token, signals, printer).await
                }
            }
        };
        let (exit, ()) = tokio::join!(run, forward);
        let input = match exit {
            Ok(exit) => Input::Exited(exit),
            Err(error) => Input::NotStarted(error.to_string()),
        };
        // The loop is gone only when the program ends.
        let _ = to.send(LoopEvent::Local(input)).await;
    }

    async fn lock(
        &self,
        signals: &mut mpsc::UnboundedReceiver<Signal>,
    ) -> Result<StateLock, LaunchError> {
        let config = &self.config;
        prepare::private(&config.run_dir)?;
        tokio::select! {
            lock = StateLock::acquire(&config.state_dir, &config.run_dir, config.take_over) => Ok(lock?),
            _ = signals.recv() => Err(LaunchError::Stopped),
        }
    }

    async fn once(
        &self,
        launch: &Launch,
        process_token: &str,
        mut signals: mpsc::UnboundedReceiver<Signal>,
        printed: mpsc::Sender<Printed>,
    ) -> Result<Exit, LaunchError> {
        let lock = self.lock(&mut signals).await?;
        // While this holds the lock, no other process uses the files that are rewritten.
        let spec = Prepared::new(&self.config, launch)?.spec(&self.config, process_token)?;
        let prompt = prepare::prompt(&self.config, launch);
        Ok(child::run(spec, prompt, lock, &self.family, &mut signals, &printed).await?)
    }

    async fn within_resident(
        &self,
        launch: &Launch,
        process_token: &str,
        mut signals: mpsc::UnboundedReceiver<Signal>,
        printed: mpsc::Sender<Printed>,
    ) -> Result<Exit, LaunchError> {
        let mut slot = self.resident.lock().await;
        let prepared = Prepared::new(&self.config, launch)?;
        let fingerprint = prepared.fingerprint(&self.config);
        let fits = |resident: &Resident| {
            resident.is_alive()
                && launch.continues
                && resident.fingerprint == fingerprint
                && resident.process_token == process_token
        };
        if let Some(old) = slot.take_if(|resident| !fits(resident)) {
            old.end().await;
        }
        let mut turn = None;
        loop {
            let resident = match slot.take() {
                Some(resident) => resident,
                None => {
                    let signals =
                        turn.as_mut().map_or(&mut signals, |turn: &mut Turn| &mut turn.signals);
                    let lock = self.lock(signals).await?;
                    let spec = prepared.spec(&self.config, process_token)?;
                    let family = Arc::clone(&self.family);
                    Resident::start(
                        spec,
                        lock,
                        family,
                        self.limits(),
                        fingerprint.clone(),
                        process_token.to_owned(),
                    )?
                }
            };
            let given = match turn.take() {
                Some(turn) => turn,
                None => {
                    let (_, none) = mpsc::unbounded_channel();
                    let signals = std::mem::replace(&mut signals, none);
                    Turn {
                        text: prepare::prompt(&self.config, launch),
                        signals,
                        printed: printed.clone(),
                    }
                }
            };
            match resident.turn(given).await {
                Ok(exit) => {
                    if resident.is_alive() {
                        *slot = Some(resident);
                    } else {
                        resident.end().await;
                    }
                    return Ok(exit);
                }
                // The process ended before it read the turn; another process replaces it.
                Err(back) => {
                    resident.end().await;
                    turn = Some(back);
                }
            }
        }
    }

    fn limits(&self) -> ResidentLimits {
        let process = &self.config.process;
        ResidentLimits {
            idle: (process.resident_idle_secs > 0)
                .then(|| Duration::from_secs(process.resident_idle_secs)),
            memory_bytes: (process.resident_memory_mib > 0)
                .then(|| process.resident_memory_mib.saturating_mul(1024 * 1024)),
        }
    }
}

/// Returns the input that a printed line means for the machine.
pub fn read(printed: &Printed) -> Option<Input> {
    match printed {
        Printed::Stdout(line) if line.cut => None,
        Printed::Stdout(line) => {
            event::parse(&line.text).map(|event| Input::Event(Box::new(event)))
        }
        Printed::Stderr(line) => Some(Input::Stderr(line.text.clone())),
    }
}
