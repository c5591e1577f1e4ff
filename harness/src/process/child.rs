//! One claude process, from its start to the end of everything that it started.
//!
//! Invariant: the exit is reported once, after every line of output, and after the last descendant
//! is gone.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::claude::line::{Line, Splitter};
use crate::claude::outcome::Exit;
use crate::process::family::Family;
use crate::process::lock::StateLock;
use crate::spawn::spawn;
use crate::turn::output::Signal;

/// Longest line that is not cut, in bytes; a tool result with a large file fits.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Maximum time for which the pipes may stay open after the last descendant is gone.
pub(super) const PIPE_PATIENCE: Duration = Duration::from_secs(2);

/// A process to start.
#[derive(Debug)]
pub struct Spec {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
    pub environment: BTreeMap<OsString, OsString>,
    pub dir: PathBuf,
}

/// A line that claude printed.
#[derive(Debug)]
pub enum Printed {
    Stdout(Line),
    Stderr(Line),
}

/// Why claude did not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("claude cannot be started as `{program}`: {source}")]
    Start { program: String, source: std::io::Error },
    #[error("cannot wait for the end of claude: {0}")]
    Wait(std::io::Error),
}

/// Runs claude to its end. Signals are forwarded to its process group.
pub async fn run(
    spec: Spec,
    input: String,
    lock: StateLock,
    family: &Family,
    signals: &mut mpsc::UnboundedReceiver<Signal>,
    printed: &mpsc::Sender<Printed>,
) -> Result<Exit, RunError> {
    let mut child = start(spec, lock)?;
    let group = group(&child);
    let feeding = child.stdin.take().map(|stdin| spawn("claude stdin", feed(stdin, input)));
    let (mut pipes, mut lines) = read(&mut child);
    pipes.extend(feeding);
    let status = loop {
        tokio::select! {
            status = child.wait() => break status,
            Some(signal) = signals.recv() => send(group, signal),
            Some(line) = lines.recv() => {
                // The driver's loop takes every line, or the program ends.
                let _ = printed.send(line).await;
            }
        }
    };
    end_leftovers(family).await;
    let rest = async {
        while let Some(line) = lines.recv().await {
            let _ = printed.send(line).await;
        }
    };
    tokio::join!(rest, finish(pipes));
    Ok(exit(status.map_err(RunError::Wait)?))
}

/// Ends all processes that the turn left behind.
pub(super) async fn end_leftovers(family: &Family) {
    let stuck = family.end_all().await;
    if stuck > 0 {
        tracing::error!(
            stuck,
            "processes of the turn cannot be ended; no further claude starts before they are gone"
        );
    }
}

/// Waits for the readers of the pipes, which close with the last process; a process that cannot be
/// ended must not delay the harness.
pub(super) async fn finish(pipes: Vec<JoinHandle<()>>) {
    for task in pipes {
        let handle = task.abort_handle();
        if tokio::time::timeout(PIPE_PATIENCE, task).await.is_err() {
            handle.abort();
        }
    }
}

pub(super) fn exit(status: ExitStatus) -> Exit {
    status.code().map_or_else(|| Exit::Signal(status.signal().unwrap_or(0)), Exit::Code)
}

/// Returns the process group that it leads.
pub(crate) fn group(child: &Child) -> Option<Pid> {
    child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw)
}

/// Reads the output, in the order in which it arrives. The lines end with the last process that has
/// the pipes.
pub(super) fn read(child: &mut Child) -> (Vec<JoinHandle<()>>, mpsc::Receiver<Printed>) {
    let (printed, lines) = mpsc::channel(256);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let to = printed.clone();
    let stdout = stdout.map(|pipe| spawn("claude stdout", pump(pipe, to, Printed::Stdout)));
    let stderr = stderr.map(|pipe| spawn("claude stderr", pump(pipe, printed, Printed::Stderr)));
    (stdout.into_iter().chain(stderr).collect(), lines)
}

/// Starts the process, with all three pipes.
pub(super) fn start(spec: Spec, lock: StateLock) -> Result<Child, RunError> {
    let Spec { program, arguments, environment, dir } = spec;
    let failed = |source| RunError::Start { program: program.display().to_string(), source };
    lock.hand_down().map_err(failed)?;
    let child = Command::new(&program)
        .args(arguments)
        .env_clear()
        .envs(environment)
        .current_dir(dir)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(failed)?;
    // This drops our copy of the lock; claude has its own.
    drop(lock);
    Ok(child)
}

/// Sends a process group a signal.
pub(crate) fn send(group: Option<Pid>, signal: Signal) {
    let signal = match signal {
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Terminate => rustix::process::Signal::TERM,
        Signal::Kill => rustix::process::Signal::KILL,
    };
    if let Some(group) = group {
        // A group that is gone needs no signal.
        let _ = rustix::process::kill_process_group(group, signal);
    }
}

/// Writes the prompt and closes the pipe: claude waits for the end of its input. Errors of a claude
/// that does not read are ignored here.
async fn feed(mut stdin: ChildStdin, input: String) {
    let _ = stdin.write_all(input.as_bytes()).await;
    let _ = stdin.shutdown().await;
}

async fn pump(
    mut pipe: impl AsyncRead + Unpin,
    printed: mpsc::Sender<Printed>,
    wrap: fn(Line) -> Printed,
) {
    let mut splitter = Splitter::new(LINE_BYTES_MAX);
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let count = pipe.read(&mut buffer).await.unwrap_or(0);
        let lines = splitter.push(&buffer[..count]);
        let last = if count == 0 { splitter.finish() } else { None };
        for line in lines.into_iter().chain(last) {
            if printed.send(wrap(line)).await.is_err() {
                return;
            }
        }
        if count == 0 {
            return;
        }
    }
}
