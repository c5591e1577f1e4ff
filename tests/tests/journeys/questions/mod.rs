//! Questions: asked in one turn, answered by another agent or the operator, and delivered in the
//! asker's next turn. There is exactly one outcome, whatever is killed.

mod deadline;
mod lost;
mod operator;
mod peers;

use hive_proto::v1::{DeliveryState, EventKind, Message, Question, SystemKind, TurnOutcome};
use hive_tests::rig::{Client, Rig};
use hive_tests::scripted::script::{Rule, Step};
use serde_json::json;

use crate::steps::{acked, lives, rule, send, text, tool};

/// The text of the question.
const QUESTION: &str = "Which colour shall it be?";
/// Two turns: the first asks, the second gets the answer.
const TWO_TURNS: [(TurnOutcome, u32); 2] = [(TurnOutcome::Ok, 1); 2];

/// Asks with two options.
fn ask(to: &str) -> Step {
    tool("ask", json!({"question": QUESTION, "options": ["red", "green"], "to": to}))
}

/// An agent that asks, and continues when it has its outcome.
fn asker(to: &str) -> Vec<Rule> {
    let goes_on = vec![send("operator", "I go on."), text("Done.")];
    vec![rule(" is answered", goes_on), rule("", vec![ask(to), text("I have asked.")])]
}

/// Returns the notices of a question to an agent, or the operator, each with its delivery's state.
async fn notices(client: &Client, agent: &str, question: u64) -> Vec<(SystemKind, DeliveryState)> {
    let deliveries = client.all_deliveries(agent).await;
    let about = |delivery: &hive_proto::v1::Delivery| {
        let message =
            delivery.message.as_ref().filter(|message| message.question_id == question)?;
        Some((message.system_kind(), delivery.state()))
    };
    deliveries.iter().filter_map(about).collect()
}

/// Returns the message that notifies a question's asker of its outcome.
async fn outcome(rig: &Rig, question: &Question) -> u64 {
    let (asker, id) = (question.asker.clone(), question.id);
    let fits = |event: &hive_proto::v1::Event| {
        event.agent == asker
            && event.kind() == EventKind::MessageAccepted
            && event.question_id == id
    };
    rig.watch().await.until(&format!("question {id} has an outcome"), fits).await.message_id
}

/// Waits until the asker has the outcome, once, in the last of these turns; returns its notices.
async fn gets_outcome(
    rig: &Rig,
    question: &Question,
    kind: SystemKind,
    turns: &[(TurnOutcome, u32)],
) -> String {
    let (operator, asker) = (rig.operator().await, question.asker.as_str());
    let message = outcome(rig, question).await;
    acked(rig, asker, message).await;
    assert_eq!(
        notices(&operator, asker, question.id).await,
        [(kind, DeliveryState::Acked)],
        "one outcome, and it is settled"
    );
    let run = operator.turns(asker).await;
    assert_eq!(
        (lives(&run), run.last().map(|turn| turn.message_id)),
        (turns.to_vec(), Some(message))
    );
    let opening = format!("Message {message} from Hive itself, question {} ", question.id);
    let prompts = rig.prompts(asker);
    let prompt = prompts.iter().rfind(|prompt| prompt.starts_with(&opening));
    let prompt =
        prompt.unwrap_or_else(|| panic!("no prompt begins with {opening:?}: {prompts:#?}"));
    assert!(prompt.contains(&format!("| The question was:\n| > {QUESTION}\n")), "{prompt}");
    prompt.clone()
}

/// Checks that the asker gets this answer, once, in the last of these turns.
async fn gets_answer(
    rig: &Rig,
    question: &Question,
    answer: &[&str],
    turns: &[(TurnOutcome, u32)],
) {
    let prompt = gets_outcome(rig, question, SystemKind::QuestionAnswered, turns).await;
    let answer: String = answer.iter().map(|line| format!("| > {line}\n")).collect();
    let words = format!(
        "is answered:\n| {} answered question {}:\n| \n{answer}| \n",
        question.target, question.id
    );
    assert!(prompt.contains(&words), "{prompt}");
}

/// Returns the messages that were sent to the operator, without those about questions.
async fn letters(operator: &Client) -> Vec<String> {
    let messages: Vec<Message> = operator.messages().await;
    let letters = messages
        .into_iter()
        .filter(|message| message.recipients == ["operator"] && message.question_id == 0);
    letters.map(|message| message.body).collect()
}
