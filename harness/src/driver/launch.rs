//! Starting claude for a turn: files, prompt, lock, process.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hive_proto::v1;
use tokio::sync::mpsc;

use crate::boot::mcp::{self, Bridge};
use crate::boot::{self, file, probe};
use crate::claude::command_line::{self, Invocation};
use crate::claude::environment;
use crate::claude::event;
use crate::claude::outcome::Exit;
use crate::config::Config;
use crate::driver::Happened;
use crate::process::child::{self, Printed, RunError, Spec};
use crate::process::family::Family;
use crate::process::lock::{LockError, StateLock};
use crate::prompt::occasion::{self, Telling};
use crate::prompt::system;
use crate::session;
use crate::turn::input::Input;
use crate::turn::job::Occasion;
use crate::turn::output::{Launch, Signal};

/// Why a turn's claude did not run.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A file.
    #[error(transparent)]
    Files(#[from] boot::WriteError),
    /// A directory.
    #[error("cannot create {path}: {source}")]
    Directory {
        /// Which one.
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

/// Runs claude for a turn and tells what comes of it.
pub async fn run(
    config: Arc<Config>,
    family: Arc<Family>,
    launch: Launch,
    process_token: String,
    mut signals: mpsc::UnboundedReceiver<Signal>,
    to: mpsc::Sender<Happened>,
) {
    let input = match run_to_end(&config, &family, &launch, &process_token, &mut signals, &to).await {
        Ok(exit) => Input::Exited(exit),
        Err(error) => Input::NotStarted(error.to_string()),
    };
    // The loop is gone only when the program ends.
    let _ = to.send(Happened::Local(input)).await;
}

async fn run_to_end(
    config: &Config,
    family: &Family,
    launch: &Launch,
    process_token: &str,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    to: &mpsc::Sender<Happened>,
) -> Result<Exit, LaunchError> {
    private(&config.run_dir)?;
    let lock = tokio::select! {
        lock = StateLock::acquire(&config.state_dir, &config.run_dir, config.take_over) => lock?,
        _ = signals.recv() => return Err(LaunchError::Stopped),
    };
    // With the lock in hand nobody uses the files that are written anew.
    let spec = prepare(config, launch, process_token)?;
    let (printer, mut printed) = mpsc::channel(256);
    let forward = async {
        while let Some(line) = printed.recv().await {
            let _ = to.send(Happened::Printed(line)).await;
        }
    };
    let run = async {
        let exit = child::run(spec, lock, family, signals, &printer).await;
        drop(printer);
        exit
    };
    let (exit, ()) = tokio::join!(run, forward);
    Ok(exit?)
}

/// Writes the files and puts the process together.
fn prepare(config: &Config, launch: &Launch, process_token: &str) -> Result<Spec, LaunchError> {
    let temporary = temporary(config);
    // claude leaves files there at every turn.
    let _ = std::fs::remove_dir_all(&temporary);
    private(&temporary)?;
    let environment = environment(config, &temporary);
    let own = std::env::current_exe().ok();
    let path = environment.get(OsStr::new("PATH")).cloned().unwrap_or_default();
    let program = mcp::find(config.mcp.as_deref(), own.as_deref(), &path).ok_or(LaunchError::NoBridge)?;
    let socket = std::path::absolute(&config.socket).unwrap_or_else(|_| config.socket.clone());
    let bridge = Bridge {
        server_name: &config.mcp_server_name,
        program: &program,
        socket: &socket,
        process_token,
        tool_groups: &launch.tool_groups,
        label: &launch.identity.label,
        log: &std::env::var("HIVE_LOG").unwrap_or_default(),
    };
    let files = boot::write(&config.run_dir, &system::render(&launch.identity), &bridge)?;
    let arguments = command_line::arguments(&Invocation {
        model: &launch.model,
        continues: launch.continues,
        settings: &files.settings,
        system_prompt: &files.system_prompt,
        mcp_config: &files.mcp_config,
        mcp_server_name: &config.mcp_server_name,
        tool_groups: &launch.tool_groups,
    });
    Ok(Spec {
        program: program_path(&config.claude),
        arguments,
        environment,
        dir: config.state_dir.clone(),
        input: prompt(config, launch),
    })
}

fn prompt(config: &Config, launch: &Launch) -> String {
    let Occasion::Mail(begun) = &launch.occasion else { return occasion::self_continue() };
    let delivery = begun.delivery.as_ref();
    let message_id = delivery.and_then(|delivery| delivery.message.as_ref()).map_or(0, |message| message.id);
    let came_back = delivery.is_some_and(|delivery| delivery.redelivery_cause() != v1::RedeliveryCause::Unspecified);
    let may_be_held = launch.continues && (launch.retry || came_back);
    let is_held = may_be_held && session::holds(&config.home_dir, &config.state_dir, message_id);
    let telling = match (is_held, launch.retry) {
        (true, true) => Telling::Retry,
        (true, false) => Telling::HeldAlready,
        (false, _) => Telling::Whole,
    };
    occasion::mail(begun, telling, &config.mcp_server_name)
}

/// claude's directory for temporary files: below its HOME, for nobody else may own it.
fn temporary(config: &Config) -> PathBuf {
    config.home_dir.join(".hive/tmp")
}

fn private(path: &Path) -> Result<(), LaunchError> {
    file::private_dir(path).map_err(|source| LaunchError::Directory { path: path.display().to_string(), source })
}

fn environment(config: &Config, temporary: &Path) -> BTreeMap<OsString, OsString> {
    environment::build(std::env::vars_os(), &config.claude_env, &config.home_dir, temporary, config.claude_max_retries)
}

/// A program with a path is found from here, not from the state directory.
fn program_path(program: &Path) -> PathBuf {
    if program.components().count() > 1 {
        return std::path::absolute(program).unwrap_or_else(|_| program.to_path_buf());
    }
    program.to_path_buf()
}

/// Ends what an earlier harness left behind, and looks whether the CLI can be used.
pub async fn probe(config: Arc<Config>) -> Input {
    Input::Probed(look(&config).await.map_err(|error| error.to_string()))
}

async fn look(config: &Config) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let temporary = temporary(config);
    private(&temporary)?;
    private(&config.run_dir)?;
    drop(StateLock::acquire(&config.state_dir, &config.run_dir, config.take_over).await?);
    let version = probe::run(&program_path(&config.claude), &environment(config, &temporary), &config.state_dir).await?;
    tracing::info!(claude = %config.claude.display(), version, "the CLI is there");
    Ok(())
}

/// What a printed line tells the machine.
pub fn read(printed: &Printed) -> Option<Input> {
    match printed {
        Printed::Stdout(line) if line.cut => None,
        Printed::Stdout(line) => event::parse(&line.text).map(|event| Input::Event(Box::new(event))),
        Printed::Stderr(line) => Some(Input::Stderr(line.text.clone())),
    }
}
