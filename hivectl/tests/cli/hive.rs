//! The hive of these tests: the real broker, behind a tap on the operator's socket.
//!
//! Invariant: values that differ from run to run (user, process, directory, etag) are masked by
//! [`Hive::masked`].

use std::ops::Deref;
use std::time::Duration;

use hive_core::reason::Reason;
use hive_in_process::{Broker, Reaction, Recorded};
use hive_proto::status::refusal;
use hive_proto::v1::message_service_client::MessageServiceClient;
use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::*;
use hive_tests::rig::{Client, request};
use prost_types::Timestamp;
use tokio::process::{Child, Command};
use tonic::Status;

use super::play::Player;
use super::run::{Ran, ended, hivectl, run};
use super::terminal::Terminal;

/// When the broker begins, in seconds: 2100-01-01T00:00:00Z.
const START: i64 = 4_102_444_800;
/// 2020-03-01T12:00:00Z.
pub(crate) const NOON: i64 = 1_583_064_000;

pub(crate) struct Hive {
    broker: Broker,
    pub(crate) ada: Option<Player>,
    pub(crate) bob: Option<Player>,
    /// The name that the broker has for the user that runs the tests.
    pub(crate) user: String,
    /// When the broker began, in seconds.
    start: i64,
}

impl Deref for Hive {
    type Target = Broker;

    fn deref(&self) -> &Broker {
        &self.broker
    }
}

impl Hive {
    /// A hive with these agents, and no history.
    pub(crate) fn new(config: &str) -> Self {
        Self::since(START, config)
    }

    /// A hive whose broker begins at this second.
    pub(crate) fn since(start: i64, config: &str) -> Self {
        let mut broker = Broker::stopped(config, "operator");
        broker.set_wall(start * 1000);
        broker.run();
        Self { broker, ada: None, bob: None, user: String::new(), start }
    }

    /// A hive with these agents, in which ada's harness is attached.
    pub(crate) async fn attended(config: &str) -> Self {
        let mut hive = Self::new(config);
        hive.ada = Some(Player::attach(&hive, "ada").await);
        hive
    }

    pub(crate) fn empty() -> Self {
        Self::new("")
    }

    /// Stops and starts the broker; ada reattaches.
    pub(crate) async fn restart(&mut self) {
        self.broker.kill();
        self.broker.run();
        let before = self.ada.take().expect("ada is played");
        self.ada = Some(before.comes_back(self).await);
    }

    pub(crate) fn broker(&mut self) -> &mut Broker {
        &mut self.broker
    }

    pub(crate) fn ada(&mut self) -> &mut Player {
        self.ada.as_mut().expect("ada is played")
    }

    /// The request ids of the changes that hivectl asked for. Settlements have none: they are
    /// repeated by their lease.
    pub(crate) fn changes(&self) -> Vec<String> {
        let reads = ["Get", "List", "Watch", "Search", "Check", "Backup"];
        let is_change = |call: &&Recorded| !reads.iter().any(|read| call.method.starts_with(read));
        let id = |call: &Recorded| Some(call.request::<Change>(&call.method)?.request_id);
        let ids = |call: &Recorded| id(call).filter(|id| !id.is_empty());
        self.with(|state| state.calls.iter().filter(is_change).filter_map(ids).collect())
    }

    pub(crate) fn refuse(&self, reason: Reason, words: &str, retry: Option<Duration>) {
        self.react(Reaction::Refuse(refusal(reason, words, retry)));
    }

    /// Breaks the connection of the next call.
    pub(crate) fn breaks(&self) {
        self.react(Reaction::Refuse(Status::unavailable("transport lost")));
    }

    /// Waits until hivectl waits for what becomes of a question; its id.
    pub(crate) async fn awaited(&self) -> u64 {
        let id = |call: &Recorded| call.request("WatchQuestions");
        self.next::<WatchQuestionsRequest>("a question is awaited", id).await.question_id
    }

    pub(crate) fn hivectl(&self, args: &[&str]) -> Command {
        let mut command = hivectl(&self.socket());
        command.args(args);
        command
    }

    pub(crate) fn spawn(&self, args: &[&str]) -> Child {
        self.hivectl(args).spawn().expect("the binary runs")
    }

    pub(crate) async fn run(&self, args: &[&str]) -> Ran {
        ended(self.spawn(args)).await
    }

    /// Runs it with its stdout on a terminal; and what that shows.
    pub(crate) async fn run_on(terminal: Terminal, mut command: Command) -> (Ran, String) {
        let child = command.stdout(terminal.side()).spawn().expect("the binary runs");
        // The command holds the terminal's other side until it is dropped.
        drop(command);
        (ended(child).await, terminal.shown())
    }

    /// The operator does this, past the tap.
    pub(crate) async fn operate(&self, args: &[&str]) {
        let ran = run(&self.dir().join("run/hived.sock"), args).await;
        assert_eq!(ran.code, 0, "{args:?}: {}", ran.err);
    }

    /// Runs hivectl, and closes the question that it waits for.
    pub(crate) async fn asking(&self, args: &[&str], close: impl AsyncFnOnce(u64)) -> Ran {
        let child = self.spawn(args);
        close(self.awaited().await).await;
        ended(child).await
    }

    pub(crate) async fn answers(&self, question: u64) {
        let claude = self.claude().await;
        let choices = request::texts(&["yes"]);
        let answer =
            AnswerQuestionRequest { choices, ..request::answer(question, "in an hour\nor two") };
        let answer = claude.request(answer);
        let mut questions = QuestionServiceClient::new(claude.channel());
        questions.answer_question(answer).await.expect("it is answered");
    }

    /// Waits until a search finds this message: the index follows the mail.
    pub(crate) async fn finds(&self, query: &str, message_id: u64) {
        let mut messages = MessageServiceClient::new(self.operator().await.channel());
        let search = SearchMessagesRequest { query: query.to_owned(), ..Default::default() };
        let mut is_found = false;
        while !is_found {
            let found = messages.search_messages(search.clone()).await.expect("it is searched");
            is_found = found.into_inner().hits.into_iter().any(|hit| match hit.hit {
                Some(search_hit::Hit::Message(message)) => message.id == message_id,
                _ => false,
            });
        }
    }

    pub(crate) async fn claude(&self) -> Client {
        self.ada.as_ref().expect("ada is played").claude(self).await
    }

    /// Returns the output of a run, the same on every host.
    pub(crate) fn output(&self, ran: &Ran) -> String {
        self.masked(&ran.all())
    }

    pub(crate) fn masked(&self, text: &str) -> String {
        let text = text.replace(self.dir().to_str().expect("text"), "DIR");
        let text = text.replace(&format!("pid {}", std::process::id()), "pid 77");
        let text = text.replace(&format!("\"pid\":{}", std::process::id()), "\"pid\":77");
        let mut parts = text.split("\"etag\":\"").map(str::to_owned);
        let first = parts.next().unwrap_or_default();
        let text = parts.fold(first, |text, part| {
            let end = part.find('"').expect("the end of an etag");
            format!("{text}\"etag\":\"ETAG{}", &part[end..])
        });
        if self.user.is_empty() { text } else { text.replace(&self.user, "uid 1000 (eve)") }
    }

    pub(crate) fn due(&self, seconds: i64) -> Timestamp {
        Timestamp { seconds: self.start + seconds, nanos: 0 }
    }

    pub(crate) fn pass(&self, millis: u64) {
        self.advance(Duration::from_millis(millis));
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Change {
    #[prost(string, tag = "1")]
    request_id: String,
}
