//! Approvals, from the tool of a claude to the harness of the new child: asked through the bridge,
//! decided with `hivectl`, carried out by the broker, started by `hivectl up`.

use std::path::Path;

use hive_proto::v1::EventKind;
use hive_tests::rig::{Client, Rig};
use serde_json::json;

use crate::steps::{acked, rule, text, tool};
use crate::up::{Up, script};

/// A hive in which `ada` may ask for changes.
fn hive() -> Rig {
    let rig = crate::up::hive();
    let groups = "tool_groups = [\"messaging\", \"inbox\", \"meta\", \"approvals\"]\n";
    let config = rig.read("hive.toml");
    rig.configure(&config.replace("[agents.ada]\n", &format!("[agents.ada]\n{groups}")));
    let order = |words: &str, name: &str, input: serde_json::Value| {
        rule(words, vec![tool(name, input), text("Done.")])
    };
    let rules = [
        order(
            "Ask for kim.",
            "request_create_agent",
            json!({"name": "kim", "role": "tester", "why": "I need a tester."}),
        ),
        order(
            "Ask for the end of kim.",
            "request_retire_agent",
            json!({"name": "kim", "why": "It is done."}),
        ),
        rule("", vec![text("Done.")]),
    ];
    script(&rig, &rules);
    rig
}

/// Approves a question as a script does it: with the digest of what was shown.
async fn approve(rig: &Rig, operator: &Client, id: u64) {
    let approval = operator.question(id).await.approval.expect("an approval");
    let id = id.to_string();
    let args = ["answer", &id, "--choice", "approve", "--diff", &approval.diff_digest];
    let said = rig.hivectl(&args).await;
    assert_eq!(said.code, 0, "{said:?}");
}

#[tokio::test]
async fn a_child_is_asked_for_approved_works_and_is_retired() {
    let rig = hive();
    let up = Up::start(&rig, Path::new("/usr/bin:/bin")).await;
    let operator = rig.operator().await;
    let mut watch = rig.watch_from_now().await;

    operator.send("ada", "Ask for kim.").await;
    let asked = watch.kind("ada", EventKind::QuestionAsked).await.question_id;
    let shown = rig.hivectl(&["questions", "show", &asked.to_string()]).await;
    let diff = shown.stdout.find("+ agent: kim").expect("the diff");
    let words = shown.stdout.find("> I need a tester.").expect("the words of ada, quoted");
    assert!(diff < words, "{}", shown.stdout);
    let blind = rig.hivectl(&["answer", &asked.to_string(), "--choice", "approve"]).await;
    assert_eq!(blind.code, 2, "nothing is approved unseen: {blind:?}");

    approve(&rig, &operator, asked).await;
    watch.kind("kim", EventKind::HarnessAttached).await;
    let sent = operator.send("kim", "Good morning.").await;
    acked(&rig, "kim", sent).await;

    operator.send("ada", "Ask for the end of kim.").await;
    let asked = watch.kind("ada", EventKind::QuestionAsked).await.question_id;
    approve(&rig, &operator, asked).await;
    watch.kind("kim", EventKind::AgentRetired).await;
    let listed = rig.hivectl(&["agents", "--json"]).await;
    assert!(listed.code == 0 && !listed.stdout.contains("\"kim\""), "{listed:?}");
    up.interrupted(rig).await;
}
