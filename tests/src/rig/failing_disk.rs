//! A disk that fails under a running program: strace sits between the program and the kernel and
//! answers for some files in the kernel's place.
//!
//! Invariant: once [`FailingDisk::heal`] has returned, and when this is dropped, the program meets
//! the kernel again.

use std::path::PathBuf;
use std::process::Stdio;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::pipe::fcntl_setpipe_size;
use rustix::process::{Pid, Signal, kill_process};
use tempfile::{NamedTempFile, TempDir};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::unix::pipe::{OpenOptions, Receiver};
use tokio::process::{Child, Command};

use super::{Process, host, soon};

/// The syscalls that write.
const WRITES: &str = "write,pwrite64";
/// The syscalls that sync.
const SYNCS: &str = "fsync,fdatasync";

/// The fault to inject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Syncs fail with EIO.
    Syncs,
    /// Writes fail with EIO.
    Writes,
    /// Writes fail with ENOSPC.
    Full,
    /// Every other write fails with EIO.
    EveryOtherWrite,
    /// Syncs take this many seconds longer.
    SlowSyncs(u32),
}

impl Failure {
    fn arguments(self) -> [String; 2] {
        let (calls, what) = match self {
            Self::Syncs => (SYNCS, "error=EIO".to_owned()),
            Self::Writes => (WRITES, "error=EIO".to_owned()),
            Self::Full => (WRITES, "error=ENOSPC".to_owned()),
            Self::EveryOtherWrite => (WRITES, "error=EIO:when=1+2".to_owned()),
            Self::SlowSyncs(seconds) => (SYNCS, format!("delay_enter={seconds}s")),
        };
        [format!("--trace={calls}"), format!("--inject={calls}:{what}")]
    }

    /// A command that runs another with this failure on these files from its start.
    pub fn around(self, files: &[PathBuf], command: &Command) -> Command {
        let mut strace = self.command(files);
        strace.arg("--quiet=all");
        running(strace, command)
    }

    fn command(self, files: &[PathBuf]) -> Command {
        let mut strace = Process::command("strace".as_ref());
        strace.args(["--follow-forks", "--output=/dev/null"]).args(self.arguments());
        for file in files {
            strace.arg("--trace-path").arg(file);
        }
        strace
    }
}

/// Adds a program to a command of strace, which runs it then.
fn running(mut strace: Command, program: &Command) -> Command {
    let given = program.as_std();
    strace.arg("--").arg(given.get_program()).args(given.get_args());
    strace.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    strace
}

/// What happens to one call of a program, counted from its start.
#[derive(Clone, Debug)]
pub struct Injected {
    calls: String,
    what: String,
}

impl Injected {
    /// Injects `what`, in the words of strace, at the call of this number among `calls`. Each
    /// thread counts its own.
    pub fn at(calls: &str, what: &str, number: usize) -> Self {
        Self { calls: calls.to_owned(), what: format!("{calls}:{what}:when={number}") }
    }

    /// A command that runs another so; only calls on these files count.
    pub fn around(&self, files: &[PathBuf], command: &Command) -> Command {
        let mut strace = Process::command("strace".as_ref());
        strace.args(["--follow-forks", "--daemonize", "--quiet=all", "--output=/dev/null"]);
        strace.arg(format!("--trace={}", self.calls)).arg(format!("--inject={}", self.what));
        for file in files {
            strace.arg("--trace-path").arg(file);
        }
        running(strace, command)
    }
}

/// Room for the calls of a program that a test has not read yet, in bytes.
const LINES_BYTES: usize = 1 << 20;

/// The calls of a program from its start.
#[derive(Debug)]
pub struct CallTrace {
    calls: String,
    dir: TempDir,
    lines: Receiver,
}

