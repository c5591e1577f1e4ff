//! Running the binary.

use std::path::Path;
use std::process::{Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn all(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.out, self.err)
    }
}

/// Returns a command for the binary with a clean environment.
pub(crate) fn hivectl(socket: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hivectl"));
    command.env_clear().env("TZ", "UTC").env("HIVE_SOCKET", socket);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

pub(crate) async fn run(socket: &Path, args: &[&str]) -> Ran {
    ran(hivectl(socket).args(args).output().await.expect("the binary runs"))
}

pub(crate) async fn run_with(socket: &Path, args: &[&str], stdin: &[u8]) -> Ran {
    let mut child =
        hivectl(socket).args(args).stdin(Stdio::piped()).spawn().expect("the binary runs");
    let mut pipe = child.stdin.take().expect("stdin is a pipe");
    pipe.write_all(stdin).await.expect("it reads");
    drop(pipe);
    ended(child).await
}

pub(crate) async fn ended(child: Child) -> Ran {
    ran(child.wait_with_output().await.expect("it ends"))
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

pub(crate) fn signal(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    kill_process(pid.expect("it runs"), signal).expect("it runs");
}

#[track_caller]
pub(crate) fn assert_contains(text: &str, part: &str) {
    assert!(text.contains(part), "{part:?}: {text}");
}

/// Fails unless a text begins with this part.
#[track_caller]
pub(crate) fn assert_starts(text: &str, part: &str) {
    assert!(text.starts_with(part), "{part:?}: {text}");
}

#[track_caller]
pub(crate) fn assert_ends(text: &str, part: &str) {
    assert!(text.ends_with(part), "{part:?}: {text}");
}
