//! A hive of real binaries for journeys: one broker, a harness per agent that wants one, and
//! clients on every socket.
//!
//! All files are in a temporary directory, waits are on signals (readiness, events, files), and
//! whatever was started is ended with the rig. Invariant: a journey that cannot go on fails with
//! the output of the programs, and never hangs.

pub mod call;
mod cases;
mod client;
pub mod clock;
mod cut;
pub mod failing_disk;
mod harness;
pub mod host;
mod look;
mod mode;
pub mod old_database;
pub mod on_disk;
mod open;
mod process;
pub mod raw;
mod ready;
mod refusing;
pub mod request;
pub mod small_disk;
mod starts;
mod unprivileged;
mod up;
mod watch;
mod wire;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use tempfile::TempDir;
use tokio::process::Command;
use tonic::transport::Channel;

pub use client::{Client, fresh_id, process_token, to};
pub use cut::Line;
pub use harness::Harness;
pub use look::{Said, gone};
pub use mode::Mode;
pub use process::{Process, strays};
pub use refusing::run;
pub use up::Up;
pub use watch::Watch;
pub use wire::Wire;

use crate::binary;
use crate::scripted::appear;
use crate::scripted::script::{self, Rule};

/// A wait that lasts longer has failed. Generous, because a loaded machine is slow; nothing waits
/// for it to pass.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Bounds that let failures come back quickly. What is tested is the order of things, not how long
/// they take.
pub const QUICK_LIMITS: &str = "[broker.limits]\nretry_backoff_base_ms = 20\nretry_backoff_max_ms = 40\npark_backoff_base_ms = 30\n\
     park_backoff_max_ms = 60\nrate_limit_park_ms = 50\nharness_grace_ms = 30000\n";

/// Two agents, `ada` and her child `bob`.
pub const DUO: &str = "[hive]\nname = \"test\"\n[agents.ada]\n[agents.bob]\nparent = \"ada\"\n";

/// Waits for something that has to happen.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("this did not happen: {what}"),
    }
}

#[derive(Clone, Debug)]
pub struct HarnessOptions {
    /// The claude program; the scripted one by default.
    pub claude: PathBuf,
    /// Rules of the scripted claude; without rules it is the friendly agent.
    pub rules: Vec<Rule>,
    /// Further environment of claude.
    pub claude_env: BTreeMap<String, String>,
    /// Further environment of the harness.
    pub env: BTreeMap<String, String>,
    /// Further arguments of `hive serve`.
    pub args: Vec<String>,
}

impl Default for HarnessOptions {
    fn default() -> Self {
        Self {
            claude: binary::find("hive-scripted", "scripted-claude"),
            rules: Vec::new(),
            claude_env: BTreeMap::new(),
            env: BTreeMap::new(),
            args: Vec::new(),
        }
    }
}

#[derive(Debug)]
pub struct Rig {
    dir: TempDir,
    /// The directory of other programs; `None`: where they were built.
    programs: Option<PathBuf>,
    broker: Option<Process>,
    /// What the broker told its service manager before it was ready.
    said: Vec<String>,
    harnesses: BTreeMap<String, Process>,
}

impl Rig {
    /// A hive with this configuration; nothing runs yet.
    pub fn new(config: &str) -> Self {
        Self::new_in(config, &std::env::temp_dir())
    }

    /// A hive in a directory below `parent`, for tests that need a particular disk.
    pub fn new_in(config: &str, parent: &Path) -> Self {
        // Short, because the path of a socket has 107 bytes at most.
        let dir = tempfile::Builder::new()
            .prefix("hv")
            .tempdir_in(parent)
            .expect("a temporary directory");
        std::fs::write(dir.path().join("hive.toml"), config).expect("the configuration is written");
        Self { dir, programs: None, broker: None, said: Vec::new(), harnesses: BTreeMap::new() }
    }

    /// Uses programs from this directory: other builds. Those that it does not have are used from
    /// where they were built.
    #[must_use]
    pub fn with_programs(mut self, dir: &Path) -> Self {
        self.programs = Some(dir.to_path_buf());
        self
    }

    fn program(&self, package: &str, name: &str) -> PathBuf {
        let other = self.programs.as_ref().map(|dir| dir.join(name)).filter(|file| file.exists());
        other.unwrap_or_else(|| binary::find(package, name))
    }

