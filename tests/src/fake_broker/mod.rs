//! A broker that only records and answers: for tests of the bridge, where the real one would say
//! too much.
//!
//! It keeps no contract but two points: the same request id gets the same receipt, and what was
//! handed out is not handed out again unless the same request id asks. Invariant: killing it closes
//! every connection at once, as `kill -9` of the real one does.

mod loose_ends;
mod questions;
mod services;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hive_proto::v1::{
    Agent, AnswerQuestionRequest, AskQuestionRequest, CancelLooseEndRequest, CreateReminderRequest,
    Delivery, FindAgentsRequest, GetAgentRequest, ListLooseEndsRequest, LooseEnd, Message, Origin,
    OriginKind, Question, ReceiveMessagesRequest, SendMessageRequest, SetStatusTextRequest,
};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::Status;

/// A test that waits so long for a signal has failed.
const SIGNAL_MAX: Duration = Duration::from_secs(60);

/// What its clock shows, in seconds of the Unix epoch: 2023-11-14T22:13:20Z.
const NOW_SECONDS: i64 = 1_700_000_000;

/// A call as it came in.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// What was asked.
    pub rpc: Rpc,
    /// The process token it carried.
    pub process_token: Option<String>,
}

/// What was asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Rpc {
    /// MessageService.SendMessage
    Send(SendMessageRequest),
    /// InboxService.ReceiveMessages
    Receive(ReceiveMessagesRequest),
    /// TurnService.RequestNextTurn
    RequestNextTurn,
    /// TopologyService.GetSelf
    GetSelf,
    /// TopologyService.GetAgent
    GetAgent(GetAgentRequest),
    /// TopologyService.FindAgents
    FindAgents(FindAgentsRequest),
    /// QuestionService.AskQuestion
    Ask(AskQuestionRequest),
    /// QuestionService.AnswerQuestion
    Answer(AnswerQuestionRequest),
    /// ReminderService.CreateReminder
    Remind(CreateReminderRequest),
    /// LooseEndService.ListLooseEnds
    ListLooseEnds(ListLooseEndsRequest),
    /// LooseEndService.CancelLooseEnd
    CancelLooseEnd(CancelLooseEndRequest),
    /// StatusService.SetStatusText
    SetStatusText(SetStatusTextRequest),
}

/// What the broker does with the next call instead of answering it.
#[derive(Debug)]
pub enum Reaction {
    /// Refuses.
    Refuse(Status),
    /// Takes the effect, and never answers.
    ActAndHang,
    /// Neither acts nor answers.
    Hang,
}

/// What the broker knows.
#[derive(Debug, Default)]
pub struct State {
    /// Every call, in the order of their arrival.
    pub calls: Vec<Recorded>,
    /// How many calls ended without an answer because the caller went away.
    pub dropped_count: usize,
    /// Mail that waits.
    pub mail: VecDeque<Delivery>,
    /// Whether the open turn takes no further mail.
    pub served_alone: bool,
    /// Agents by name; the first is the caller.
    pub agents: Vec<Agent>,
    /// Questions, the oldest first.
    pub questions: Vec<Question>,
    /// What a list of loose ends gives.
    pub loose_ends: Vec<LooseEnd>,
    /// Whether an earlier attempt of the turn had asked and set the same.
    pub already_done: bool,
    reactions: VecDeque<Reaction>,
    receipts: HashMap<String, u64>,
    leases: HashMap<String, Vec<Delivery>>,
    last_id: u64,
}

impl State {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// The messages that were accepted, each once.
    #[must_use]
    pub fn sent(&self) -> Vec<&SendMessageRequest> {
        let mut seen = std::collections::HashSet::new();
        let sends = self.calls.iter().filter_map(|call| {
            if let Rpc::Send(request) = &call.rpc { Some(request) } else { None }
        });
        sends.filter(|request| seen.insert(&request.request_id)).collect()
    }
}

/// This broker's clock, which stands still, and so many seconds on.
fn seconds_on(seconds: i64) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: NOW_SECONDS + seconds, nanos: 0 }
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = change(&mut self.state());
        self.changed.send_modify(|version| *version += 1);
        result
    }
}

/// A fake broker on a socket of its own.
#[derive(Debug)]
pub struct FakeBroker {
    dir: TempDir,
    shared: Arc<Shared>,
    life: Option<Runtime>,
}

impl FakeBroker {
    /// A broker that is not running yet.
    #[must_use]
    pub fn stopped() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let shared = Arc::new(Shared::default());
        shared.change(|state| {
            state.last_id = 100;
            state.agents.push(Agent {
                name: "alice".to_owned(),
                running: true,
                ..Agent::default()
            });
        });
        Self { dir, shared, life: None }
    }

    /// A running broker.
    #[must_use]
    pub fn start() -> Self {
        let mut broker = Self::stopped();
        broker.run();
        broker
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("hive.sock")
    }

    /// A directory that lives as long as the broker.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts it, again if it was killed; what it knows stays.
    pub fn run(&mut self) {
        self.kill();
        let socket = self.socket();
        // A killed broker leaves its socket behind, as a real one does.
        let _ = std::fs::remove_file(&socket);
        // A runtime of its own, so that killing it takes every connection along.
        let life = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let listener = {
            let _guard = life.enter();
            UnixListener::bind(&socket).expect("the socket is free")
        };
        life.spawn(
            services::router(&self.shared).serve_with_incoming(UnixListenerStream::new(listener)),
        );
        self.life = Some(life);
    }

    /// Kills it: connections break, the socket stays behind and refuses.
    pub fn kill(&mut self) {
        if let Some(life) = self.life.take() {
            life.shutdown_background();
        }
    }

    /// Reads or changes what it knows.
    pub fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        self.shared.change(change)
    }

    /// Puts a message of an agent into the inbox; gives its id.
    pub fn mail(&self, from: &str, body: &str) -> u64 {
        let origin = match from {
            "operator" => Origin { kind: OriginKind::Operator.into(), name: "mara".to_owned() },
            name => Origin { kind: OriginKind::Agent.into(), name: name.to_owned() },
        };
        self.with(|state| {
            let id = state.next_id();
            let message =
                Message { id, origin: Some(origin), body: body.to_owned(), ..Message::default() };
            state.mail.push_back(Delivery {
                message: Some(message),
                attempt: 1,
                ..Delivery::default()
            });
            id
        })
    }

    /// What to do with the next call that has no reaction yet.
    pub fn react(&self, reaction: Reaction) {
        self.with(|state| state.reactions.push_back(reaction));
    }

    /// Waits until `done` holds for what the broker knows.
    ///
    /// # Panics
    ///
    /// If it does not within a minute.
    pub async fn wait_until(&self, what: &str, done: impl Fn(&State) -> bool) {
        let mut changed = self.shared.changed.subscribe();
        let waited = tokio::time::timeout(SIGNAL_MAX, async {
            while !done(&self.shared.state()) {
                changed.changed().await.expect("the sender lives in the broker");
            }
        });
        assert!(waited.await.is_ok(), "waited in vain until {what}: {:#?}", self.shared.state());
    }

    /// Waits for so many calls.
    pub async fn wait_for_calls(&self, count: usize) {
        self.wait_until("enough calls came", |state| state.calls.len() >= count).await;
    }
}

impl Drop for FakeBroker {
    fn drop(&mut self) {
        self.kill();
    }
}