impl CallTrace {
    /// Notes these calls.
    pub fn new(calls: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory for the calls");
        let pipe = dir.path().join("calls");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        // Also a writer, so that there is one before strace opens it.
        let lines = OpenOptions::new().read_write(true).open_receiver(pipe).expect("our pipe");
        fcntl_setpipe_size(&lines, LINES_BYTES).expect("a large pipe");
        Self { calls: calls.to_owned(), dir, lines }
    }

    /// A command that runs another, which has the process id of the command.
    pub fn around(&self, command: &Command) -> Command {
        let mut strace = Process::command("strace".as_ref());
        strace.args(["--follow-forks", "--daemonize", "--decode-fds", "--string-limit=200"]);
        strace.arg(format!("--trace={}", self.calls));
        strace.arg("--output").arg(self.dir.path().join("calls"));
        running(strace, command)
    }

    /// Returns the calls of the program, which has ended, up to the end of its first thread.
    pub async fn end(self) -> Vec<String> {
        let mut lines = BufReader::new(self.lines).lines();
        let mut calls = Vec::new();
        while let Some(line) =
            soon("strace notes the end", lines.next_line()).await.expect("lines of strace")
        {
            if line.contains("+++ exited with") {
                break;
            }
            calls.push(line);
        }
        calls
    }
}

/// A program whose disk fails.
#[derive(Debug)]
pub struct FailingDisk {
    strace: Child,
}

impl FailingDisk {
    /// From now on these files fail so under a running program. `None` where the host does not
    /// allow it, which is said or a failure.
    pub async fn under(program: Pid, files: &[PathBuf], failure: Failure) -> Option<Self> {
        let strace = attach(failure.command(files), program).await?;
        Some(Self { strace })
    }

    /// The disk works again.
    pub async fn heal(mut self) {
        detach(&mut self.strace).await;
    }
}

/// The syncs of files by a running program.
#[derive(Debug)]
pub struct SyncTrace {
    strace: Child,
    lines: NamedTempFile,
}

impl SyncTrace {
    /// Begins to note the syncs. `None` where the host does not allow it, which is said or a
    /// failure.
    pub async fn of(program: Pid, files: &[PathBuf]) -> Option<Self> {
        let lines = NamedTempFile::new().expect("a file for the calls");
        let mut command = Process::command("strace".as_ref());
        command.arg("--follow-forks").arg(format!("--trace={SYNCS}"));
        command.arg("--output").arg(lines.path());
        for file in files {
            command.arg("--trace-path").arg(file);
        }
        let strace = attach(command, program).await?;
        Some(Self { strace, lines })
    }

    /// Ends the trace; returns the calls, a line each.
    pub async fn end(mut self) -> Vec<String> {
        detach(&mut self.strace).await;
        let text = std::fs::read_to_string(self.lines.path()).expect("the calls were noted");
        text.lines().filter(|line| line.contains("sync(")).map(str::to_owned).collect()
    }
}

/// Attaches strace to a running program. `None` where the host does not allow it, which is said or
/// a failure.
async fn attach(mut command: Command, program: Pid) -> Option<Child> {
    command.arg("--attach").arg(program.as_raw_nonzero().to_string());
    let spawned = command.stderr(Stdio::piped()).kill_on_drop(true).spawn();
    let Ok(mut strace) = spawned else {
        let _ = host::allows("strace", false);
        return None;
    };
    let mut said = BufReader::new(strace.stderr.take().expect("a pipe")).lines();
    let attached = soon("strace is attached, or says why not", async {
        while let Ok(Some(line)) = said.next_line().await {
            if line.contains(" attached") {
                return true;
            }
        }
        false
    });
    let attached = attached.await;
    // It stays open: strace also names each thread that begins later, and would end if it cannot.
    strace.stderr = Some(said.into_inner().into_inner());
    host::allows("strace of a program that runs", attached).then_some(strace)
}

async fn detach(strace: &mut Child) {
    let pid = strace.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)).expect("it runs");
    kill_process(pid, Signal::TERM).expect("strace takes a signal");
    soon("strace lets go", strace.wait()).await.expect("it can be waited for");
}