    /// The hive's directory stays when the rig is gone; where it is.
    pub fn keep(&mut self) -> PathBuf {
        self.dir.disable_cleanup(true);
        self.dir.path().to_path_buf()
    }

    /// Two agents, quick bounds, and a running broker.
    pub async fn duo() -> Self {
        let mut rig = Self::new(&format!("{DUO}{QUICK_LIMITS}"));
        rig.start_broker().await;
        rig
    }

    /// A path in the hive's directory.
    pub fn path(&self, name: impl AsRef<Path>) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn operator_socket(&self) -> PathBuf {
        self.path("run/hived.sock")
    }

    pub fn agent_socket(&self, name: &str) -> PathBuf {
        self.path(format!("run/agents/{name}/hive.sock"))
    }

    /// Changes the configuration file; the broker reads it at SIGHUP or at its next start.
    pub fn configure(&self, config: &str) {
        std::fs::write(self.path("hive.toml"), config).expect("the configuration is written");
    }

    /// Starts the broker and waits until it says that it is ready.
    pub async fn start_broker(&mut self) {
        assert!(self.broker.is_none(), "the broker runs already");
        let command = self.broker_command();
        self.start_broker_by(command).await;
    }

    /// Returns the command that starts the broker.
    pub fn broker_command(&self) -> Command {
        self.broker_command_in("state", "run")
    }

    /// Returns the command that starts the broker with other directories of this hive.
    pub fn broker_command_in(&self, state: &str, run: &str) -> Command {
        let mut broker = Process::command(&self.program("hive-broker", "hived"));
        broker
            .env("HIVE_LOG", "info,hive_broker=debug")
            .arg("--config")
            .arg(self.path("hive.toml"));
        broker.arg("--state-dir").arg(self.path(state)).arg("--runtime-dir").arg(self.path(run));
        broker
    }

    /// Starts the broker by a command made from [`Self::broker_command`], and waits until it says
    /// that it is ready.
    pub async fn start_broker_by(&mut self, broker: Command) {
        if let Err(status) = self.try_start_broker_by(broker).await {
            let log = std::fs::read_to_string(self.path("hived.log")).unwrap_or_default();
            panic!("hived ended with {status}: {log}");
        }
    }

    /// Waits until the broker ends by itself.
    pub async fn broker_ended(&mut self) -> ExitStatus {
        let status = self.broker.as_mut().expect("a broker runs").wait().await;
        self.broker = None;
        status
    }

    /// Returns the exit status of a harness that has ended by itself; then it may be started again.
    pub fn harness_ended(&mut self, key: &str) -> Option<ExitStatus> {
        let status = self.harness(key).ended()?;
        self.harnesses.remove(key);
        Some(status)
    }

    pub async fn kill_broker(&mut self) {
        self.broker.take().expect("a broker runs").kill().await;
    }

    /// Kills the broker and starts another.
    pub async fn crash_broker(&mut self) {
        self.kill_broker().await;
        self.start_broker().await;
    }

    pub async fn stop_broker(&mut self) {
        let status = self.broker.take().expect("a broker runs").stop().await;
        assert!(status.success(), "hived ended with {status}");
    }

    pub fn broker(&mut self) -> &mut Process {
        self.broker.as_mut().expect("a broker runs")
    }

    /// Starts an agent's harness with the scripted claude and these rules.
    pub fn start_harness(&mut self, name: &str, rules: &[Rule]) {
        self.start_harness_with(
            name,
            &HarnessOptions { rules: rules.to_vec(), ..HarnessOptions::default() },
        );
    }

