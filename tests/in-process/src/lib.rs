//! The broker inside the process of a test: the real engine, store and services on real sockets,
//! with a clock moved by hand and a tap in front of the socket of one agent or the operator.
//!
//! What it is not: a test of `hived` itself, whose program the journeys run. Invariants: what
//! clients read was decided by the real engine, but for what the tap was asked to do; killing the
//! broker closes every connection at once and keeps the database.

mod tap;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::Parser as _;
use hive_broker::app::{self, Running};
use hive_broker::cli::Cli;
use hive_broker::clock::{Clock, ManualClock};
use hive_broker::{config, engine::Engine};
use hive_tests::rig::{Client, Harness};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;

pub use tap::{Reaction, Recorded, State};
use tap::{Side, Tap};

/// The wall clock at the start, in milliseconds: 2100-01-01T00:00:00Z. No timer of the kernel gets
/// there during a test, so what is due by the wall clock waits for [`Broker::advance`].
const START_MILLIS: i64 = 4_102_444_800_000;

/// Longest time that the tasks of a killed broker may take to stop.
const STOP_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub struct Broker {
    dir: TempDir,
    agent: String,
    clock: Arc<ManualClock>,
    tap: Arc<Tap>,
    life: Option<Life>,
    /// The harnesses that stay attached.
    harnesses: Vec<Harness>,
    socket: PathBuf,
}

#[derive(Debug)]
struct Life {
    runtime: Runtime,
    running: Running,
}

impl Broker {
    /// Returns a broker with this configuration that does not run yet. The tap is in front of the
    /// socket of `agent`, which may be `operator`.
    pub fn stopped(config: &str, agent: &str) -> Self {
        // Short, because the path of a socket has 107 bytes at most.
        let dir = tempfile::Builder::new().prefix("hv").tempdir().expect("a temporary directory");
        std::fs::write(dir.path().join("hive.toml"), config).expect("the configuration is written");
        let clock = Arc::new(ManualClock::new("boot-0"));
        clock.set_wall(hive_core::time::WallTime(START_MILLIS));
        let socket = dir.path().join("tap.sock");
        let (agent, tap) = (agent.to_owned(), Arc::default());
        Self { dir, agent, clock, tap, life: None, harnesses: Vec::new(), socket }
    }

    /// Starts the broker with the tap's socket at this path.
    #[must_use]
    pub fn at(mut self, socket: PathBuf) -> Self {
        self.socket = socket;
        self.run();
        self
    }

    /// Returns a running broker.
    pub fn start(config: &str, agent: &str) -> Self {
        let mut broker = Self::stopped(config, agent);
        broker.run();
        broker
    }

    /// Returns a running broker with an open turn of the agent, whose claude has this token.
    pub async fn in_turn(config: &str, agent: &str, process_token: &str) -> Self {
        let broker = Self::start(config, agent);
        let harness = broker.harness(agent).await;
        harness.open(process_token).await;
        broker.keep(harness)
    }

    /// Keeps a harness attached for as long as the broker runs.
    #[must_use]
    pub fn keep(mut self, harness: Harness) -> Self {
        self.harnesses.push(harness);
        self
    }

