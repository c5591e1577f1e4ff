//! A supervisor under test, its clients, and the receiver of its mail.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::Parser as _;
use hive_harness::cli::{Cli, Command};
use hive_harness::process::family::tasks::Tasks;
use hive_harness::task::sandbox::choose;
use hive_harness::task::{
    Confinement, Sandbox, Settings, Supervisor, TaskConfig, Waker, environment,
};
use hive_proto::harness_v1::task_service_client::TaskServiceClient;
use hive_proto::harness_v1::{GetTaskRequest, RunTaskRequest, Task};
use tempfile::TempDir;
use tokio::sync::watch;
use tonic::Status;
use tonic::transport::Channel;

/// Maximum duration of a wait.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The longest inline wait.
pub(crate) const LONG: u64 = 30;

#[derive(Debug)]
pub(crate) struct Mail {
    told: watch::Sender<Vec<(String, String)>>,
    /// Whether the broker answers; else a refusal of this kind.
    refusal: Mutex<Option<Status>>,
    /// The id of the message that the next one supersedes.
    superseded: Mutex<u64>,
}

impl Mail {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            told: watch::Sender::new(Vec::new()),
            refusal: Mutex::new(None),
            superseded: Mutex::new(0),
        })
    }

    pub(crate) fn refuse(&self, refusal: Option<Status>) {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = refusal;
    }

    pub(crate) fn supersede(&self, id: u64) {
        *self.superseded.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// Every attempt so far: request id and body.
    pub(crate) fn attempts(&self) -> Vec<(String, String)> {
        self.told.borrow().clone()
    }

    /// Waits for `count` attempts and returns the last one's body.
    pub(crate) async fn body(&self, count: usize) -> String {
        let mut told = self.told.subscribe();
        let told = tokio::time::timeout(PATIENCE, told.wait_for(|told| told.len() >= count)).await;
        let told = told.expect("mail comes").expect("the mail box lives").clone();
        told.last().expect("a message").1.clone()
    }
}

impl Waker for Mail {
    fn wake(
        &self,
        request_id: String,
        body: String,
    ) -> Pin<Box<dyn Future<Output = Result<u64, Status>> + Send + '_>> {
        Box::pin(async move {
            self.told.send_modify(|told| told.push((request_id, body)));
            match &*self.refusal.lock().unwrap_or_else(PoisonError::into_inner) {
                Some(refusal) => Err(refusal.clone()),
                None => Ok(*self.superseded.lock().unwrap_or_else(PoisonError::into_inner)),
            }
        })
    }
}

pub(crate) struct Stage {
    pub(crate) dir: Arc<TempDir>,
    pub(crate) supervisor: Supervisor,
    pub(crate) mail: Arc<Mail>,
    pub(crate) client: TaskServiceClient<Channel>,
}

impl Stage {
    pub(crate) async fn new() -> Self {
        Self::with(&[]).await
    }

    pub(crate) async fn with(settings: &[&str]) -> Self {
        Self::again(Arc::new(tempfile::tempdir().expect("a directory")), settings).await
    }

    /// A supervisor where one has been before.
    pub(crate) async fn again(dir: Arc<TempDir>, settings: &[&str]) -> Self {
        let mail = Mail::new();
        let waker: Arc<dyn Waker> = Arc::<Mail>::clone(&mail);
        let supervisor = supervisor(dir.path(), settings, waker).await;
        let client = client(dir.path());
        Self { dir, supervisor, mail, client }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("state").join(name)
    }

    /// Waits for a process to write its number into a file of the state directory.
    pub(crate) async fn pid(&self, name: &str) -> i32 {
        pid(&self.path(name)).await
    }

    /// Runs a command and waits for its end.
    pub(crate) async fn done(&mut self, command: &str) -> Task {
        let task = self.run(command, LONG).await.expect("it is taken");
        assert_ne!(task.state().as_str_name(), "TASK_STATE_RUNNING", "{command}");
        task
    }

    /// Runs a command and waits up to `wait` seconds.
    pub(crate) async fn run(&mut self, command: &str, wait: u64) -> Result<Task, Status> {
        self.ask(request(command, wait)).await
    }

    pub(crate) async fn ask(&mut self, request: RunTaskRequest) -> Result<Task, Status> {
        Ok(self.client.run_task(request).await?.into_inner().task.expect("a task"))
    }

    pub(crate) async fn get(&mut self, id: u64, wait: u64) -> Result<Task, Status> {
        let request = GetTaskRequest { id, wait: seconds(wait) };
        Ok(self.client.get_task(request).await?.into_inner().task.expect("a task"))
    }