    /// Starts an agent's harness. It may run beside one of the same agent, which then goes by
    /// `NAME-2`.
    pub fn start_harness_with(&mut self, name: &str, options: &HarnessOptions) -> String {
        let (state, home) =
            (self.path(format!("agents/{name}/state")), self.path(format!("agents/{name}/home")));
        for dir in [&state, &home] {
            std::fs::create_dir_all(dir).expect("an agent's directory");
        }
        let mut key = name.to_owned();
        while self.harnesses.contains_key(&key) {
            key = format!("{key}-2");
        }
        let mut claude_env = options.claude_env.clone();
        if !options.rules.is_empty() {
            let file = self.path(format!("{key}.script.json"));
            script::write(&file, &options.rules).expect("the script is written");
            claude_env.insert("SCRIPTED_CLAUDE_FILE".to_owned(), file.display().to_string());
        }
        let mut harness = Process::command(&self.program("hive-harness", "hive"));
        harness.arg("serve").args(&options.args);
        harness
            .env("HIVE_SOCKET", self.agent_socket(name))
            .env("HIVE_STATE_DIR", state)
            .env("HIVE_HOME_DIR", home);
        harness
            .env("HIVE_CLAUDE", &options.claude)
            .env("HIVE_MCP", self.program("hive-mcp-bridge", "hive-mcp"));
        harness.env("HIVE_CLAUDE_ENV", serde_json::to_string(&claude_env).expect("plain text"));
        harness
            .env("HIVE_KILL_GRACE_MS", "1000")
            .env("HIVE_DRAIN_GRACE_SECS", "2")
            .env("HIVE_HEARTBEAT_SECS", "1");
        harness.env("HIVE_LOG", "info,hive_harness=debug").envs(&options.env);
        let log = self.path(format!("{key}.log"));
        self.harnesses
            .insert(key.clone(), Process::spawn(&format!("hive serve of {key}"), harness, &log));
        key
    }

    pub fn harness(&mut self, key: &str) -> &mut Process {
        self.harnesses.get_mut(key).unwrap_or_else(|| panic!("no harness of {key} runs"))
    }

    /// Kills a harness without warning. What it started stays, as it would.
    pub async fn kill_harness(&mut self, key: &str) {
        let harness = self.harnesses.remove(key);
        harness.unwrap_or_else(|| panic!("no harness of {key} runs")).kill().await;
    }

    /// Asks a harness to end, and waits for it.
    pub async fn stop_harness(&mut self, key: &str) {
        let harness = self.harnesses.remove(key);
        let status = harness.unwrap_or_else(|| panic!("no harness of {key} runs")).stop().await;
        assert!(status.success(), "the harness of {key} ended with {status}");
    }

    pub async fn operator(&self) -> Client {
        Client::new(self.channel(&self.operator_socket()).await)
    }

    pub async fn agent(&self, name: &str) -> Client {
        Client::new(self.channel(&self.agent_socket(name)).await)
    }

    /// A client on whatever socket, a wire's for example.
    pub async fn client_at(&self, socket: &Path) -> Client {
        Client::new(self.channel(socket).await)
    }

    async fn channel(&self, socket: &Path) -> Channel {
        hive_proto::connect::connect(socket)
            .await
            .unwrap_or_else(|error| panic!("{error}: {}", self.logs()))
    }

    /// Follows the log of committed facts, from its beginning.
    pub async fn watch(&self) -> Watch {
        Watch::new(self.operator_socket())
    }

    /// Follows the log from its present end.
    pub async fn watch_from_now(&self) -> Watch {
        Watch::from_now(self.operator_socket()).await
    }

    /// Waits until a file of the hive's directory exists; the scripted claude makes one by a
    /// `touch` step.
    pub async fn appeared(&self, name: &str) {
        let path = self.path(name);
        soon(&format!("the file {name} appears"), appear::wait(&path))
            .await
            .expect("the directory can be watched");
    }

    /// Makes a file of the hive's directory, for a `wait_file` step.
    pub fn touch(&self, name: &str) {
        std::fs::write(self.path(name), b"").expect("a file");
    }

    /// Returns the logs of all programs, for a failing journey.
    pub fn logs(&self) -> String {
        let mut text = String::new();
        let entries = std::fs::read_dir(self.dir.path()).into_iter().flatten().flatten();
        for path in entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|ext| ext == "log"))
        {
            let log = std::fs::read_to_string(&path).unwrap_or_default();
            let start = log.ceil_char_boundary(log.len().saturating_sub(6000));
            text.push_str(&format!("\n--- {}\n{}", path.display(), &log[start..]));
        }
        text
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if std::thread::panicking() {
            use std::io::Write as _;
            // Through the test's own capture, so that it shows with the failure.
            drop(writeln!(std::io::stderr(), "{}", self.logs()));
        }
        // Harnesses first: each ends what it started, which a killed one could not.
        for harness in self.harnesses.values_mut() {
            harness.end_now();
        }
        if let Some(broker) = &mut self.broker {
            broker.end_now();
        }
        process::end_strays(self.dir.path());
    }
}
