//! A program under test: its log in a file, and its end assured.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tokio::process::{Child, Command};

use super::soon;
use crate::scripted::appear;

#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
}

impl Process {
    /// A command with an environment of its own: nothing of the test's leaks in but what every
    /// program needs.
    pub fn command(program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", "/nonexistent")
            .stdin(Stdio::null());
        command
    }

    pub(super) fn spawn(name: &str, mut command: Command, log: &Path) -> Self {
        let file = File::options().create(true).append(true).open(log).expect("a log file");
        command.stdout(file.try_clone().expect("a second handle")).stderr(file).kill_on_drop(true);
        let child =
            command.spawn().unwrap_or_else(|error| panic!("{name} cannot be started: {error}"));
        Self { name: name.to_owned(), child, log: log.to_path_buf() }
    }

    /// Returns the process id.
    pub fn pid(&self) -> Pid {
        let id = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        id.unwrap_or_else(|| panic!("{} has ended", self.name))
    }

    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal)
            .unwrap_or_else(|error| panic!("{} takes no signal: {error}", self.name));
    }

    /// Stops it; SIGCONT continues it.
    pub async fn suspend(&self) {
        suspend(self.pid()).await;
    }

    pub async fn wait(&mut self) -> ExitStatus {
        self.child.wait().await.expect("the program can be waited for")
    }

    /// Returns the exit status, if the process has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("the program can be waited for")
    }

    /// Kills it without warning.
    pub async fn kill(&mut self) {
        self.signal(Signal::KILL);
        self.wait().await;
    }

    /// Asks it to end, and waits for it.
    pub async fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        soon(&format!("{} ends", self.name), self.wait()).await
    }

    /// Returns the log of the process so far.
    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Waits until it has said this.
    pub async fn says(&self, text: &str) {
        self.says_times(text, 1).await;
    }

    /// Waits until the process has printed this text `times` times.
    pub async fn says_times(&self, text: &str, times: usize) {
        let said = appear::said(&self.log, text, times);
        soon(&format!("{} says `{text}` ({times})", self.name), said)
            .await
            .expect("the log can be watched");
    }

    /// Kills it from a place that cannot wait.
    pub(super) fn end_now(&mut self) {
        // The process may have ended by itself.
        drop(self.child.start_kill());
    }
}

/// Stops a child, and returns once the kernel reports the stop: a signal alone leaves its threads
/// running until each is scheduled.
pub(super) async fn suspend(pid: Pid) {
    kill_process(pid, Signal::STOP).expect("it runs");
    let stopped = tokio::task::spawn_blocking(move || {
        waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED).map(|status| status.is_some())
    });
    let stopped = soon("the process stops", stopped).await;
    assert!(matches!(stopped, Ok(Ok(true))), "it cannot be stopped: {stopped:?}");
}

/// The processes that name a directory on their command line or work in it: what a killed program
/// left behind.
pub fn strays(dir: &Path) -> Vec<Pid> {
    let own = rustix::process::getpid();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok().and_then(Pid::from_raw));
    pids.filter(|pid| *pid != own && belongs(*pid, dir)).collect()
}

fn belongs(pid: Pid, dir: &Path) -> bool {
    let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
    let line = std::fs::read(proc.join("cmdline")).unwrap_or_default();
    let named = String::from_utf8_lossy(&line).contains(&*dir.to_string_lossy());
    let environment = std::fs::read(proc.join("environ")).unwrap_or_default();
    let told = String::from_utf8_lossy(&environment).contains(&*dir.to_string_lossy());
    named || told || std::fs::read_link(proc.join("cwd")).is_ok_and(|cwd| cwd.starts_with(dir))
}

/// Ends what belongs to a directory of ours.
pub(super) fn end_strays(dir: &Path) {
    for pid in strays(dir) {
        // The process may have ended in the meantime.
        let _ = kill_process(pid, Signal::KILL);
    }
}