    /// Ends this supervisor and starts another in its place.
    pub(crate) async fn restarted(self) -> Self {
        let Self { dir, supervisor, mail: _, client } = self;
        drop(client);
        supervisor.shutdown().await;
        Self::again(dir, &[]).await
    }
}

/// A supervisor in this directory, which may run tasks.
pub(crate) async fn supervisor(dir: &Path, settings: &[&str], waker: Arc<dyn Waker>) -> Supervisor {
    let (run_dir, state_dir) = (dir.join("run"), dir.join("state"));
    std::fs::create_dir_all(&state_dir).expect("created");
    let args = Cli::try_parse_from(["hive", "serve"].iter().chain(settings)).expect("parses");
    let Command::Serve(args) = args.command else { unreachable!("serve was asked for") };
    let settings = Settings::new(&args.tasks).expect("sound");
    let inherited = BTreeMap::from([
        ("PATH", "/usr/bin:/bin"),
        ("ANTHROPIC_API_KEY", "secret"),
        ("HIVE_RUN_DIR", "x"),
    ]);
    let inherited =
        inherited.into_iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let environment = environment::build(
        inherited,
        &BTreeMap::new(),
        dir,
        Path::new("/run/agent.sock"),
        &run_dir,
        settings.cargo_short_messages,
        false,
    );
    let confinement =
        if crate::SANDBOXED { sandbox(dir, &run_dir, &state_dir) } else { Confinement::None };
    let config = TaskConfig {
        socket: run_dir.join("tasks.sock"),
        run_dir,
        state_dir,
        environment,
        settings,
        confinement,
    };
    let supervisor = Supervisor::start(config, Tasks::default(), waker).await.expect("started");
    supervisor.set_allowed(true);
    supervisor
}

/// The sandbox of the tasks of an isolated agent; nothing, where the host allows none and tests may
/// be skipped.
pub(crate) fn sandbox(home: &Path, run_dir: &Path, state_dir: &Path) -> Confinement {
    let sandbox = Sandbox {
        bwrap: "bwrap".into(),
        hive: env!("CARGO_BIN_EXE_hive").into(),
        user_namespaces: false,
        can_disable: true,
        home_dir: home.to_path_buf(),
        run_dir: run_dir.to_path_buf(),
        state_dir: state_dir.to_path_buf(),
        private_dir: home.join("private"),
    };
    let (confinement, why) = choose(sandbox);
    if !confinement.is_sandbox() {
        // The same check as `host::allows` of the crate `hive-tests`, which cannot be used here.
        let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
        let why = why.unwrap_or_default();
        assert!(
            !is("CI", "true") && !is("HIVE_TEST_STRICT", "1"),
            "this host does not allow sandboxes: {why}"
        );
        drop(writeln!(
            std::io::stderr().lock(),
            "NOT TESTED: this host does not allow sandboxes: {why}"
        ));
        return Confinement::None;
    }
    confinement
}

pub(crate) fn client(dir: &Path) -> TaskServiceClient<Channel> {
    TaskServiceClient::new(
        hive_proto::connect::connect_lazy(&dir.join("run/tasks.sock")).expect("a short path"),
    )
}

pub(crate) fn request(command: &str, wait: u64) -> RunTaskRequest {
    let request_id = hive_harness::token::random();
    RunTaskRequest { request_id, command: command.to_owned(), timeout: None, wait: seconds(wait) }
}

pub(crate) fn seconds(seconds: u64) -> Option<prost_types::Duration> {
    Some(prost_types::Duration { seconds: i64::try_from(seconds).expect("few"), nanos: 0 })
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

/// Waits for a number in a file of a task's working directory, and returns the process that has
/// this number in its own sandbox.
pub(crate) async fn pid(path: &Path) -> i32 {
    let read = || std::fs::read_to_string(path).ok()?.strip_suffix('\n')?.parse().ok();
    wait_until(&path.display().to_string(), || read().is_some()).await;
    let number: i32 = read().expect("a number");
    let dir = path.parent().and_then(|dir| dir.canonicalize().ok());
    let is_it = |pid: &i32| {
        let file = |name: &str| Path::new("/proc").join(pid.to_string()).join(name);
        let status = std::fs::read_to_string(file("status")).unwrap_or_default();
        let numbers =
            status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
        numbers.split_whitespace().last() == Some(&number.to_string())
            && std::fs::read_link(file("cwd")).ok() == dir
    };
    // For an ended process, use a number that no other process can have.
    let gone = if crate::SANDBOXED { i32::MAX } else { number };
    hive_harness::process::family::all().find(is_it).unwrap_or(gone)
}

pub(crate) fn lives(pid: i32) -> bool {
    hive_harness::process::family::find(pid).is_some_and(hive_harness::process::family::is_alive)
}
