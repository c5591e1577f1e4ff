//! Shell tasks, with claude's own server `bash` and the harness that runs them. They outlive turns
//! and not harnesses, one mail reports their end, their records stay, and nothing else of theirs is
//! left.

use std::path::PathBuf;

use hive_proto::v1::{EventKind, HarnessState, Message, OriginKind, TurnOutcome};
use hive_tests::binary;
use hive_tests::mcp;
use hive_tests::rig::{Client, Mode, Process, Rig, gone, soon};
use hive_tests::scripted::script::Step;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::steps::{acked, handled, lives, rule, text, tool};

both!(
    two_that_end_together_wake_their_agent_once,
    a_harness_that_is_killed_loses_them_and_says_so,
    a_restart_loses_them_and_says_so,
    processes_that_a_command_leaves_end_with_it,
    without_the_group_there_is_no_shell
);

/// Runs a command without waiting for its end.
fn run(command: &str) -> Step {
    tool("run", json!({"cmd": command, "wait_seconds": 0}))
}

/// A command that prints its name, makes a file of that name, and continues after its `sleep`.
fn task(rig: &Rig, name: &str) -> Step {
    run(&format!(
        "echo {name}; touch '{}'; sleep 1000; echo {name} is over",
        rig.path(name).display()
    ))
}

fn status(id: u64) -> Step {
    tool("status", json!({"id": id}))
}

/// The processes of bob's tasks that sleep.
async fn sleepers(rig: &Rig, count: usize) -> Vec<Pid> {
    let asleep = async {
        loop {
            let pids = rig.running("bob", "sleep");
            if pids.len() == count {
                return pids;
            }
            tokio::task::yield_now().await;
        }
    };
    soon(&format!("{count} sleep"), asleep).await
}

/// Returns the messages that shell tasks sent to bob, oldest first.
async fn reports(operator: &Client) -> Vec<Message> {
    let all =
        operator.all_deliveries("bob").await.into_iter().filter_map(|delivery| delivery.message);
    let by_bash = |message: &Message| {
        message
            .origin
            .as_ref()
            .is_some_and(|origin| origin.kind() == OriginKind::External && origin.name == "bash")
    };
    all.filter(by_bash).collect()
}

/// Waits until a shell task has sent a message to bob, and he has read it.
async fn next_report(rig: &Rig, operator: &Client) -> Message {
    let heard = async {
        loop {
            if let Some(message) = reports(operator).await.into_iter().next() {
                return message;
            }
            tokio::task::yield_now().await;
        }
    };
    let message = soon("bob gets mail about a task", heard).await;
    acked(rig, "bob", message.id).await;
    message
}

