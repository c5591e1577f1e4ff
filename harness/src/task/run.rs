//! One task, from the start of its bash to the end of all its processes.
//!
//! The exit of the first process is detected before it is reaped. Until then no other process can
//! have its number or that of its process group, so the rest of the group can be ended safely.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

use crate::process::family::tasks::{Entered, MARK_ENV, Tasks};
use crate::process::family::{self, Process};
use crate::spawn::spawn;
use crate::task::config::TaskConfig;
use crate::task::init;
use crate::task::output::{self, Output};
use crate::task::record::How;
use crate::task::sweep::TaskProcesses;

/// Maximum time for a task to end by itself after its timeout.
pub const END_GRACE: Duration = Duration::from_secs(5);
/// Maximum time for the rest of a task to end when its first process has exited.
const LEFTOVER_GRACE: Duration = Duration::from_secs(1);
/// Maximum time for which the pipe may stay open after the last process of the task is gone.
const PIPE_PATIENCE: Duration = Duration::from_secs(2);

/// A task that was started.
#[derive(Debug)]
pub struct Run {
    child: Child,
    /// The signal that one of our children has changed.
    changes: Signal,
    pipe: Receiver,
    /// The pipe of the sandbox's report about the command's end. Without a sandbox, the exit of the
    /// first process is used.
    report: Option<Receiver>,
    entered: Entered,
    mark: String,
    /// First process of the task.
    pub root: Option<Process>,
}

/// The end of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub how: How,
    /// Number of processes that the first one left behind.
    pub leftover_count: u32,
}

pub fn start(config: &TaskConfig, tasks: &Tasks, mark: &str, command: &str) -> io::Result<Run> {
    let (reader, writer) = io::pipe()?;
    let also_writer = writer.try_clone()?;
    let (report, stdin) = if config.confinement.is_sandbox() {
        let (report, stdin) = io::pipe()?;
        (Some(Receiver::from_owned_fd(report.into())?), Stdio::from(stdin))
    } else {
        (None, Stdio::null())
    };
    let mut arguments: Vec<OsString> = vec!["-c".into()];
    match config.settings.limits.script() {
        Some(script) => arguments.extend([script.into(), "hive-task".into(), command.into()]),
        None => arguments.push(command.into()),
    }
    let (program, arguments) = config.confinement.command(arguments);
    let mut bash = Command::new(program);
    bash.args(arguments)
        .env_clear()
        .envs(&config.environment)
        .env(MARK_ENV, mark)
        .current_dir(&config.state_dir)
        .stdin(stdin)
        .stdout(writer)
        .stderr(also_writer)
        .process_group(0)
        .kill_on_drop(true);
    let pipe = Receiver::from_owned_fd(reader.into())?;
    let changes = signal(SignalKind::child())?;
    let (entered, (child, root)) = tasks.enter(mark, || {
        let child = bash.spawn()?;
        let root = child.id().and_then(|pid| family::find(i32::try_from(pid).ok()?));
        Ok::<_, io::Error>(((child, root), root))
    })?;
    // This drops our ends of the pipe, or its end would never be detected.
    drop(bash);
    Ok(Run { child, changes, pipe, report, entered, mark: mark.to_owned(), root })
}

/// Runs a task to its end.
pub async fn to_end(
    run: Run,
    file: tokio::fs::File,
    output: Arc<Output>,
    output_bytes_max: u64,
    timeout: Duration,
    mut stop: watch::Receiver<bool>,
) -> io::Result<Ended> {
    let Run { mut child, mut changes, pipe, mut report, entered, mark, root } = run;
    let pump = spawn("task output", output::pump(pipe, file, output, output_bytes_max));
    let mut reported = None;
    let interrupted = tokio::select! {
        biased;
        Some(how) = read(&mut report) => {
            reported = Some(how);
            None
        }
        () = exited(&child, &mut changes) => None,
        _ = stop.wait_for(|stop| *stop) => Some(How::Lost),
        () = tokio::time::sleep(timeout) => Some(How::TimedOut),
    };
    let grace = if interrupted.is_some() { END_GRACE } else { LEFTOVER_GRACE };
    let processes =
        TaskProcesses { mark: &mark, root, is_held: true, is_sandboxed: report.is_some() };
    let mut leftover_count = processes.end(grace).await;
    if report.is_some() {
        // In a sandbox the command is not the first process, and was counted if it had not ended.
        leftover_count = leftover_count.saturating_sub(u32::from(interrupted.is_some()));
        // Processes that no round has found end with the sandbox. A sandbox that has ended by
        // itself needs no signal.
        let _ = child.start_kill();
    }
    let status = child.wait().await;
    drop(entered);
    let handle = pump.abort_handle();
    if tokio::time::timeout(PIPE_PATIENCE, pump).await.is_err() {
        tracing::warn!(
            mark,
            "the output of a task is still open after its end; what may come is not read"
        );
        handle.abort();
    }
    if reported.is_none() && interrupted.is_none() {
        // The report may have come after the exit was detected.
        reported = tokio::time::timeout(PIPE_PATIENCE, read(&mut report)).await.ok().flatten();
    }
    let how = match interrupted.or(reported) {
        Some(how) => how,
        None => how(status?),
    };
    Ok(Ended { how, leftover_count })
}

/// Reads how the command in a sandbox ended; `None`: there is no sandbox, or it ended without a
/// report.
async fn read(report: &mut Option<Receiver>) -> Option<How> {
    let report = report.as_mut()?;
    let mut line = Vec::new();
    while let Ok(1..) = report.read_buf(&mut line).await {
        if let Some(how) = init::parse(&line) {
            return Some(how);
        }
    }
    None
}

/// Waits for the exit of a child without reaping it.
async fn exited(child: &Child, changes: &mut Signal) {
    let Some(pid) = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) else {
        return;
    };
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    // If there is no child to wait for, it has exited.
    while let Ok(None) = waitid(WaitId::Pid(pid), options) {
        changes.recv().await;
    }
}

fn how(status: ExitStatus) -> How {
    status.code().map_or_else(|| How::Signaled(status.signal().unwrap_or(0)), How::Exited)
}
