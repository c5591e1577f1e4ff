//! Programs of the operator that the broker runs, each in a process group of its own.
//!
//! ```text
//!   start ──► stdin: the input, then its end
//!         ──► stdout and stderr: only the end is kept
//!         ──► it exits, or its limit is over, or it is dropped ──► the whole group is killed
//! ```
//!
//! A program gets few variables of the broker's environment, and need not read its input.
//! Invariant: when a run is over, nothing of its process group is alive. A program that must live
//! on has to leave the group, as with `setsid`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStdin};

use crate::files;

/// Time limit for the output of a dead group, because a process that left the group may hold it
/// open.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);

/// Returns the variables of an environment that have these names.
pub(crate) fn passed(
    env: impl IntoIterator<Item = (OsString, OsString)>,
    names: &[&str],
) -> Vec<(OsString, OsString)> {
    env.into_iter().filter(|(name, _)| names.iter().any(|passed| name == passed)).collect()
}

/// The variables of the broker's environment that an action gets.
const FOR_ACTIONS: [&str; 5] =
    ["PATH", "HOME", "LANG", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"];

/// Returns the environment of an action of this agent, or of its preview.
pub(crate) fn for_action(action: &str, agent: &str) -> Vec<(OsString, OsString)> {
    let mut env = passed(std::env::vars_os(), &FOR_ACTIONS);
    env.push(("HIVE_ACTION".into(), action.into()));
    env.push(("HIVE_ACTION_AGENT".into(), agent.into()));
    env
}

/// A run of a program.
#[derive(Debug)]
pub(crate) struct Program<'a> {
    /// The program and its arguments.
    pub(crate) words: &'a [String],
    /// Its whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// What it reads.
    pub(crate) input: String,
    /// Its time limit.
    pub(crate) limit: Duration,
    /// Most bytes of its output that are kept.
    pub(crate) output_bytes_max: usize,
}

/// Why a run has no end that is known.
#[derive(Debug)]
pub(crate) enum RunError {
    /// The program did not start.
    Start(std::io::Error),
    /// The exit of the program could not be read.
    Lost(std::io::Error),
}

/// The end of a run.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Whether it ended by itself.
    pub(crate) in_time: bool,
    /// Its exit status.
    pub(crate) status: ExitStatus,
    tail: Tail,
}

impl Ended {
    /// Returns the end of its output, once all writers have closed it.
    pub(crate) async fn output(self) -> String {
        self.tail.rest().await.0.trim().to_owned()
    }

    /// Returns the end of its output as it is, and whether it had more.
    pub(crate) async fn cut_output(self) -> (String, bool) {
        self.tail.rest().await
    }
}

impl Program<'_> {
    /// Runs it, until it ends.
    pub(crate) async fn run(self) -> Result<Ended, RunError> {
        let (mut child, output) = self.start().map_err(RunError::Start)?;
        let group = Group::new(&child);
        let (stdin, mut tail) = (
            child.stdin.take(),
            Tail { output, bytes: Vec::new(), max: self.output_bytes_max, is_cut: false },
        );
        let ended = tokio::select! {
            status = child.wait() => Some(status),
            never = async { tokio::join!(feed(stdin, self.input), tail.read()); std::future::pending::<Infallible>().await } => {
                match never {}
            }
            () = tokio::time::sleep(self.limit) => None,
        };
        drop(group);
        let (in_time, status) = match ended {
            Some(status) => (true, status),
            None => (false, child.wait().await),
        };
        Ok(Ended { in_time, status: status.map_err(RunError::Lost)?, tail })
    }

    fn start(&self) -> std::io::Result<(Child, Receiver)> {
        let (program, arguments) =
            self.words.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let (output, stdout) = std::io::pipe()?;
        let stderr = stdout.try_clone()?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        files::give_back(&mut command);
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        // The command still holds the writing ends; they are closed with it here, so that the
        // output can end.
        drop(command);
        Ok((child, Receiver::from_owned_fd(output.into())?))
    }
}

/// Writes the input and closes the pipe. A program that does not read it gets no error.
async fn feed(stdin: Option<ChildStdin>, input: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input.as_bytes()).await;
        let _ = stdin.shutdown().await;
    }
}

/// The process group of a program; killed when this is dropped.
#[derive(Debug)]
struct Group(Option<Pid>);

impl Group {
    fn new(leader: &Child) -> Self {
        Self(leader.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The leader may have been reaped a moment ago. Its number is not reused while a process of
        // its group is alive, nor immediately afterwards.
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// The end of a program's output.
#[derive(Debug)]
struct Tail {
    output: Receiver,
    bytes: Vec<u8>,
    max: usize,
    is_cut: bool,
}

impl Tail {
    /// Reads to the end of the output. May be dropped and called again.
    async fn read(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = self.output.read(&mut buffer).await {
            self.bytes.extend_from_slice(&buffer[..count]);
            let surplus = self.bytes.len().saturating_sub(self.max);
            self.is_cut |= surplus > 0;
            self.bytes.drain(..surplus);
        }
    }

    /// Returns the kept output, once all writers have closed it, and whether there was more.
    async fn rest(mut self) -> (String, bool) {
        // A writer that holds it open for longer is not waited for.
        let _ = tokio::time::timeout(OUTPUT_PATIENCE, self.read()).await;
        (String::from_utf8_lossy(&self.bytes).into_owned(), self.is_cut)
    }
}