async fn two_that_end_together_wake_their_agent_once(mode: Mode) {
    let mut rig = Rig::duo().await;
    let builds = vec![task(&rig, "one"), task(&rig, "two"), text("I wait for mail.")];
    let rules = [
        rule("Build", builds),
        rule("shell tasks have ended", vec![status(1), status(2)]),
        rule("", Vec::new()),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Build.").await;
    operator.does("bob", HarnessState::Idle).await;
    // The turn is over and settled, and another one too: they go on.
    handled(&rig, &operator, "bob", "Anything else?").await;
    operator.does("bob", HarnessState::Idle).await;
    for name in ["one", "two"] {
        rig.appeared(name).await;
    }
    let tasks = sleepers(&rig, 2).await;
    assert_eq!(reports(&operator).await, []);
    for pid in &tasks {
        kill_process(*pid, Signal::TERM).expect("it runs");
    }
    let message = next_report(&rig, &operator).await;
    assert!(message.body.starts_with("2 shell tasks have ended."), "{}", message.body);
    for words in
        ["Task 1: echo one", "Task 2: echo two", "exit code 0", "| one is over", "| two is over"]
    {
        assert!(message.body.contains(words), "{words}: {}", message.body);
    }
    operator.does("bob", HarnessState::Idle).await;
    assert_eq!(reports(&operator).await.len(), 1);
    let turns = operator.turns("bob").await;
    assert_eq!(lives(&turns), [(TurnOutcome::Ok, 1); 3]);
    assert_eq!(turns[2].message_id, message.id);
    // The records are also there after the report of the tasks.
    let results = rig.tool_results("bob");
    assert!(
        results[0].starts_with("Task 1 runs") && results[1].starts_with("Task 2 runs"),
        "{results:?}"
    );
    assert!(
        results[2].starts_with("Task 1: exit code 0") && results[2].contains("one\n"),
        "{results:?}"
    );
    assert!(
        results[3].starts_with("Task 2: exit code 0") && results[3].ends_with("two is over"),
        "{results:?}"
    );
    rig.end().await;
}

/// Bob has a task that runs, and no turn.
async fn with_a_task(mode: Mode) -> (Rig, Client) {
    let mut rig = Rig::duo().await;
    let rules = [
        rule("Build", vec![task(&rig, "one")]),
        rule("Look", vec![status(1)]),
        rule("", Vec::new()),
    ];
    mode.start(&mut rig, &rules);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Build.").await;
    operator.does("bob", HarnessState::Idle).await;
    rig.appeared("one").await;
    sleepers(&rig, 1).await;
    (rig, operator)
}

/// Checks that the task was lost, its agent has one notice, and its record says what is known.
async fn is_lost(rig: Rig, operator: Client) {
    let message = next_report(&rig, &operator).await;
    let words =
        ["A shell task has ended.", "Task 1: echo one", "because the harness stopped", "| one"];
    assert!(words.iter().all(|words| message.body.contains(words)), "{}", message.body);
    assert!(!message.body.contains("| one is over"), "{}", message.body);
    handled(&rig, &operator, "bob", "Look.").await;
    let last = rig.tool_results("bob").pop().unwrap_or_default();
    assert!(
        last.contains("because the harness stopped; run it again") && last.ends_with(":\none"),
        "{last}"
    );
    assert_eq!(reports(&operator).await.len(), 1);
    rig.end().await;
}

async fn a_harness_that_is_killed_loses_them_and_says_so(mode: Mode) {
    let (mut rig, operator) = with_a_task(mode).await;
    let left = sleepers(&rig, 1).await;
    rig.kill_harness("bob").await;
    let rules = [rule("Look", vec![status(1)]), rule("", Vec::new())];
    mode.start(&mut rig, &rules);
    for pid in left {
        gone(pid).await;
    }
    is_lost(rig, operator).await;
}

async fn a_restart_loses_them_and_says_so(mode: Mode) {
    let (rig, operator) = with_a_task(mode).await;
    let left = sleepers(&rig, 1).await;
    let said = rig.hivectl(&["turn", "restart", "bob", "--wait"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    for pid in left {
        gone(pid).await;
    }
    is_lost(rig, operator).await;
}

async fn processes_that_a_command_leaves_end_with_it(mode: Mode) {
    let mut rig = Rig::duo().await;
    let flees = "sleep 1000 & setsid sleep 1000 & (setsid setsid sleep 1000 &); echo done";
    let runs = vec![tool("run", json!({"cmd": flees})), text("Done.")];
    mode.start(&mut rig, &[rule("", runs)]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Run it.").await;
    let results = rig.tool_results("bob");
    assert!(
        results[0].starts_with("Task 1: exit code 0") && results[0].ends_with("were ended:\ndone"),
        "{results:?}"
    );
    assert_eq!(rig.running("bob", "sleep"), []);
    // A call waited for the task, so no mail reports it.
    operator.does("bob", HarnessState::Idle).await;
    assert_eq!(reports(&operator).await, []);
    rig.end().await;
}

fn mcp_config(rig: &Rig) -> Value {
    serde_json::from_str(&rig.read("agents/bob/home/.hive/claude-mcp-config.json")).expect("JSON")
}

/// Starts a server `bash` beside claude, with access to the harness's socket.
async fn beside(rig: &Rig) -> mcp::Client {
    let socket: PathBuf = rig.path("agents/bob/home/.hive/tasks.sock");
    let mut command = Process::command(&binary::find("hive-mcp-bridge", "hive-mcp"));
    command.env("HIVE_TASK_SOCKET", socket).arg("bash");
    let mut client = mcp::Client::spawn(&mut command).expect("it starts");
    client.handshake().await.expect("it answers");
    client
}

async fn call(client: &mut mcp::Client) -> (String, bool) {
    let pending =
        client.start_tool("run", json!({"cmd": "echo hi"}), "toolu_1").await.expect("it is asked");
    soon("it answers", pending.tool_result()).await.expect("an answer")
}

async fn without_the_group_there_is_no_shell(mode: Mode) {
    let mut rig = Rig::duo().await;
    // A call waits for its end, so no wake starts a turn.
    let runs = tool("run", json!({"cmd": "echo hi"}));
    mode.start(&mut rig, &[rule("", vec![runs, text("Done.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    handled(&rig, &operator, "bob", "Run it.").await;
    assert!(mcp_config(&rig)["mcpServers"]["bash"].is_object());
    let without = [
        "agent",
        "set-policy",
        "bob",
        "--tool-group",
        "messaging",
        "--tool-group",
        "inbox",
        "--tool-group",
        "meta",
    ];
    let said = rig.hivectl(&without).await;
    assert_eq!(said.code, 0, "{said:?}");
    watch.kind("bob", EventKind::AgentChanged).await;
    handled(&rig, &operator, "bob", "Run it again.").await;
    let config = mcp_config(&rig);
    assert!(
        config["mcpServers"]["bash"].is_null() && config["mcpServers"]["hive"].is_object(),
        "{config}"
    );
    let starts = rig.turn_starts("bob");
    let offered: Vec<bool> = starts.iter().map(|line| line.contains("mcp__bash__run")).collect();
    assert_eq!(offered, [true, false], "{starts:?}");
    let results = rig.tool_results("bob");
    assert!(results[0].starts_with("Task 1"), "{results:?}");
    assert!(results[1].contains("No such tool available"), "{results:?}");
    // Nor is it there for one who goes round claude.
    let mut client = beside(&rig).await;
    let (words, is_error) = call(&mut client).await;
    assert!(is_error && words.contains("execution"), "{words}");
    let said = rig.hivectl(&[&without[..], &["--tool-group", "execution"]].concat()).await;
    assert_eq!(said.code, 0, "{said:?}");
    handled(&rig, &operator, "bob", "And again.").await;
    let (words, is_error) = call(&mut client).await;
    assert!(!is_error && words.contains("exit code 0"), "{words}");
    client.close().await.expect("it ends");
    rig.end().await;
}
