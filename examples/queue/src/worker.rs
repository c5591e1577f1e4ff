//! The commands of jobs.
//!
//! Invariant: a command that was begun runs to its end, unless the lease of its job is lost. After
//! a signal no further one begins.

use std::cell::{Cell, RefCell};
use std::ffi::OsString;
use std::future::pending;
use std::io;
use std::process::Stdio;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStderr, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

/// The end of the error output that is kept with a failed job, in bytes.
const TAIL_BYTES: usize = 2000;

/// Runs the command, and counts.
#[derive(Debug)]
pub(crate) struct Worker {
    command: Vec<OsString>,
    running: watch::Sender<usize>,
    ending: watch::Sender<bool>,
    pub(crate) done: Cell<u64>,
    pub(crate) failed: Cell<u64>,
    /// Why the command cannot run at all.
    pub(crate) fault: RefCell<Option<io::Error>>,
}

/// Counts a running command for as long as it exists.
struct Running<'a>(&'a watch::Sender<usize>);

impl<'a> Running<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

impl Worker {
    pub(crate) fn new(command: Vec<OsString>) -> Self {
        Self {
            command,
            running: watch::Sender::new(0),
            ending: watch::Sender::new(false),
            done: Cell::new(0),
            failed: Cell::new(0),
            fault: RefCell::new(None),
        }
    }

    /// Waits for SIGTERM or SIGINT, or a command that cannot run, and then until no command runs.
    pub(crate) async fn ended(&self) -> io::Result<()> {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut ending = self.ending.subscribe();
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = ending.wait_for(|ending| *ending) => {}
        }
        self.ending.send_replace(true);
        // `each` settles a job in the step in which its command ends, so none is between the two.
        // The sender is this value, so the wait does not fail.
        let _ = self.running.subscribe().wait_for(|count| *count == 0).await;
        Ok(())
    }

    /// Runs the command for a job. An error is for the readers of dead letters.
    pub(crate) async fn job(&self, body: String) -> Result<(), String> {
        if *self.ending.borrow() {
            // Not settled, it is released when the mail is closed.
            return pending().await;
        }
        let running = Running::new(&self.running);
        let child = match self.start() {
            Ok(child) => child,
            Err(error) => {
                // That is no fault of the job.
                self.fault.replace(Some(error));
                self.ending.send_replace(true);
                drop(running);
                return pending().await;
            }
        };
        let result = finish(child, body).await;
        let count = if result.is_ok() { &self.done } else { &self.failed };
        count.set(count.get() + 1);
        let (done, failed) = (self.done.get(), self.failed.get());
        if (done + failed).is_multiple_of(100) || result.is_err() {
            eprintln!("{done} done, {failed} failed");
        }
        result
    }

    fn start(&self) -> io::Result<Child> {
        let (program, arguments) = self.command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C goes to the group of this program alone.
            .process_group(0)
            // When the lease is lost, the future of the job is dropped.
            .kill_on_drop(true)
            .spawn()
    }
}

async fn finish(mut child: Child, body: String) -> Result<(), String> {
    let (stdin, stderr) = (child.stdin.take(), child.stderr.take());
    let write = async {
        if let Some(mut stdin) = stdin {
            // A command need not read its input.
            let _ = stdin.write_all(body.as_bytes()).await;
        }
    };
    let ((), tail, status) = tokio::join!(write, tail(stderr), child.wait());
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{status}\n{tail}")),
        Err(error) => Err(error.to_string()),
    }
}

async fn tail(stderr: Option<ChildStderr>) -> String {
    let Some(mut stderr) = stderr else { return String::new() };
    let (mut tail, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
        tail.extend_from_slice(&buffer[..length]);
        tail.drain(..tail.len().saturating_sub(TAIL_BYTES));
    }
    String::from_utf8_lossy(&tail).into_owned()
}
