//! Running claude for a step of a turn: a process for it alone, or the one that stays.
//!
//! Invariant: a claude is started only with the lock on the state directory in hand, and a resident
//! one is used again only for a turn that needs exactly what it was started with.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, mpsc};

use crate::boot;
use crate::claude::event;
use crate::claude::outcome::Exit;
use crate::cli::process::ProcessMode;
use crate::config::Config;
use crate::driver::Happened;
use crate::driver::prepare::{self, Prepared};
use crate::process::child::{self, Printed, RunError};
use crate::process::family::Family;
use crate::process::lock::{LockError, StateLock};
use crate::process::resident::{Bounds, Resident, Turn};
use crate::turn::input::Input;
use crate::turn::output::{Launch, Signal};

/// Why a turn's claude did not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A file.
    #[error(transparent)]
    Files(#[from] boot::WriteError),
    /// A directory.
    #[error("cannot work with {path}: {source}")]
    Directory {
        /// Which one.
        path: String,
        /// What the host said.
        source: std::io::Error,
    },
    /// The system prompt.
    #[error(
        "cannot read the system prompt {path}: {source}; correct HIVE_SYSTEM_PROMPT, or unset it for the built-in one"
    )]
    SystemPrompt {
        /// Which file.
        path: String,
        /// What the host said.
        source: std::io::Error,
    },
    /// The bridge.
    #[error("hive-mcp is not there: install it beside hive or on PATH, or name it with HIVE_MCP")]
    NoBridge,
    /// The state directory.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The process.
    #[error(transparent)]
    Run(#[from] RunError),
    /// It was stopped before it began.
    #[error("stopped before claude was started")]
    Stopped,
}

/// Runs claude, one turn after the other.
#[derive(Clone, Debug)]
pub struct Runner {
    config: Arc<Config>,
    family: Arc<Family>,
    /// The claude that stays between turns, if there is one.
    resident: Arc<Mutex<Option<Resident>>>,
    /// Whether plugins were seen to.
    plugins: Arc<AtomicBool>,
}

impl Runner {
    /// Runs claude as configured.
    #[must_use]
    pub fn new(config: Arc<Config>, family: Arc<Family>) -> Self {
        Self { config, family, resident: Arc::default(), plugins: Arc::default() }
    }

    /// The secret of the claude that stays, where there is one: the next turn runs in it.
    #[must_use]
    pub fn process_token(&self) -> Option<String> {
        // While a turn runs in it nobody begins another one.
        let resident = self.resident.try_lock().ok()?;
        resident
            .as_ref()
            .filter(|resident| resident.is_alive())
            .map(|resident| resident.process_token.clone())
    }

    /// Uses other settings from the next turn on.
    pub fn configure(&mut self, config: Arc<Config>, plugins_changed: bool) {
        self.config = config;
        if plugins_changed {
            self.plugins.store(false, Ordering::Relaxed);
        }
    }

    /// Whether plugins are still to be seen to; true once.
    #[must_use]
    pub fn takes_plugins(&self) -> bool {
        !self.plugins.swap(true, Ordering::Relaxed)
    }

    /// Ends the claude that stays.
    pub async fn end_resident(&self) {
        if let Some(resident) = self.resident.lock().await.take() {
            resident.end().await;
        }
    }

    /// Ends whatever else was started and is neither a task nor a claude that stays. For when no
    /// turn runs.
    pub async fn end_strays(&self) {
        self.family.end_all().await;
    }

    /// Runs claude for a step of a turn and tells what comes of it.
    pub async fn run(
        self,
        launch: Launch,
        process_token: String,
        signals: mpsc::UnboundedReceiver<Signal>,
        to: mpsc::Sender<Happened>,
    ) {
        let (printer, mut printed) = mpsc::channel(256);
        let forward = async {
            while let Some(line) = printed.recv().await {
                let _ = to.send(Happened::Printed(line)).await;
            }
        };
        let run = async {
            for remark in prepare::guard(&self.config, &launch)? {
                let _ = to.send(Happened::Noted(remark)).await;
            }
            match self.config.process.mode {
                ProcessMode::PerTurn => {
                    // One of before a change of the mode.
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
        let _ = to.send(Happened::Local(input)).await;
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
        // With the lock in hand nobody uses the files that are written anew.
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
                        self.bounds(),
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
                // It ended before it saw the turn; another one takes its place.
                Err(back) => {
                    resident.end().await;
                    turn = Some(back);
                }
            }
        }
    }

    fn bounds(&self) -> Bounds {
        let process = &self.config.process;
        Bounds {
            idle: (process.resident_idle_secs > 0)
                .then(|| Duration::from_secs(process.resident_idle_secs)),
            memory_bytes: (process.resident_memory_mib > 0)
                .then(|| process.resident_memory_mib.saturating_mul(1024 * 1024)),
        }
    }
}

/// What a printed line tells the machine.
pub fn read(printed: &Printed) -> Option<Input> {
    match printed {
        Printed::Stdout(line) if line.cut => None,
        Printed::Stdout(line) => {
            event::parse(&line.text).map(|event| Input::Event(Box::new(event)))
        }
        Printed::Stderr(line) => Some(Input::Stderr(line.text.clone())),
    }
}
