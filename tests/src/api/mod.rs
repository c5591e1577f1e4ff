//! A stand-in for the Messages API on loopback, for the real claude CLI to talk to.
//!
//! It keeps no state of a conversation: the prompt selects the rule of the script, and the number
//! of answers since the prompt selects the step. Therefore many agents can use one stand-in at
//! once. Invariant: every request for a message is recorded before it is answered.
//!
//! A test writes a [`Script`] of rules, each with its [`Reply`]s, and checks the requests that were
//! [`Recorded`]:
//!
//! ```text
//!   Script::new().when("hello", [Reply::overloaded().times(2), Reply::tool("mcp__hive__send", input), Reply::text("Done.").using(usage)])
//!                .on(|request| request.mentions("x"), [Reply::text("late").held(&gate)])
//!                .compacting([Reply::too_long().times(4)])
//! ```

mod conversation;
mod events;
mod gate;
mod reply;
mod script;
mod serve;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::runtime::Runtime;
use tokio::sync::watch;

pub use gate::Gate;
pub use reply::{Reply, Usage};
pub use script::{Rule, Script};

/// Maximum wait of a test for a signal.
const SIGNAL_MAX: Duration = Duration::from_secs(120);

/// The purpose of a request for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An inference of a turn.
    Turn,
    /// A summary of the conversation.
    Compaction,
}

/// A request for a message.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// The purpose of the request.
    pub kind: Kind,
    /// The prompt that the turn began with.
    pub prompt: String,
    /// Number of answers of the model since the prompt.
    pub step: usize,
    pub body: Value,
    pub time: Instant,
}

impl Recorded {
    /// The system prompt.
    pub fn system(&self) -> String {
        conversation::text(&self.body["system"])
    }

    /// Names of the tools that the model is offered.
    pub fn tools(&self) -> Vec<&str> {
        self.body["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["name"].as_str())
            .collect()
    }

    /// Returns the results of tools in this conversation: the call's id, the text, and whether it
    /// is an error; oldest first.
    pub fn tool_results(&self) -> Vec<(String, String, bool)> {
        conversation::tool_results(&self.body)
    }

    /// Returns whether a text is anywhere in the messages; if not, it never reached the
    /// model.
    pub fn mentions(&self, text: &str) -> bool {
        conversation::mentions(&self.body["messages"], text)
    }
}

#[derive(Debug)]
struct Shared {
    script: Mutex<Script>,
    recorded: Mutex<Vec<Recorded>>,
    count: watch::Sender<usize>,
    token_counts: AtomicUsize,
}

impl Shared {
    fn script(&self) -> MutexGuard<'_, Script> {
        self.script.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn recorded(&self) -> MutexGuard<'_, Vec<Recorded>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, request: Recorded) {
        let count = {
            let mut recorded = self.recorded();
            recorded.push(request);
            recorded.len()
        };
        self.count.send_replace(count);
    }

    fn counted(&self) {
        self.token_counts.fetch_add(1, Ordering::SeqCst);
    }
}

/// A stand-in that listens on a port of its own.
#[derive(Debug)]
pub struct Api {
    port: u16,
    shared: Arc<Shared>,
    life: Option<Runtime>,
}

impl Api {
    pub fn start(script: Script) -> Self {
        let shared = Shared {
            script: Mutex::new(script),
            recorded: Mutex::default(),
            count: watch::Sender::default(),
            token_counts: AtomicUsize::default(),
        };
        let shared = Arc::new(shared);
        let mut api = Self { port: 0, shared, life: None };
        api.run();
        api
    }

    /// Returns the stand-in's address, for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Starts it again after [`Self::kill`], on the same port.
    pub fn run(&mut self) {
        self.kill();
        // A runtime of its own, so that killing it takes every connection along.
        let life = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = std::net::TcpListener::bind(("127.0.0.1", self.port)).expect("a free port");
        self.port = listener.local_addr().expect("it is bound").port();
        life.spawn(serve::serve(listener, Arc::clone(&self.shared)));
        self.life = Some(life);
    }

    /// Takes it away: connections break, new ones are refused.
    pub fn kill(&mut self) {
        if let Some(life) = self.life.take() {
            life.shutdown_background();
        }
    }

    /// Replaces the script.
    pub fn set_script(&self, script: Script) {
        *self.shared.script() = script;
    }

    /// Every request for a message so far.
    pub fn recorded(&self) -> Vec<Recorded> {
        self.shared.recorded().clone()
    }

    /// Returns the number of requests of one kind for a message.
    pub fn count(&self, kind: Kind) -> usize {
        self.shared.recorded().iter().filter(|request| request.kind == kind).count()
    }

    /// Returns the number of requests to count tokens. They cost nothing, and are not
    /// recorded.
    pub fn token_counts(&self) -> usize {
        self.shared.token_counts.load(Ordering::SeqCst)
    }

    /// Waits until `done` holds for the requests so far, and gives them.
    pub async fn wait_until(
        &self,
        what: &str,
        done: impl Fn(&[Recorded]) -> bool,
    ) -> Vec<Recorded> {
        let mut count = self.shared.count.subscribe();
        let waited = tokio::time::timeout(SIGNAL_MAX, async {
            while !done(&self.shared.recorded()) {
                count.changed().await.expect("the sender lives in the stand-in");
            }
        });
        let prompts: Vec<String> =
            self.recorded().into_iter().map(|request| request.prompt).collect();
        assert!(waited.await.is_ok(), "waited in vain until {what}; prompts: {prompts:#?}");
        self.recorded()
    }

    /// Waits for `count` requests in all.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Recorded> {
        self.wait_until("enough requests came", |requests| requests.len() >= count).await
    }
}

impl Drop for Api {
    fn drop(&mut self) {
        self.kill();
    }
}
