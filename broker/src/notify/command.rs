//! A command that notifies the operator: one process per item, in a process group of its own.
//!
//! ```text
//!   start ──► stdin: the item as JSON, then its end
//!         ──► stdout and stderr: only the end is kept, for the log of a failure
//!         ──► it exits, or its limit is over, or it is dropped ──► the whole group is killed
//! ```
//!
//! The output is not used, except in the log, and a command need not read its input. Invariant:
//! when a run is over, nothing of its process group is alive. A program that must live on has to
//! leave the group, as with `setsid`.

use std::convert::Infallible;
use std::ffi::OsString;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe::Receiver;
use tokio::process::{Child, ChildStdin};

use super::{NotifyError, item};
use crate::engine::mail::outbox::Item;
use crate::files;

/// Time limit of a command.
pub(super) const LIMIT: Duration = Duration::from_secs(30);
/// Time limit for the output of a dead group, because a process that left the group may hold it
/// open.
const OUTPUT_PATIENCE: Duration = Duration::from_secs(1);
/// Most bytes of its output that are kept.
const TAIL_BYTES_MAX: usize = 2 * 1024;

/// The variables of the broker's environment that a command gets: those that programs need to run,
/// and those that a desktop notification needs.
const PASSED: [&str; 7] = [
    "PATH",
    "HOME",
    "LANG",
    "XDG_RUNTIME_DIR",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
];

/// The command of the configuration.
#[derive(Debug)]
pub(super) struct Command {
    words: Vec<String>,
    env: Vec<(OsString, OsString)>,
}

impl Command {
    /// Returns a command with the variables of this environment that it needs.
    pub(super) fn new(
        words: Vec<String>,
        env: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Self {
        let passed = env.into_iter().filter(|(name, _)| PASSED.iter().any(|passed| name == passed));
        Self { words, env: passed.collect() }
    }

    /// Runs it for an item, until it ends.
    pub(super) async fn run(&self, item: &Item) -> Result<(), NotifyError> {
        let program = || self.words.first().cloned().unwrap_or_default();
        let (mut child, output) =
            self.start(item).map_err(|source| NotifyError::Start { program: program(), source })?;
        let group = Group::new(&child);
        let (stdin, mut tail) = (child.stdin.take(), Tail { output, bytes: Vec::new() });
        let ended = tokio::select! {
            status = child.wait() => Some(status),
            never = async { tokio::join!(feed(stdin, item::json(item)), tail.read()); std::future::pending::<Infallible>().await } => {
                match never {}
            }
            () = tokio::time::sleep(LIMIT) => None,
        };
        drop(group);
        let (in_time, status) = match ended {
            Some(status) => (true, status),
            None => (false, child.wait().await),
        };
        let status = status.map_err(|source| NotifyError::Lost { program: program(), source })?;
        match (in_time, status.success()) {
            (true, true) => Ok(()),
            (true, false) => {
                Err(NotifyError::Ended { program: program(), status, tail: tail.rest().await })
            }
            (false, _) => Err(NotifyError::TooLong {
                program: program(),
                limit: LIMIT,
                tail: tail.rest().await,
            }),
        }
    }

    fn start(&self, item: &Item) -> std::io::Result<(Child, Receiver)> {
        let (program, arguments) =
            self.words.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
        let (output, stdout) = std::io::pipe()?;
        let stderr = stdout.try_clone()?;
        let mut command = tokio::process::Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(self.env.iter().map(|(name, value)| (name, value)));
        command.envs(variables(item)).stdin(Stdio::piped()).stdout(stdout).stderr(stderr);
        files::give_back(&mut command);
        let child = command.process_group(0).kill_on_drop(true).spawn()?;
        // The command still holds the writing ends; they are closed with it here, so that the
        // output can end.
        drop(command);
        Ok((child, Receiver::from_owned_fd(output.into())?))
    }
}

/// Returns the item as environment variables, for scripts that read no JSON.
fn variables(item: &Item) -> [(&'static str, String); 4] {
    let fit = |text: &str| text.replace('\0', "\u{fffd}");
    [
        ("HIVE_ATTENTION_KIND", item::word(item.kind).to_owned()),
        ("HIVE_ATTENTION_AGENT", fit(&item.agent)),
        ("HIVE_ATTENTION_ID", item.id.to_string()),
        ("HIVE_ATTENTION_TEXT", fit(&item.text)),
    ]
}

/// Writes the item and closes the pipe. A command that does not read it gets no error.
async fn feed(stdin: Option<ChildStdin>, json: String) {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(json.as_bytes()).await;
        let _ = stdin.shutdown().await;
    }
}

/// The process group of a command; killed when this is dropped.
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

/// The end of a command's output.
#[derive(Debug)]
struct Tail {
    output: Receiver,
    bytes: Vec<u8>,
}

impl Tail {
    /// Reads to the end of the output. May be dropped and called again.
    async fn read(&mut self) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = self.output.read(&mut buffer).await {
            self.bytes.extend_from_slice(&buffer[..count]);
            let surplus = self.bytes.len().saturating_sub(TAIL_BYTES_MAX);
            self.bytes.drain(..surplus);
        }
    }

    /// Returns the kept output, once all writers have closed it.
    async fn rest(mut self) -> String {
        // A writer that holds it open for longer is not waited for.
        let _ = tokio::time::timeout(OUTPUT_PATIENCE, self.read()).await;
        String::from_utf8_lossy(&self.bytes).trim().to_owned()
    }
}
