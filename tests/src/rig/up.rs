//! `hivectl up` of a hive of a user without rights: started, watched by its lines, and ended.
//!
//! Invariant: whatever it started has ended when a method says so.

use std::path::Path;
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use super::{Rig, gone, process, soon, strays};

/// The last of the lines that it prints once all is started.
const IS_UP: &str = "Ctrl-C ends it.";

#[derive(Debug)]
pub struct Up {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    pub said: String,
}

impl Up {
    /// Returns the command `hivectl up`, with these directories of programs beside its own.
    pub fn command(rig: &Rig, path: &Path) -> Command {
        let mut command = rig.user_command(&rig.path("bin/hivectl"));
        command
            .env("PATH", path)
            .env("HIVE_DRAIN_GRACE_SECS", "1")
            .env("TZ", "UTC")
            .env("CREDENTIALS_DIRECTORY", rig.path("credentials"))
            .current_dir(rig.dir());
        command.args(["up", "--config", "hive.toml", "--state", "."]).arg("--claude");
        command.arg(rig.path("bin/scripted-claude"));
        command
    }

    /// Starts it, with these directories of programs beside its own.
    pub async fn start(rig: &Rig, path: &Path) -> Self {
        Self::start_with(rig, path, &[]).await
    }

    /// Starts it with further arguments.
    pub async fn start_with(rig: &Rig, path: &Path, args: &[&str]) -> Self {
        let mut up = Self::spawn(rig, path, args);
        up.says(IS_UP).await;
        up
    }

    /// Starts it, and does not wait until it is up.
    pub fn spawn(rig: &Rig, path: &Path, args: &[&str]) -> Self {
        let mut command = Self::command(rig, path);
        command.args(args);
        command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("hivectl starts");
        let lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
        Self { child, lines, said: String::new() }
    }

    /// Waits until it is up, or has ended; returns whether it is up.
    pub async fn comes_up(&mut self) -> bool {
        while let Some(line) = self.next_line("goes on").await {
            if line.starts_with(IS_UP) {
                return true;
            }
        }
        false
    }

    /// Reads on to the line that begins so.
    pub async fn says(&mut self, beginning: &str) -> String {
        let what = format!("says {beginning:?}");
        loop {
            let line = self.next_line(&what).await;
            let line = line.unwrap_or_else(|| panic!("it ended, and not {what}:\n{}", self.said));
            if line.starts_with(beginning) {
                return line;
            }
        }
    }

    /// Reads a line; `None` after its end.
    async fn next_line(&mut self, what: &str) -> Option<String> {
        let what = format!("`hivectl up` {what}, after:\n{}", self.said);
        let line = soon(&what, self.lines.next_line()).await.expect("text")?;
        self.said.push_str(&line);
        self.said.push('\n');
        Some(line)
    }

    pub fn pid(&self) -> Pid {
        self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs")
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Stops it, and nothing that it started; SIGCONT continues it.
    pub async fn suspend(&self) {
        process::suspend(self.pid()).await;
    }

    /// Ctrl-C: everything is drained, nothing is left.
    pub async fn interrupted(self, rig: Rig) {
        self.interrupted_only(&rig).await;
        rig.end().await;
    }

    /// Ctrl-C, after which the hive may be started again.
    pub async fn interrupted_only(self, rig: &Rig) {
        self.signal(Signal::INT);
        self.ends(rig).await;
    }

    /// Ends by itself, well and without a trace.
    pub async fn ends(mut self, rig: &Rig) {
        self.says("all is down; the mail is kept").await;
        let status = soon("hivectl ends", self.child.wait()).await.expect("it can be waited for");
        assert!(status.success(), "{status}:\n{}", self.said);
        assert_eq!(strays(rig.dir()), [], "{}", self.said);
    }

    /// Waits for its end, and returns its exit status.
    pub async fn status(mut self) -> ExitStatus {
        soon("hivectl ends", self.child.wait()).await.expect("it can be waited for")
    }

    /// Kills `hivectl up`, and waits until the processes that it started have ended.
    pub async fn killed(self, rig: &Rig) {
        let all = strays(rig.dir());
        assert!(all.len() > 4, "hivectl, hived, two harnesses, claude, its bridge: {all:?}");
        self.killed_anywhere(rig).await;
    }

    /// The same, whatever it has started by now.
    pub async fn killed_anywhere(self, rig: &Rig) {
        self.signal(Signal::KILL);
        self.status().await;
        // A process that was about to be started is in no list that was made before.
        soon("no process is left", async {
            while let [pid, ..] = strays(rig.dir())[..] {
                gone(pid).await;
            }
        })
        .await;
    }
}
