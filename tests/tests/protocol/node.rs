//! The examples in Node, but for those of streams.

use hive_proto::v1::{DeliveryState, QuestionState};
use hive_tests::rig::{Client, Harness, process_token, request};

use crate::workshop::{Language, Workshop};

/// Asks ada a question with two options; its id.
async fn ask(client: &Client) -> u64 {
    let mut ask = request::ask("ada", "Which one?");
    ask.options = request::texts(&["the first", "the second"]);
    client.question_of(ask).await
}

pub(crate) async fn a_call_of_node_waits_for_the_broker(_imported: &str) {
    let Some(mut workshop) = Workshop::of(Language::Node).await else { return };
    let message = workshop.rig.agent("bob").await.send("ada", "hello").await;
    let command = workshop.example("answer.mjs", &[]);
    let said = workshop.reconnects(command).await;
    assert_eq!(said, format!("message {message} ORIGIN_KIND_AGENT undefined\n"));
    let operator = workshop.rig.operator().await;
    assert_eq!(operator.delivery("ada", message).await.state(), DeliveryState::Acked);
    workshop.rig.end().await;
}

pub(crate) async fn a_question_is_answered_by_its_kind(file: &str) {
    let Some(workshop) = Workshop::of(Language::Node).await else { return };
    let operator = workshop.rig.operator().await;
    let question = ask(&operator).await;
    let said = workshop.succeeds(workshop.example(file, &[])).await;
    let question = operator.question(question).await;
    assert_eq!(question.state(), QuestionState::Answered);
    let answer = question.answer.expect("an answer");
    assert_eq!(answer.choices, ["the first"]);
    let id = question.message_id;
    assert_eq!(said, format!("message {id} ORIGIN_KIND_SYSTEM SYSTEM_KIND_QUESTION_ASKED\n"));
    assert_eq!(operator.delivery("ada", id).await.state(), DeliveryState::Acked);
    workshop.rig.end().await;
}

pub(crate) async fn a_turn_is_proven_and_refusals_have_details(file: &str) {
    let Some(workshop) = Workshop::of(Language::Node).await else { return };
    let (operator, ada) = (workshop.rig.operator().await, workshop.rig.agent("ada").await);
    let question = ask(&operator).await;
    let harness = Harness::attach(&ada.channel(), false).await;
    let token = process_token();
    harness.open(&token).await;
    let said = workshop.fails(workshop.example(file, &[])).await;
    assert_eq!(
        said,
        "refused 9 {\"ErrorInfo\":{\"reason\":\"HARNESS_ATTACHED\",\"domain\":\"hive\",\"metadata\":{\"agent\":\"ada\"}}}\n"
    );
    let mut command = workshop.example(file, &[]);
    command.env("HIVE_PROCESS_TOKEN", token);
    workshop.succeeds(command).await;
    let question = operator.question(question).await;
    assert_eq!(question.state(), QuestionState::Answered);
    // The end of the turn settles it.
    let delivery = operator.delivery("ada", question.message_id).await;
    assert_eq!(delivery.state(), DeliveryState::Leased);
    drop(harness);
    workshop.rig.end().await;
}