    /// Returns the socket behind the tap.
    pub fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    /// Returns a directory that exists as long as the broker.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts the broker, again if it was killed, with the database that it had.
    pub fn run(&mut self) {
        self.kill();
        let path = |name: &str| self.dir.path().join(name).into_os_string();
        let mut arguments = vec!["hived".into()];
        for (option, name) in
            [("--config", "hive.toml"), ("--state-dir", "state"), ("--runtime-dir", "run")]
        {
            arguments.extend([option.into(), path(name)]);
        }
        let settings = config::load(&Cli::parse_from(arguments)).expect("a configuration");
        // A runtime of its own, so that killing the broker closes every connection.
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&self.clock);
        let running =
            aside(|| runtime.block_on(app::start(&settings, clock, app::Parent::default())));
        let running = running.expect("the broker starts");
        // A killed broker leaves its sockets behind.
        drop(std::fs::remove_file(self.socket()));
        let entered = runtime.enter();
        let listener = UnixListener::bind(self.socket()).expect("the socket is free");
        runtime.spawn(tap::serve(Arc::clone(&self.tap), listener, self.real_socket(&self.agent)));
        drop(entered);
        self.life = Some(Life { runtime, running });
    }

    /// Kills the broker: connections break, the sockets stay behind and refuse.
    pub fn kill(&mut self) {
        if let Some(Life { runtime, running }) = self.life.take() {
            aside(|| runtime.shutdown_timeout(STOP_MAX));
            running.engine().store().close();
        }
    }

    fn engine(&self) -> &Arc<Engine> {
        self.life.as_ref().expect("the broker runs").running.engine()
    }

    fn real_socket(&self, agent: &str) -> PathBuf {
        match agent {
            "operator" => self.dir.path().join("run/hived.sock"),
            agent => self.dir.path().join(format!("run/agents/{agent}/hive.sock")),
        }
    }

    /// Sets the wall clock, in milliseconds.
    pub fn set_wall(&self, millis: i64) {
        self.clock.set_wall(hive_core::time::WallTime(millis));
    }

    /// Moves the clocks forward and lets the broker process the items that are due then.
    pub fn advance(&self, span: Duration) {
        self.clock.advance(span);
        self.engine().hints().due.now();
        self.engine().hints().wall_due.notify_one();
    }

    /// Returns a client on the socket of an agent or the operator, past the tap.
    pub async fn client(&self, agent: &str) -> Client {
        let socket = self.real_socket(agent);
        Client::new(hive_proto::connect::connect(&socket).await.expect("a broker answers"))
    }

    /// Returns a client on the operator's socket.
    pub async fn operator(&self) -> Client {
        self.client("operator").await
    }

    /// Attaches a harness to an agent, past the tap.
    pub async fn harness(&self, agent: &str) -> Harness {
        Harness::attach(&self.client(agent).await.channel(), false).await
    }

    /// Sends a message of an agent or the operator to the agent behind the tap; its id.
    pub async fn mail(&self, from: &str, body: &str) -> u64 {
        self.client(from).await.send(&self.agent, body).await
    }

    /// Returns the ids of the messages that came to an agent or the operator, in order.
    pub async fn inbox(&self, agent: &str) -> Vec<u64> {
        let deliveries = self.operator().await.all_deliveries(agent).await;
        let messages = deliveries.into_iter().filter_map(|delivery| delivery.message);
        messages.map(|message| message.id).collect()
    }

    /// Reacts so to the next call that has no reaction yet.
    pub fn react(&self, reaction: Reaction) {
        self.tap.change(|state| state.react(reaction));
    }

    /// Edits each message that the broker answers to calls of a method from now on, and the
    /// metadata of the answer.
    pub fn edit<M: prost::Message + Default + 'static>(
        &self,
        method: &str,
        edit: impl Fn(&mut tonic::Response<M>) + Send + Sync + 'static,
    ) {
        self.tap.change(|state| state.edit(Side::Answer, method, edit));
    }

    /// Edits the requests of a method before the broker gets them; they are recorded as they came.
    pub fn edit_request<M: prost::Message + Default + 'static>(
        &self,
        method: &str,
        edit: impl Fn(&mut M) + Send + Sync + 'static,
    ) {
        let edit = move |request: &mut tonic::Response<M>| edit(request.get_mut());
        self.tap.change(|state| state.edit(Side::Request, method, edit));
    }

    /// Reads what the tap has seen.
    pub fn with<R>(&self, read: impl FnOnce(&State) -> R) -> R {
        self.tap.change(|state| read(state))
    }

    /// Returns the requests of one method, in the order of their arrival.
    pub fn requests<M: prost::Message + Default>(&self, method: &str) -> Vec<M> {
        self.with(|state| state.calls.iter().filter_map(|call| call.request(method)).collect())
    }

    /// Waits until `done` holds for what the tap has seen.
    pub async fn wait_until(&self, what: &str, done: impl Fn(&State) -> bool) {
        self.tap.find(what, |state| done(state).then_some(())).await;
    }

    pub async fn wait_for_calls(&self, count: usize) {
        self.wait_until("enough calls came", |state| state.calls.len() >= count).await;
    }

    /// Waits until the broker has answered a call, and the tap has kept the answer.
    pub async fn withheld(&self) {
        self.wait_until("an answer is kept", |state| state.withheld_count > 0).await;
    }

    /// Waits for the next call, after those that earlier waits have passed, from which `pick` takes
    /// something.
    pub async fn next<T>(&self, what: &str, pick: impl Fn(&Recorded) -> Option<T>) -> T {
        self.tap.find(what, |state| state.next(&pick)).await
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Runs something that blocks, which a thread of a runtime must not.
fn aside<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(run).join()).expect("it does not panic")
}
