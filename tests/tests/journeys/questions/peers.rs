//! An agent asks another; no third agent may answer.

use hive_proto::v1::{DeliveryState, EventKind, QuestionState, SystemKind, TurnOutcome};
use hive_tests::rig::{QUICK_LIMITS, Rig};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::json;

use super::{QUESTION, TWO_TURNS, asker, gets_answer, letters, notices};
use crate::steps::{ended, lives, rule, text, tool, touch, wait_for};

/// A root and two children.
const TRIO: &str = "[hive]\nname = \"test\"\n[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[agents.cid]\nparent = \"ada\"\n";

/// Answers the question that woke the turn.
fn answer() -> Step {
    tool("answer", json!({"id": "$question", "choices": ["green"], "answer": "but a dark one"}))
}

/// Answers whatever it is asked.
fn answerer() -> Vec<Rule> {
    vec![rule(" for you", vec![answer(), text("I have answered.")])]
}

#[tokio::test]
async fn the_target_answers_and_a_third_may_not() {
    let mut rig = Rig::new(&format!("{TRIO}{QUICK_LIMITS}"));
    rig.start_broker().await;
    rig.start_harness("ada", &asker("bob"));
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("ada", "Decide.").await;
    let question = operator.asked("bob").await;

    let third = tool("answer", json!({"id": question.id, "answer": "blue"}));
    rig.start_harness("cid", &[rule("", vec![third, text("I tried.")])]);
    operator.send("cid", "You know better: answer in bob's place.").await;
    ended(&rig, &mut watch, "cid", TurnOutcome::Ok).await;
    let results = rig.tool_results("cid");
    assert!(
        results.len() == 1
            && results[0].starts_with("QUESTION_NOT_FOUND: ")
            && !results[0].contains("bob"),
        "{results:?}"
    );
    assert_eq!(operator.question(question.id).await, question, "it is as open as before");

    rig.start_harness("bob", &answerer());
    gets_answer(&rig, &question, &["Chosen: green", "but a dark one"], &TWO_TURNS).await;
    let closed = operator.question(question.id).await;
    assert_eq!(
        (closed.state(), closed.closed_by.as_str(), closed.operator_override),
        (QuestionState::Answered, "bob", false)
    );
    // Bob was asked by a message of Hive that says how to answer, and it is done with his turn.
    let mut bob = rig.watch().await;
    bob.kind("bob", EventKind::TurnEnded).await;
    assert_eq!(
        notices(&operator, "bob", question.id).await,
        [(SystemKind::QuestionAsked, DeliveryState::Acked)]
    );
    let prompts = rig.prompts("bob");
    let asked = [
        format!(
            "from Hive itself, question {} for you:\n| ada asks you (question {0}):\n| \n| > {QUESTION}\n",
            question.id
        ),
        "| Options, one of them:\n| > - red\n| > - green\n".to_owned(),
        format!("(mcp__hive__answer with id {} answers it)\n", question.id),
    ];
    assert!(
        prompts.len() == 1 && asked.iter().all(|words| prompts[0].contains(words)),
        "{prompts:?}"
    );
    assert_eq!(
        rig.tool_results("bob"),
        [format!("Answered question #{}; ada is told.", question.id)]
    );
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    assert!(notices(&operator, "cid", question.id).await.is_empty());
    rig.end().await;
}

/// Bob answers while no broker runs: his tool call waits for the next one.
#[tokio::test]
async fn an_answer_waits_for_a_broker_that_was_killed() {
    let mut rig = Rig::duo().await;
    let call = json!({"id": "$question", "answer": "red"});
    let call = Step::Call { call: "answer".to_owned(), input: call, touch: rig.path("called") };
    rig.start_harness("ada", &asker("bob"));
    rig.start_harness(
        "bob",
        &[rule(
            " for you",
            vec![touch(&rig, "reached"), wait_for(&rig, "go"), call, text("Done.")],
        )],
    );
    let operator = rig.operator().await;
    operator.send("ada", "Decide.").await;
    let question = operator.asked("bob").await;
    rig.appeared("reached").await;
    rig.kill_broker().await;
    rig.touch("go");
    rig.appeared("called").await;
    rig.start_broker().await;
    gets_answer(&rig, &question, &["red"], &TWO_TURNS).await;
    let operator = rig.operator().await;
    rig.watch().await.kind("bob", EventKind::TurnEnded).await;
    assert_eq!(lives(&operator.turns("bob").await), [(TurnOutcome::Ok, 1)]);
    assert_eq!(letters(&operator).await, ["I go on."]);
    rig.end().await;
}

/// The operator answers in bob's place while he thinks: his tool call and a notice name the outcome
/// that won.
#[tokio::test]
async fn the_operator_is_faster_and_the_target_is_notified() {
    let mut rig = Rig::duo().await;
    rig.start_harness("ada", &asker("bob"));
    let steps = vec![touch(&rig, "reached"), wait_for(&rig, "go"), answer(), text("Done.")];
    rig.start_harness("bob", &[rule(" for you", steps), rule("", vec![text("I see.")])]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("ada", "Decide.").await;
    let question = operator.asked("bob").await;
    rig.appeared("reached").await;
    operator.answer(question.id, "blue, by order").await;
    rig.touch("go");
    for _ in 0..2 {
        ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    }
    let results = rig.tool_results("bob");
    assert!(
        results[0].starts_with("QUESTION_CLOSED: ") && results[0].contains("answered by "),
        "{results:?}"
    );
    let prompts = rig.prompts("bob");
    let place = format!(
        "| The operator answered question {} from ada in your place:\n| \n| > blue, by order\n",
        question.id
    );
    assert!(prompts[1].contains(&place), "{prompts:?}");
    let prompt =
        super::gets_outcome(&rig, &question, SystemKind::QuestionAnswered, &TWO_TURNS).await;
    let place = format!(
        "| The operator answered question {} in the place of bob:\n| \n| > blue, by order\n",
        question.id
    );
    assert!(prompt.contains(&place), "{prompt}");
    assert!(operator.question(question.id).await.operator_override);
    let both = [
        (SystemKind::QuestionAsked, DeliveryState::Acked),
        (SystemKind::QuestionAnswered, DeliveryState::Acked),
    ];
    assert_eq!(notices(&operator, "bob", question.id).await, both);
    rig.end().await;
}
