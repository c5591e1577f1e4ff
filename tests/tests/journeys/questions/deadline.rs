//! A deadline that passes while no broker runs: the next broker notifies both sides, once.

use hive_proto::v1::{DeliveryState, EventKind, QuestionState, SystemKind, TurnOutcome};
use hive_tests::rig::{Rig, clock};
use serde_json::json;

use super::{QUESTION, TWO_TURNS, gets_outcome, notices};
use crate::steps::{ended, rule, text, tool};

/// A time that suffices to ask and receive the question on a slow machine.
const TTL_SECONDS: u64 = 6;

/// Bob asks ada, and the broker is killed until the time is over. `aware`: ada has read the
/// question before.
async fn passes_unseen(aware: bool) {
    let mut rig = Rig::duo().await;
    let ask =
        tool("ask", json!({"question": QUESTION, "to": "<parent>", "ttl_seconds": TTL_SECONDS}));
    rig.start_harness(
        "bob",
        &[
            rule(" has expired", vec![text("Then not.")]),
            rule("", vec![ask, text("I have asked.")]),
        ],
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Decide.").await;
    let question = operator.asked("ada").await;
    if aware {
        rig.start_harness("ada", &[rule("", vec![text("I think about it.")])]);
        ended(&rig, &mut watch, "ada", TurnOutcome::Ok).await;
        rig.stop_harness("ada").await;
    }
    rig.kill_broker().await;
    let row = rig.on_disk()["question"][0].clone();
    assert!(row.contains("state=Integer(1);"), "it was open when the broker died: {row}");
    clock::shows(question.deadline_time.expect("it has a deadline")).await;
    // Twice, so that the second broker finds nothing more to notify.
    for _ in 0..2 {
        rig.start_broker().await;
        let prompt = gets_outcome(&rig, &question, SystemKind::QuestionExpired, &TWO_TURNS).await;
        let words =
            format!("has expired:\n| Question {} to ada expired without an answer.\n", question.id);
        assert!(prompt.contains(&words), "{prompt}");
        rig.stop_broker().await;
    }
    rig.start_broker().await;
    let operator = rig.operator().await;
    let asked = if aware { DeliveryState::Acked } else { DeliveryState::Superseded };
    let both =
        [(SystemKind::QuestionAsked, asked), (SystemKind::QuestionExpired, DeliveryState::Ready)];
    assert_eq!(
        notices(&operator, "ada", question.id).await,
        both,
        "its end comes in place of what ada has not read"
    );
    let closed = operator.question(question.id).await;
    assert_eq!((closed.state(), closed.closed_by.as_str()), (QuestionState::Expired, ""));
    let late = rig.hivectl(&["answer", &question.id.to_string(), "too late"]).await;
    assert!(late.code == 5 && late.stderr.contains("expired"), "{late:?}");

    rig.start_harness("ada", &[rule("", vec![text("I see.")])]);
    let mut watch = rig.watch_from_now().await;
    let settled = |event: &hive_proto::v1::Event| {
        event.agent == "ada" && event.kind() == EventKind::DeliveryAcked
    };
    watch.until("ada has the outcome", settled).await;
    let prompts = rig.prompts("ada");
    assert_eq!(prompts.len(), 1 + usize::from(aware), "{prompts:?}");
    let over =
        format!("| Question {} from bob expired; it can no longer be answered.\n", question.id);
    assert!(prompts[prompts.len() - 1].contains(&over), "{prompts:?}");
    rig.end().await;
}

cases! {
    of_a_question_that_the_target_has_read => passes_unseen(true),
    of_a_question_that_the_target_has_not_read => passes_unseen(false),
}
