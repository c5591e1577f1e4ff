//! A broker that answers from a script.
//!
//! What it is not: it keeps no mail and checks no rule. Every answer is fixed data, and a few names
//! stand for a refusal. It writes down the changes that it was asked for.

mod admin;
mod data;
mod login;
mod mail;
mod open;
mod people;
mod questions;
mod reminders;
mod turns;

pub(crate) use self::admin::DATABASE_BYTES;
pub(crate) use self::login::PROMPT;
pub(crate) use self::turns::Output;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use hive_core::reason::Reason;
use hive_proto::v1::admin_service_server::AdminServiceServer;
use hive_proto::v1::event_service_server::EventServiceServer;
use hive_proto::v1::inbox_service_server::InboxServiceServer;
use hive_proto::v1::loose_end_service_server::LooseEndServiceServer;
use hive_proto::v1::message_service_server::MessageServiceServer;
use hive_proto::v1::question_service_server::QuestionServiceServer;
use hive_proto::v1::reminder_service_server::ReminderServiceServer;
use hive_proto::v1::topology_service_server::TopologyServiceServer;
use hive_proto::v1::turn_history_service_server::TurnHistoryServiceServer;
use hive_proto::v1::{Event, Question};
use tokio::net::UnixListener;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;
use tonic::{Response, Status};

/// A running broker; it ends with this value.
pub(crate) struct Broker {
    dir: tempfile::TempDir,
    socket: PathBuf,
    script: Arc<Script>,
    watching: mpsc::UnboundedReceiver<()>,
    server: tokio::task::JoinHandle<()>,
}

/// What the services share.
pub(crate) struct Script {
    changes: Arc<Mutex<Vec<(String, String)>>>,
    events: broadcast::Sender<Event>,
    /// A question that changes; none: the watch breaks, as if the broker went away.
    questions: broadcast::Sender<Option<Question>>,
    /// Whether the broker was away.
    was_away: AtomicBool,
    /// Whether a backup stops in the middle and waits.
    stalls: AtomicBool,
    /// What ada's open turn does.
    output: broadcast::Sender<Output>,
    /// Whether ada's open turn has ended.
    has_ended: AtomicBool,
    /// Whether her next turn has begun.
    has_begun: AtomicBool,
    watched: mpsc::UnboundedSender<()>,
    empty: bool,
    /// How many of its agents there are.
    agents: usize,
    /// Whether nothing of it is well.
    sick: bool,
}

impl Broker {
    /// A hive of two agents with some history.
    pub(crate) fn start() -> Self {
        Self::with(false, false)
    }

    /// A hive of nobody and nothing.
    pub(crate) fn empty() -> Self {
        Self::with(true, false)
    }

    /// A broker of another version, with a disk that fails, on its way down.
    pub(crate) fn sick() -> Self {
        Self::with(false, true)
    }

    fn with(empty: bool, sick: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("hived.sock");
        Self::at(dir, socket, usize::MAX, empty, sick)
    }

    /// A hive of ada, or of ada and bob, on this socket.
    pub(crate) fn on(socket: PathBuf, agents: usize) -> Self {
        Self::at(tempfile::tempdir().expect("a directory"), socket, agents, false, false)
    }

    fn at(dir: tempfile::TempDir, socket: PathBuf, agents: usize, empty: bool, sick: bool) -> Self {
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (watched, watching) = mpsc::unbounded_channel();
        let script = Arc::new(Script {
            changes: Arc::default(),
            events: broadcast::Sender::new(16),
            questions: broadcast::Sender::new(16),
            was_away: AtomicBool::new(false),
            stalls: AtomicBool::new(false),
            output: broadcast::Sender::new(16),
            has_ended: AtomicBool::new(false),
            has_begun: AtomicBool::new(false),
            watched,
            empty,
            agents,
            sick,
        });
        let share = || Arc::clone(&script);
        let server = Server::builder()
            .add_service(AdminServiceServer::from_arc(share()))
            .add_service(EventServiceServer::from_arc(share()))
            .add_service(InboxServiceServer::from_arc(share()))
            .add_service(LooseEndServiceServer::from_arc(share()))
            .add_service(MessageServiceServer::from_arc(share()))
            .add_service(QuestionServiceServer::from_arc(share()))
            .add_service(ReminderServiceServer::from_arc(share()))
            .add_service(TopologyServiceServer::from_arc(share()))
            .add_service(TurnHistoryServiceServer::from_arc(share()))
            .serve_with_incoming(UnixListenerStream::new(listener));
        let server = tokio::spawn(async move { server.await.expect("the server serves") });
        Self { dir, socket, script, watching, server }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.socket.clone()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The changes asked for so far, without their request ids.
    pub(crate) fn changes(&self) -> Vec<String> {
        self.script
            .changes
            .lock()
            .expect("no panic")
            .iter()
            .map(|(_, change)| change.clone())
            .collect()
    }

    /// The request ids of the changes.
    pub(crate) fn request_ids(&self) -> Vec<String> {
        self.script.changes.lock().expect("no panic").iter().map(|(id, _)| id.clone()).collect()
    }

    /// Waits until somebody watches the event log, questions, or ada's open turn, or waits for a
    /// backup that stalls, or until a login dialogue hears something.
    pub(crate) async fn watched(&mut self) {
        self.watching.recv().await.expect("the script lives");
    }

    /// Something happens.
    pub(crate) fn happens(&self, event: Event) {
        self.script.events.send(event).expect("somebody watches");
    }

    /// A question is asked or closed.
    pub(crate) fn question(&self, question: Question) {
        self.script.questions.send(Some(question)).expect("somebody watches");
    }

    /// From now on a backup stops in the middle and waits.
    pub(crate) fn stalls(&self) {
        self.script.stalls.store(true, Ordering::SeqCst);
    }

    /// The broker goes away, and comes back with question 30 answered.
    pub(crate) fn goes_away(&self) {
        self.script.was_away.store(true, Ordering::SeqCst);
        self.script.questions.send(None).expect("somebody watches");
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Script {
    /// Writes a change down, and answers how often it was asked for.
    fn change(&self, request_id: &str, change: String) -> usize {
        let mut changes = self.changes.lock().expect("no panic");
        changes.push((request_id.to_owned(), change.clone()));
        changes.iter().filter(|(_, other)| *other == change).count()
    }
}

/// What a call answers.
type Answer<T> = Result<Response<T>, Status>;

/// A refusal by the broker.
fn refused<T>(reason: Reason, words: impl Into<String>) -> Result<T, Status> {
    Err(hive_proto::status::refusal(reason, words, None))
}

/// A call that the program under test does not make.
fn unused<T>() -> Answer<T> {
    Err(Status::unimplemented("not in the script"))
}
