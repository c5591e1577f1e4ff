//! `hivectl turn show --follow`: what a turn says, while it says it, and how it ends.

use std::process::Stdio;

use hive_tests::binary;
use hive_tests::rig::{Mode, Process, Rig, soon};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout};

use crate::steps::{acked, answer, exit, handled, rule, text, touch, wait_for};

both!(a_turn_is_followed_to_its_end, an_agent_is_followed_from_turn_to_turn);

struct Follower {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    said: String,
}

impl Follower {
    fn of(rig: &Rig, agent: &str) -> Self {
        let mut command = Process::command(&binary::find("hivectl", "hivectl"));
        command
            .env("TZ", "UTC")
            .arg("--socket")
            .arg(rig.operator_socket())
            .args(["turn", "show", agent, "--follow"]);
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("hivectl starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout is a pipe")).lines();
        Self { child, lines, said: String::new() }
    }

    /// Reads on to a line that contains this.
    async fn says(&mut self, text: &str) {
        loop {
            let line =
                soon(&format!("it says {text:?}, after:\n{}", self.said), self.lines.next_line())
                    .await
                    .expect("text");
            let line =
                line.unwrap_or_else(|| panic!("it ended without saying {text:?}:\n{}", self.said));
            self.said.push_str(&line);
            self.said.push('\n');
            if line.contains(text) {
                return;
            }
        }
    }

    /// Reads to the end; the exit code.
    async fn ends(&mut self) -> Option<i32> {
        while let Some(line) = soon("it goes on", self.lines.next_line()).await.expect("text") {
            self.said.push_str(&line);
            self.said.push('\n');
        }
        soon("it ends", self.child.wait()).await.expect("it can be waited for").code()
    }

    fn interrupt(&self) {
        let pid =
            self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).expect("it runs");
        kill_process(pid, Signal::INT).expect("it runs");
    }
}

async fn a_turn_is_followed_to_its_end(mode: Mode) {
    let mut rig = Rig::duo().await;
    let steps = vec![
        text("First I look."),
        touch(&rig, "reached"),
        wait_for(&rig, "go"),
        answer("operator", "It is 42."),
        text("Now I rest."),
    ];
    mode.start(&mut rig, &[rule("", steps)]);
    let operator = rig.operator().await;
    operator.send("bob", "What is it?").await;
    rig.appeared("reached").await;
    let turn = operator.get_agent("bob").await.open_turn_ids[0];
    let mut follower = Follower::of(&rig, &turn.to_string());
    // While it runs.
    follower.says("First I look.").await;
    rig.touch("go");
    follower.says("-> mcp__hive__send body=\"It is 42.\"").await;
    follower.says("Sent #").await;
    follower.says("Now I rest.").await;
    assert_eq!(follower.ends().await, Some(0), "{}", follower.said);
    let last = follower.said.lines().last().unwrap_or_default().to_lowercase();
    assert!(last.contains("ok"), "the end is shown: {}", follower.said);
    // The stored output equals the output that was followed.
    let kept = rig.hivectl(&["turn", "show", &turn.to_string(), "--output"]).await;
    for words in [
        "  First I look.",
        "-> mcp__hive__send body=\"It is 42.\"",
        "  Now I rest.",
        "[success] Now I rest.",
    ] {
        assert_eq!(kept.stdout.matches(words).count(), 1, "{words}: {kept:?}");
        assert_eq!(follower.said.matches(words).count(), 1, "{words}: {}", follower.said);
    }
    rig.end().await;
}

async fn an_agent_is_followed_from_turn_to_turn(mode: Mode) {
    let mut rig = Rig::duo().await;
    let fails = vec![text("This is too much."), exit(3)];
    let again = rule("This is attempt", vec![text("Better now."), touch(&rig, "better")]);
    mode.start(&mut rig, &[again, rule("Fail", fails), rule("", vec![text("Here I am.")])]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Letter 1.").await;
    let mut follower = Follower::of(&rig, "bob");
    follower.says("Here I am.").await;
    let failing = operator.send("bob", "Fail.").await;
    follower.says("This is too much.").await;
    follower.says("claude ended without a result").await;
    follower.says("Better now.").await;
    acked(&rig, "bob", failing).await;
    follower.interrupt();
    follower.ends().await;
    assert_eq!(follower.said.matches("This is too much.").count(), 1, "{}", follower.said);
    rig.end().await;
}
