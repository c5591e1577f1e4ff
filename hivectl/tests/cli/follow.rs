//! Following: new items are shown, and Ctrl-C ends the program cleanly.

use std::process::Stdio;

use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use super::hive::Hive;
use super::run::{assert_starts, signal};

pub(crate) struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Following {
    pub(crate) fn start(hive: &Hive, args: &[&str]) -> Self {
        let mut child =
            hive.hivectl(args).stderr(Stdio::inherit()).spawn().expect("the binary runs");
        let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        Self { child, lines }
    }

    pub(crate) async fn line(&mut self) -> String {
        self.lines.next_line().await.expect("text").expect("one more line")
    }

    pub(crate) async fn ends(mut self) -> i32 {
        self.child.wait().await.expect("it ends").code().expect("by itself")
    }

    pub(crate) async fn interrupt(mut self) -> i32 {
        signal(&self.child, Signal::INT);
        self.child.wait().await.expect("it ends").code().expect("by itself")
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_inbox_shows_what_waits_and_then_what_arrives_each_once() {
    let hive = Hive::start().await;
    let mut inbox = Following::start(&hive, &["inbox", "--follow"]);
    assert_eq!(inbox.line().await, "3  2100-01-01 00:00  ada to operator, answers 1");
    assert_eq!(inbox.line().await, "    It is 42.");
    inbox.line().await;
    assert_eq!(inbox.line().await, "15  2100-01-01 00:00  system to operator, question 14");
    while inbox.line().await != "    > Its disk is full." {}
    // Mail to ada is not shown.
    hive.operator().await.send("ada", "yours").await;
    let claude = hive.claude().await;
    let id = claude.send("operator", "news").await;
    assert_eq!(inbox.line().await, format!("{id}  2100-01-01 00:02  ada to operator"));
    assert_eq!(inbox.line().await, "    news");
    assert_eq!(inbox.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agents_inbox_can_be_followed_too() {
    let hive = Hive::new("[agents.ada]\n[agents.bob]");
    let operator = hive.operator().await;
    let first = operator.send("ada", "first").await;
    let mut inbox = Following::start(&hive, &["inbox", "ada", "--follow", "--json"]);
    let mut line = async || {
        let line: serde_json::Value = serde_json::from_str(&inbox.line().await).expect("JSON");
        assert_eq!(line["schema"], "hive.message.v1");
        line["id"].as_u64().expect("a number")
    };
    assert_eq!(line().await, first);
    operator.send("bob", "another's").await;
    let second = operator.send("ada", "second").await;
    assert_eq!(line().await, second);
    assert_eq!(inbox.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_on_where_the_list_ended() {
    let hive = Hive::new("[agents.ada]");
    let operator = hive.operator().await;
    operator.send("ada", "first").await;
    let mut events = Following::start(&hive, &["events", "--follow", "--after", "1"]);
    let first = events.line().await;
    assert_starts(&first, "2  2100-01-01 00:00  message_accepted  ada  message 1");
    // The first message was shown, so it is not shown again.
    operator.send("ada", "second").await;
    let second = events.line().await;
    assert_starts(&second, "3  2100-01-01 00:00  message_accepted  ada  message 2");
    assert_eq!(events.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turns_output_is_streamed_to_its_end() {
    let hive = Hive::start().await;
    let mut turn = Following::start(&hive, &["turn", "show", "2", "--follow"]);
    let mut output = Vec::new();
    while let Some(line) = turn.lines.next_line().await.expect("text") {
        output.push(line);
    }
    assert_eq!(turn.child.wait().await.expect("it ends").code(), Some(0));
    insta::assert_snapshot!(output.join("\n"));
}
