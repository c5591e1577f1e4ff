//! A family from one agent: it asks for children, the operator approves each in `hivectl top`, they
//! work, one is stopped and started again by its parent, an older request shows what it would
//! change now, the broker dies three times, and one of them reports every night, also after a
//! weekend that was switched off.

use std::path::Path;
use std::time::{Duration, SystemTime};

use hive_proto::v1::EventKind;
use hive_tests::rig::{Client, Rig, Watch};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::steps::{acked, answer, rule, text, tool};
use crate::terminal::Terminal;
use crate::up::{Up, script};

const SIZE: (u16, u16) = (100, 40);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A hive of ada alone. `first` is when the nightly report is due first, in Unix seconds.
fn hive(first: u64) -> Rig {
    let rig = crate::up::hive();
    let config = rig.read("hive.toml");
    let (hive, _) = config.split_once("[agents.ada]\n").expect("it has ada");
    let groups = ["messaging", "inbox", "meta", "approvals", "lifecycle", "scheduling"];
    rig.configure(&format!("{hive}[agents.ada]\ntool_groups = {groups:?}\n"));
    let order = |words: &str, name: &str, input: serde_json::Value| {
        rule(words, vec![tool(name, input), text("Done.")])
    };
    let child = |name: &str| {
        let groups = ["messaging", "inbox", "meta", "scheduling"];
        json!({"name": name, "role": "reporter", "tool_groups": groups, "why": "I need it."})
    };
    let wider =
        json!({"name": "lee", "tool_groups": ["messaging", "lifecycle"], "why": "It leads."});
    let nightly = json!({
        "body": "Write the report.", "targets": ["kim"], "first_fire_at_unix": first,
        "interval_seconds": DAY.as_secs(), "zone": "UTC", "why": "Each night.",
    });
    script(
        &rig,
        &[
            order("Ask for kim.", "request_create_agent", child("kim")),
            order("Ask for lee.", "request_create_agent", child("lee")),
            order("Ask for more for lee.", "request_set_policy", wider),
            order("Stop lee.", "kill", json!({"agent": "lee"})),
            order("Start lee.", "start", json!({"agent": "lee"})),
            order("Plan the report.", "request_schedule_prompt", nightly),
            rule(
                "2 earlier due times were skipped",
                vec![answer("operator", "The report; I missed two."), text("Done.")],
            ),
            rule("Write the report.", vec![answer("operator", "The report."), text("Done.")]),
            rule("", vec![text("Done.")]),
        ],
    );
    rig
}

/// Lets ada, or another agent, ask the operator; returns the question.
async fn asks(operator: &Client, watch: &mut Watch, agent: &str, words: &str) -> u64 {
    operator.send(agent, words).await;
    watch.kind(agent, EventKind::QuestionAsked).await.question_id
}

/// Approves a question in `hivectl top`, with these lines of its changes in view.
async fn approve(rig: &Rig, question: u64, changes: &[&str]) {
    let mut top = Terminal::open(rig, SIZE, &[], &["top"]);
    top.shows(&["Waits on you: 1 question", &format!("question {question}")], &[]).await;
    top.types("a").await;
    top.shows(changes, &[]).await;
    top.types("1\r").await;
    top.shows(&[&format!("question {question} answered")], &[]).await;
    top.types("q").await;
    assert!(top.ends().await.success());
}

async fn kill_broker(rig: &Rig, up: &mut Up) {
    let status = rig.hivectl(&["--json", "status"]).await;
    let status: serde_json::Value = serde_json::from_str(&status.stdout).expect("JSON");
    let broker = status["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    kill_process(broker.expect("the broker's pid"), Signal::KILL).expect("the broker runs");
    up.says("hived ended (signal: 9 (SIGKILL)); again in").await;
    rig.watch().await.until("the next broker answers", |_| true).await;
}

/// Waits until the operator has a message with this text.
async fn reports(operator: &Client, watch: &mut Watch, body: &str) {
    loop {
        let accepted = watch.kind("operator", EventKind::MessageAccepted).await;
        let message = operator.delivery("operator", accepted.message_id).await.message;
        if message.is_some_and(|message| message.body == body) {
            return;
        }
    }
}

/// Moves the schedule into the past by this, as if so much time had passed.
fn let_pass(rig: &Rig, time: Duration) {
    let database = rusqlite::Connection::open(rig.path("state/hive.db")).expect("the database");
    let millis = i64::try_from(time.as_millis()).expect("a time");
    let sql = "UPDATE schedule SET first_time = first_time - ?1, next_time = next_time - ?1";
    assert_eq!(database.execute(sql, [millis]).expect("moved"), 1);
}

#[tokio::test]
async fn a_family_of_one_agent_works_and_reports_every_night() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    let rig = hive(now.as_secs() + 3600);
    let mut up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let operator = rig.operator().await;
    let mut watch = rig.watch_from_now().await;

    for name in ["kim", "lee"] {
        let asked = asks(&operator, &mut watch, "ada", &format!("Ask for {name}.")).await;
        approve(&rig, asked, &[&format!("+ agent: {name}"), "+ parent: ada"]).await;
        watch.kind(name, EventKind::HarnessAttached).await;
        let sent = operator.send(name, "Good morning.").await;
        acked(&rig, name, sent).await;
    }
    kill_broker(&rig, &mut up).await;
    let operator = rig.operator().await;

    operator.send("ada", "Stop lee.").await;
    up.says("lee is stopped, and its harness has ended").await;
    let waiting = operator.send("lee", "Are you there?").await;
    operator.send("ada", "Start lee.").await;
    acked(&rig, "lee", waiting).await;
    kill_broker(&rig, &mut up).await;
    let mut watch = rig.watch_from_now().await;
    let operator = rig.operator().await;

    // The operator changes what an older request is about; approving it is approving what is shown.
    let asked = asks(&operator, &mut watch, "ada", "Ask for more for lee.").await;
    let old = operator.question(asked).await.approval.expect("an approval").diff_digest;
    let groups = ["--tool-group", "messaging", "--tool-group", "inbox"];
    let set = [&["agent", "set-policy", "lee"][..], &groups].concat();
    let said = rig.hivectl(&set).await;
    assert_eq!(said.code, 0, "{said:?}");
    let id = asked.to_string();
    let said = rig.hivectl(&["answer", &id, "--choice", "approve", "--diff", &old]).await;
    assert!(said.code == 5 && said.stderr.contains("DIFF_CHANGED"), "{said:?}");
    let before = "- lee.policy.tool_groups: messaging, inbox";
    approve(&rig, asked, &[before, "+ lee.policy.tool_groups: messaging, lifecycle"]).await;

    let asked = asks(&operator, &mut watch, "kim", "Plan the report.").await;
    approve(&rig, asked, &["+ schedule.targets: kim", "+ schedule.body: Write the report."]).await;
    kill_broker(&rig, &mut up).await;
    up.interrupted_only(&rig).await;

    // The first night comes, and then a weekend.
    let_pass(&rig, Duration::from_secs(7200));
    let up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    reports(&operator, &mut watch, "The report.").await;
    up.interrupted_only(&rig).await;
    let_pass(&rig, DAY * 3);
    let up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    reports(&operator, &mut watch, "The report; I missed two.").await;
    let listed = rig.hivectl(&["schedules", "--json"]).await;
    assert!(listed.code == 0 && listed.stdout.contains("\"active\""), "{listed:?}");
    up.interrupted(rig).await;
}
