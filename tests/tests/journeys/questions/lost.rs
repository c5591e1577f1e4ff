//! The broker dies in the middle of the call that asks: the bridge makes the same request of the
//! next one, and it is one question.

use std::collections::BTreeMap;

use hive_tests::rig::{HarnessOptions, Rig, Wire};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::json;

use super::{QUESTION, TWO_TURNS, gets_answer};
use crate::steps::{rule, text, touch, wait_for};

/// Asks when there is a file `go`. Before, the bridge makes another call, so that it is connected.
fn rules(rig: &Rig) -> Vec<Rule> {
    let call = |tool: &str, input, path| Step::Call {
        call: tool.to_owned(),
        input,
        touch: rig.path(path),
    };
    let steps = vec![
        call("get_loose_ends", json!({}), "connected"),
        touch(rig, "reached"),
        wait_for(rig, "go"),
        call("ask", json!({"question": QUESTION}), "called"),
        text("I have asked."),
    ];
    vec![rule(" is answered", vec![text("Done.")]), rule("", steps)]
}

/// Checks that one question exists, the model knows its id, and its answer arrives.
async fn comes_out(rig: Rig) {
    let operator = rig.operator().await;
    let question = operator.asked("operator").await;
    operator.answer(question.id, "red").await;
    gets_answer(&rig, &question, &["red"], &TWO_TURNS).await;
    assert_eq!(operator.questions().await.len(), 1);
    let results = rig.tool_results("bob");
    let receipt = format!("Asked operator: question #{}.", question.id);
    assert!(results.len() == 2 && results[1].starts_with(&receipt), "{results:?}");
    rig.end().await;
}

#[tokio::test]
async fn the_broker_dies_with_the_question() {
    let mut rig = Rig::duo().await;
    let rules = rules(&rig);
    rig.start_harness("bob", &rules);
    rig.operator().await.send("bob", "Decide.").await;
    rig.appeared("reached").await;
    rig.broker().suspend().await;
    rig.touch("go");
    rig.appeared("called").await;
    rig.crash_broker().await;
    comes_out(rig).await;
}

#[tokio::test]
async fn the_broker_dies_with_the_reply() {
    let mut rig = Rig::duo().await;
    let wire = Wire::lay(&rig.path("wire"), &rig.agent_socket("bob"));
    let env = BTreeMap::from([("HIVE_SOCKET".to_owned(), wire.path().display().to_string())]);
    let rules = rules(&rig);
    rig.start_harness_with("bob", &HarnessOptions { rules, env, ..HarnessOptions::default() });
    let operator = rig.operator().await;
    operator.send("bob", "Decide.").await;
    rig.appeared("reached").await;
    wire.lose_replies(true);
    rig.touch("go");
    // The question is on disk, and the bridge does not know.
    let question = operator.asked("operator").await;
    assert_eq!(rig.tool_results("bob").len(), 1);
    rig.kill_broker().await;
    wire.lose_replies(false);
    rig.start_broker().await;
    assert_eq!(rig.operator().await.asked("operator").await, question);
    comes_out(rig).await;
}
