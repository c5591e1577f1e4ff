//! Views of a hive from outside: its processes, the input and output of claude, and the programs
//! that a person types.
//!
//! Invariant: nothing here changes the hive but what a named program does, and the signals that a
//! journey sends.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};

use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use serde_json::Value;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Receiver;

use super::{Process, Rig, process, soon};
use crate::scripted::script::{self, Rule};

/// The output and the exit code of a program.
#[derive(Clone, Debug)]
pub struct Said {
    /// The exit code; -1 if a signal ended the program.
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

/// Waits until a process is gone, by the kernel's word.
pub async fn gone(pid: Pid) {
    // Without such a process there is nothing to wait for.
    let Ok(process) = pidfd_open(pid, PidfdFlags::NONBLOCK) else { return };
    // Not a pipe, but it becomes readable like one when the process ends.
    let process =
        Receiver::from_owned_fd_unchecked(process).expect("the end of a process can be waited for");
    let ended = soon(&format!("process {} ends", pid.as_raw_nonzero()), process.readable()).await;
    ended.expect("the end of a process can be waited for");
}

impl Rig {
    /// The hive's directory.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// A file of the hive's directory, a log for example; empty if there is none.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The processes that run a program for an agent: `scripted-claude`, `hive-mcp`, or what claude
    /// started.
    pub fn running(&self, agent: &str, program: &str) -> Vec<Pid> {
        let runs = |pid: &Pid| {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero()))
                .unwrap_or_default();
            // The kernel keeps 15 bytes of a name.
            name.trim_end() == &program[..program.len().min(15)]
        };
        process::strays(&self.path(format!("agents/{agent}"))).into_iter().filter(runs).collect()
    }

    /// The one process that runs a program for an agent. The server of the same program that runs
    /// commands is another, and does not count.
    pub fn the_one(&self, agent: &str, program: &str) -> Pid {
        let runs_commands = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
                .unwrap_or_default();
            program == "hive-mcp" && line.split(|byte| *byte == 0).nth(1) == Some(b"bash")
        };
        let running: Vec<Pid> =
            self.running(agent, program).into_iter().filter(|pid| !runs_commands(pid)).collect();
        match running[..] {
            [pid] => pid,
            ref pids => panic!("{} processes of {agent} run {program}, not one", pids.len()),
        }
    }

    /// Kills the scripted claude of an agent, and waits for its end.
    pub async fn kill_claude(&self, agent: &str) {
        let claude = self.the_one(agent, "scripted-claude");
        kill_process(claude, Signal::KILL).expect("claude runs");
        gone(claude).await;
    }

    /// The process of an agent's bridge; its shell server runs the same program, and says so on its
    /// command line.
    pub fn bridge(&self, agent: &str) -> Pid {
        let is_shell = |pid: &Pid| {
            let line = std::fs::read(format!("/proc/{}/cmdline", pid.as_raw_nonzero()))
                .unwrap_or_default();
            line.ends_with(b"\0bash\0")
        };
        let bridges: Vec<Pid> =
            self.running(agent, "hive-mcp").into_iter().filter(|pid| !is_shell(pid)).collect();
        match bridges[..] {
            [pid] => pid,
            ref pids => panic!("{} bridges of {agent} run, not one", pids.len()),
        }
    }

    /// The secret that proves which turn an agent's bridge belongs to.
    pub fn token_of_bridge(&self, agent: &str) -> String {
        let bridge = self.bridge(agent);
        let environment = std::fs::read(format!("/proc/{}/environ", bridge.as_raw_nonzero()))
            .expect("the bridge runs");
        let environment = String::from_utf8_lossy(&environment);
        let token = environment
            .split('\0')
            .find_map(|variable| variable.strip_prefix("HIVE_PROCESS_TOKEN="));
        token.expect("the bridge has a token").to_owned()
    }

    /// Returns the prompts of an agent's claude, turn by turn.
    pub fn prompts(&self, agent: &str) -> Vec<String> {
        self.sessions(agent).concat().iter().filter_map(prompt).collect()
    }

    /// Returns the number of prompts in each of an agent's conversations, the oldest first.
    pub fn conversations(&self, agent: &str) -> Vec<usize> {
        self.sessions(agent).iter().map(|lines| lines.iter().filter_map(prompt).count()).collect()
    }

    /// Returns the answers of an agent's tools, call by call.
    pub fn tool_results(&self, agent: &str) -> Vec<String> {
        let of_user = |line: &&Value| line["type"] == "user";
        let result =
            |line: &Value| line["message"]["content"][0]["content"].as_str().map(str::to_owned);
        self.sessions(agent).concat().iter().filter(of_user).filter_map(result).collect()
    }

    /// The lines of an agent's conversations, the oldest conversation first.
    fn sessions(&self, agent: &str) -> Vec<Vec<Value>> {
        let folders = std::fs::read_dir(self.path(format!("agents/{agent}/home/.claude/projects")))
            .into_iter()
            .flatten();
        let files = folders
            .flatten()
            .flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten().flatten());
        let mut files: Vec<PathBuf> = files.map(|file| file.path()).collect();
        files.sort_by_key(|path| path.metadata().and_then(|metadata| metadata.modified()).ok());
        let lines = |path: &PathBuf| {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        };
        files.iter().map(lines).collect()
    }

    /// Runs `hivectl` on this hive.
    pub async fn hivectl(&self, args: &[&str]) -> Said {
        let mut command = Process::command(&self.program("hivectl", "hivectl"));
        command.env("TZ", "UTC").arg("--socket").arg(self.operator_socket()).args(args);
        say(command, "").await
    }

    /// Runs `hive wake` beside an agent, with this on its stdin.
    pub async fn wake(&self, agent: &str, args: &[&str], stdin: &str) -> Said {
        self.hive(agent, &[&["wake"], args].concat(), stdin).await
    }

    /// Runs `hive` beside an agent, with this on its stdin.
    pub async fn hive(&self, agent: &str, args: &[&str], stdin: &str) -> Said {
        let mut command = Process::command(&self.program("hive-harness", "hive"));
        command.env("HIVE_SOCKET", self.agent_socket(agent)).args(args);
        say(command, stdin).await
    }

    /// Waits until the broker ends by itself; how.
    pub async fn broker_ends(&mut self) -> ExitStatus {
        let status = soon("hived ends", self.broker().wait()).await;
        self.broker = None;
        status
    }

    /// Waits until a harness ends by itself; how.
    pub async fn harness_ends(&mut self, key: &str) -> ExitStatus {
        let status = soon(&format!("the harness of {key} ends"), self.harness(key).wait()).await;
        self.harnesses.remove(key);
        status
    }

    /// Sets other rules for an agent's scripted claude, from its next turn on.
    pub fn rewrite_script(&self, key: &str, rules: &[Rule]) {
        let (next, file) =
            (self.path(format!("{key}.script.next")), self.path(format!("{key}.script.json")));
        script::write(&next, rules).expect("the script is written");
        // At once, so that no claude reads half of it.
        std::fs::rename(next, file).expect("the script is put in its place");
    }

    /// Ends the hive cleanly, and checks that no process of it is left.
    pub async fn end(mut self) {
        let keys: Vec<String> = self.harnesses.keys().cloned().collect();
        for key in keys {
            self.stop_harness(&key).await;
        }
        if self.broker.is_some() {
            self.stop_broker().await;
        }
        let left = process::strays(self.dir.path());
        assert!(left.is_empty(), "processes are left: {left:?}");
    }
}

/// The prompt in a line of a conversation.
fn prompt(line: &Value) -> Option<String> {
    line["message"]["content"].as_str().filter(|_| line["type"] == "user").map(str::to_owned)
}

/// Runs a program to its end.
pub(super) async fn say(mut command: tokio::process::Command, stdin: &str) -> Said {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("the program starts");
    let mut input = child.stdin.take().expect("stdin is a pipe");
    // A program that does not read its stdin is not our concern.
    drop(input.write_all(stdin.as_bytes()).await);
    drop(input);
    let output = soon("the program ends", child.wait_with_output())
        .await
        .expect("the program can be waited for");
    Said {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
