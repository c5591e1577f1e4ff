//! Following: what comes is shown, and Ctrl-C ends it well.

use std::process::Stdio;

use hive_proto::v1::{Event, EventKind};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::fake::Broker;
use super::run::{hivectl, signal};

pub(crate) struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    pub(crate) fn start(broker: &Broker, args: &[&str]) -> Self {
        let mut child = hivectl(&broker.socket())
            .args(args)
            .stderr(Stdio::inherit())
            .spawn()
            .expect("the binary runs");
        let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        Self { child, lines }
    }

    pub(crate) async fn line(&mut self) -> String {
        self.lines.next_line().await.expect("text").expect("one more line")
    }

    /// It ends by itself.
    pub(crate) async fn ends(mut self) -> i32 {
        self.child.wait().await.expect("it ends").code().expect("by itself")
    }

    /// Ctrl-C.
    pub(crate) async fn interrupt(mut self) -> i32 {
        signal(&self.child, Signal::INT);
        self.child.wait().await.expect("it ends").code().expect("by itself")
    }
}

fn accepted(sequence: u64, message_id: u64) -> Event {
    Event { sequence, kind: EventKind::MessageAccepted.into(), message_id, ..Event::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_shows_what_waits_and_then_what_arrives_each_once() {
    let mut broker = Broker::start();
    let mut inbox = Following::start(&broker, &["inbox", "--follow"]);
    broker.watched().await;
    assert_eq!(inbox.line().await, "14  2020-03-01 12:00  ada to operator, answers 10");
    assert_eq!(inbox.line().await, "    It is 42.");
    inbox.line().await;
    assert_eq!(inbox.line().await, "16  2020-03-01 12:00  system to operator");
    inbox.line().await;
    assert_eq!(inbox.line().await, "31  2020-03-01 12:00  system to operator, question 30");
    // One that was shown, one that is ada's.
    broker.happens(accepted(14, 16));
    broker.happens(accepted(15, 10));
    assert_eq!(inbox.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_inbox_can_be_followed_too() {
    let mut broker = Broker::empty();
    let mut inbox = Following::start(&broker, &["inbox", "ada", "--follow", "--json"]);
    broker.watched().await;
    broker.happens(accepted(14, 14));
    broker.happens(accepted(15, 10));
    let line: serde_json::Value = serde_json::from_str(&inbox.line().await).expect("JSON");
    assert_eq!((line["schema"].as_str(), line["id"].as_u64()), (Some("hive.message.v1"), Some(10)));
    assert_eq!(inbox.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_on_where_the_list_ended() {
    let mut broker = Broker::start();
    let mut events = Following::start(&broker, &["events", "--follow", "--after", "12"]);
    assert!(
        events
            .line()
            .await
            .starts_with("13  2020-03-01 12:00  question_answered  ada  question 33")
    );
    broker.watched().await;
    // 13 was shown; it is not shown again.
    broker.happens(accepted(13, 14));
    broker.happens(accepted(14, 20));
    assert!(events.line().await.starts_with("14  -  message_accepted  message 20"));
    assert_eq!(events.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turns_output_is_streamed_to_its_end() {
    let broker = Broker::start();
    let mut turn = Following::start(&broker, &["turn", "show", "11", "--follow"]);
    let mut told = Vec::new();
    while let Some(line) = turn.lines.next_line().await.expect("text") {
        told.push(line);
    }
    assert_eq!(turn.child.wait().await.expect("it ends").code(), Some(0));
    insta::assert_snapshot!(told.join("\n"));
}
