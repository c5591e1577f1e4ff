//! A harness under test: the real program, the real broker behind a tap, and a scripted claude.
//!
//! Invariant: nothing outlives a test: the harness gets two signals to end, and then is killed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use hive_core::isolation::{EXPECTED_ENV, Expected, Level};
use hive_in_process::{Broker, Recorded};
use hive_proto::v1;
use hive_proto::v1::command::Command as Order;
use hive_tests::rig::fresh_id;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

/// Maximum duration of a wait.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory with a HOME and a state directory, and the broker.
pub(crate) struct Stage {
    pub(crate) dir: TempDir,
    pub(crate) broker: Broker,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::bounded("")
    }

    /// Creates a stage with these limits.
    pub(crate) fn bounded(limits: &str) -> Self {
        Self::in_groups(&["messaging", "inbox"], limits)
    }

    /// Creates a stage with these limits, whose agent has these tool groups.
    pub(crate) fn in_groups(groups: &[&str], limits: &str) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        for name in ["home", "state"] {
            std::fs::create_dir(dir.path().join(name)).expect("created");
        }
        let config = format!("[agents.alice]\n[agents.bob]\ntool_groups = {groups:?}\n");
        let broker = Broker::start(&format!("{config}[broker.limits]\n{limits}"), "bob");
        Self { dir, broker }
    }

    /// Puts a message of alice into the inbox; its id.
    pub(crate) async fn mail(&self, body: &str) -> u64 {
        self.broker.mail("alice", body).await
    }

    /// Waits until the harness calls this method; its request.
    pub(crate) async fn next<M: prost::Message + Default>(&self, method: &str) -> M {
        self.broker.next(method, |call| call.request(method)).await
    }

    /// Waits until the harness attaches; the session that it resumes.
    pub(crate) async fn attach(&self) -> Option<String> {
        self.session("Attach").await
    }

    /// Waits until the harness calls this method; the session of the call.
    pub(crate) async fn session(&self, method: &str) -> Option<String> {
        let find = |call: &Recorded| (call.method == method).then(|| call.session_token.clone());
        self.broker.next(method, find).await
    }

    pub(crate) async fn end(&self) -> v1::EndTurnRequest {
        self.next("EndTurn").await
    }

    pub(crate) async fn status(&self, state: v1::HarnessState) {
        let reports = |report: &v1::ReportHarnessStatusRequest| report.state() == state;
        let find = |call: &Recorded| call.request("ReportHarnessStatus").filter(reports);
        self.broker.next(state.as_str_name(), find).await;
    }

    /// Sends a command to the harness; returns its id.
    pub(crate) async fn order(&self, order: Order) -> u64 {
        let request = v1::SendCommandRequest {
            request_id: fresh_id(),
            agent: "bob".to_owned(),
            command: Some(v1::Command { command: Some(order), ..v1::Command::default() }),
        };
        let sent = self.broker.operator().await.admin().send_command(request).await;
        sent.expect("it is given").into_inner().command_id
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Starts the harness; its claude does what `script` says.
    pub(crate) fn serve(&self, script: &str, more: &[(&str, &str)]) -> Harness {
        self.start(Command::new(env!("CARGO_BIN_EXE_hive")), script, more)
    }

    /// Starts the harness by a shell script that becomes it.
    fn start(&self, mut command: Command, script: &str, more: &[(&str, &str)]) -> Harness {
        let claude = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journeys/support/claude.sh");
        command
            .arg("serve")
            .args(more.iter().filter(|(name, _)| name.starts_with("--")).map(|(name, _)| name))
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HIVE_SOCKET", self.broker.socket())
            .env("HIVE_STATE_DIR", self.path("state"))
            .env("HIVE_HOME_DIR", self.path("home"))
            .env("HIVE_CLAUDE", claude)
            .env("HIVE_MCP", "/bin/true")
            .env("HIVE_KILL_GRACE_MS", "200")
            .env("HIVE_CLAUDE_ENV", format!("{{\"STAND_IN\":{}}}", serde_json::Value::from(script)))
            .envs(more.iter().copied().filter(|(name, _)| !name.starts_with("--")))
            .stdin(Stdio::null())
            .stderr(self.log());
        if crate::ISOLATED {
            command.env(EXPECTED_ENV, self.expected());
        }
        Harness { child: command.spawn().expect("hive starts") }
    }

    /// Writes the file of an agent that shares the files of its user.
    fn expected(&self) -> PathBuf {
        let expected = Expected {
            level: Level::SharedFiles,
            bwrap: "/usr/bin/bwrap".into(),
            user_namespaces: false,
            hidden: vec![self.path("hidden")],
            read_only: Vec::new(),
            writable: vec![self.path("project")],
            devices: Vec::new(),
            private: self.path("private"),
            mounted: Vec::new(),
        };
        std::fs::create_dir_all(&expected.private).expect("a directory");
        let path = self.path("isolation.json");
        std::fs::write(&path, serde_json::to_string(&expected).expect("JSON")).expect("written");
        path
    }

    /// Opens the log file of the harness, which is kept as long as the stage.
    fn log(&self) -> Stdio {
        let log = std::fs::File::options().create(true).append(true).open(self.path("hive.log"));
        Stdio::from(log.expect("the log can be written"))
    }

    /// Waits until a file is there, and reads it.
    pub(crate) async fn appears(&self, name: &str) -> String {
        let path = self.path(name);
        wait_until(name, || path.exists()).await;
        self.read(name)
    }

    pub(crate) fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.path(name)).expect("there").permissions().mode() & 0o777
    }
}

impl Drop for Stage {
    /// Ends the processes that a failed test left running.
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.path("home/running"))
            .ok()
            .and_then(|pid| pid.trim().parse().ok());
        if let Some(pid) = pid.and_then(Pid::from_raw) {
            let ours = std::fs::read_link(format!("/proc/{}/cwd", pid.as_raw_pid()));
            if ours.is_ok_and(|dir| Some(dir) == self.path("state").canonicalize().ok()) {
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }
}

/// Waits for a condition that no signal reports.
pub(crate) async fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let looking = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, looking).await.unwrap_or_else(|_| panic!("never: {what}"));
}

pub(crate) fn lives(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with('Z'))
}

pub(crate) struct Harness {
    child: Child,
}

impl Harness {
    pub(crate) fn signal(&self, signal: Signal) {
        let pid =
            i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        rustix::process::kill_process(pid, signal).expect("it lives");
    }

    pub(crate) async fn exit(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until("the harness ends", || {
            status = self.child.try_wait().expect("it can be waited for");
            status.is_some()
        })
        .await;
        status.expect("it ended")
    }
}

impl Drop for Harness {
    fn drop(&mut self) {
        for _ in 0..400 {
            if matches!(self.child.try_wait(), Ok(Some(_))) {
                return;
            }
            self.signal(Signal::TERM);
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
