//! Information that agents publish: a status that outlives the broker, loose ends for oneself and
//! for one's children, and what a co-process publishes.

use hive_proto::v1::{LooseEnd, LooseEndKind, TurnOutcome};
use hive_tests::rig::{Rig, clock};
use hive_tests::scripted::script::Step;
use serde_json::json;

use crate::steps::{ended, handled, rule, text, tool};

const STATUS: &str = "waits for the build";

fn get_loose_ends(of: &str) -> Step {
    tool("get_loose_ends", if of.is_empty() { json!({}) } else { json!({"agent": of}) })
}

#[tokio::test]
async fn a_status_outlives_the_broker_and_peers_see_it() {
    let mut rig = Rig::duo().await;
    rig.start_harness(
        "bob",
        &[rule("", vec![tool("set_status", json!({"text": STATUS})), text("Done.")])],
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Say what you do.").await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    let set = operator.get_agent("bob").await;
    assert_eq!(set.status_text, STATUS);
    rig.crash_broker().await;
    rig.start_harness(
        "ada",
        &[rule("", vec![tool("get_agent_meta", json!({"name": "bob"})), text("Done.")])],
    );
    let operator = rig.operator().await;
    handled(&rig, &operator, "ada", "What does bob do?").await;
    let time = prost_types::Timestamp { nanos: 0, ..set.status_time.expect("it has a time") };
    let results = rig.tool_results("ada");
    let line = format!("status: {STATUS} (set {time})");
    assert!(results.len() == 1 && results[0].lines().any(|found| found == line), "{results:?}");
    assert!(results[0].lines().any(|line| line == "parent: ada"), "{results:?}");
    let shown = operator.get_agent("bob").await;
    assert_eq!((shown.status_text, shown.status_time), (set.status_text, set.status_time));
    rig.end().await;
}

#[tokio::test]
async fn a_parent_sees_its_childs_open_items_and_not_the_reverse() {
    let mut rig = Rig::duo().await;
    let bob = [
        tool("ask", json!({"question": "May I?"})),
        tool("remind", json!({"message": "Ask again.", "delay_seconds": 3600})),
        get_loose_ends("ada"),
        get_loose_ends(""),
        text("Done."),
    ];
    rig.start_harness("bob", &[rule("", bob.to_vec())]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Have something open.").await;
    rig.start_harness("ada", &[rule("", vec![get_loose_ends("bob"), text("Done.")])]);
    handled(&rig, &operator, "ada", "What has bob open?").await;

    let question = operator.questions().await.remove(0);
    let reminder = operator.reminders("bob").await.remove(0);
    let whole = |time: Option<prost_types::Timestamp>| prost_types::Timestamp {
        nanos: 0,
        ..time.expect("it has a time")
    };
    let list = format!(
        "Questions asked (kind question):\n#{} to operator, since {}: May I?\nReminders (kind reminder):\n#{}, due {}: Ask again.",
        question.id,
        whole(question.create_time),
        reminder.id,
        whole(reminder.due_time),
    );
    assert_eq!(rig.tool_results("ada"), [format!("Loose ends of bob\n{list}")]);
    let results = rig.tool_results("bob");
    assert!(results[2].starts_with("NOT_YOUR_CHILD: "), "{results:?}");
    assert!(results[3].starts_with(&list), "{results:?}");
    let kinds: Vec<LooseEndKind> =
        operator.loose_ends("bob").await.iter().map(LooseEnd::kind).collect();
    assert_eq!(kinds, [LooseEndKind::QuestionAsked, LooseEndKind::Reminder]);
    rig.end().await;
}

/// A co-process publishes on bob's own socket, outside his turns; its last set counts,
/// also after a kill.
#[tokio::test]
async fn a_co_processs_publications_are_shown_to_claude() {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &[rule("", vec![get_loose_ends(""), text("Done.")])]);
    let mut results = Vec::new();
    let sets: [&[(&str, &str)]; 3] = [
        &[("build-7", "the build is red"), ("build-8", "the build is slow")],
        &[("build-8", "the build is slow still"), ("build-9", "not built")],
        &[],
    ];
    for set in sets {
        rig.agent("bob").await.publish("ci", set).await;
        rig.crash_broker().await;
        let operator = rig.operator().await;
        handled(&rig, &operator, "bob", "What is open?").await;
        let keys: Vec<String> =
            operator.loose_ends("bob").await.into_iter().map(|loose_end| loose_end.key).collect();
        assert_eq!(keys, set.iter().map(|(key, _)| *key).collect::<Vec<_>>());
        let published: Vec<(u64, String)> = operator
            .loose_ends("bob")
            .await
            .into_iter()
            .map(|loose_end| {
                assert_eq!(
                    (loose_end.kind(), loose_end.peer.as_str()),
                    (LooseEndKind::External, "ci")
                );
                let since = prost_types::Timestamp {
                    nanos: 0,
                    ..loose_end.create_time.expect("it has a time")
                };
                (
                    loose_end.id,
                    format!(
                        "#{} from ci, {}, since {since}: {}",
                        loose_end.id, loose_end.key, loose_end.text
                    ),
                )
            })
            .collect();
        results.push(published);
    }
    let seen = rig.tool_results("bob");
    assert_eq!(seen.len(), 3, "{seen:?}");
    for (seen, published) in seen.iter().zip(&results).take(2) {
        let heading = "Told by programs beside the agent, which close them:\n";
        let lines: Vec<&str> = published.iter().map(|(_, line)| line.as_str()).collect();
        assert!(seen.starts_with(&format!("{heading}{}\n", lines.join("\n"))), "{seen}");
    }
    assert_eq!(seen[2], "No loose ends.");
    assert_eq!(results[0][1].0, results[1][0].0, "an entry that stays keeps its number");
    rig.end().await;
}

/// The end of loose ends: claude withdraws its own, and neither the question nor the reminder
/// returns.
#[tokio::test]
async fn claude_withdraws_items_it_no_longer_needs() {
    let mut rig = Rig::duo().await;
    let opens = [
        tool("ask", json!({"question": "May I?", "to": "ada"})),
        tool("remind", json!({"message": "Ask again.", "delay_seconds": 5})),
        text("Done."),
    ];
    rig.start_harness("bob", &[rule("", opens.to_vec())]);
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "Have something open.").await;
    let (question, reminder) =
        (operator.questions().await.remove(0), operator.reminders("bob").await.remove(0));
    let withdraws = [
        tool("cancel_loose_end", json!({"kind": "question", "id": question.id})),
        tool("cancel_loose_end", json!({"kind": "reminder", "id": reminder.id})),
        get_loose_ends(""),
        text("Done."),
    ];
    rig.rewrite_script("bob", &[rule("", withdraws.to_vec())]);
    handled(&rig, &operator, "bob", "Let it be.").await;
    assert_eq!(
        rig.tool_results("bob").last().map(String::as_str),
        Some("No loose ends."),
        "{:?}",
        rig.tool_results("bob")
    );
    clock::shows(reminder.due_time.expect("it has a time")).await;
    rig.crash_broker().await;
    let operator = rig.operator().await;
    handled(&rig, &operator, "bob", "And now?").await;
    let told: Vec<(u64, u64)> = operator
        .all_deliveries("bob")
        .await
        .into_iter()
        .filter_map(|delivery| delivery.message)
        .map(|message| (message.question_id, message.reminder_id))
        .collect();
    assert_eq!(told, [(0, 0); 3], "nothing came of either");
    rig.end().await;
}
