//! The examples in the shell.

use hive_proto::v1::{DeliveryState, QuestionState};
use hive_tests::rig::{Harness, process_token};
use serde_json::Value;

use crate::workshop::{Language, Workshop};

pub(crate) async fn a_question_is_asked_once(file: &str) {
    let Some(workshop) = Workshop::of(Language::Shell).await else { return };
    let first = workshop.succeeds(workshop.example(file, &[])).await;
    let again = workshop.succeeds(workshop.example(file, &[])).await;
    let operator = workshop.rig.operator().await;
    let questions = operator.questions().await;
    assert_eq!(questions.len(), 1, "a repeat asks nothing");
    let question = &questions[0];
    assert_eq!((question.asker.as_str(), question.target.as_str()), ("ada", "operator"));
    assert_eq!(question.state(), QuestionState::Open);
    assert_eq!(question.options, ["yes", "tomorrow"]);
    for answer in [first, again] {
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(answer["question"]["id"], question.id.to_string(), "an id is a string");
    }
    workshop.rig.end().await;
}

pub(crate) async fn calls_prove_their_turn_and_have_reasons(file: &str) {
    let Some(workshop) = Workshop::of(Language::Shell).await else { return };
    let shell = |call: &str| workshop.command("sh", &["-euc", &format!(". ./{file}; {call}")]);
    let send = |to: &str| {
        let to = format!(r#"{{\"agent\": \"{to}\"}}"#);
        let id = r#"\"request_id\": \"$(new_id)\""#;
        format!(r#"hive MessageService/SendMessage "{{{id}, \"to\": {to}, \"body\": \"hello\"}}""#)
    };
    let refused = format!("{} 2>&1 | reason", send("bobby"));
    assert_eq!(workshop.succeeds(shell(&refused)).await, "AGENT_NOT_FOUND\n");
    let code = format!("set +e; {} 2>/dev/null; echo $?", send("bobby"));
    assert_eq!(workshop.succeeds(shell(&code)).await, "40\n");

    let ada = workshop.rig.agent("ada").await;
    let harness = Harness::attach(&ada.channel(), false).await;
    let token = process_token();
    let turn = harness.open(&token).await;
    let refused = format!("{} 2>&1 | reason", send("bob"));
    assert_eq!(workshop.succeeds(shell(&refused)).await, "HARNESS_ATTACHED\n");
    let mut command = shell(&send("bob"));
    command.env("HIVE_PROCESS_TOKEN", token);
    workshop.succeeds(command).await;
    let messages = workshop.rig.operator().await.messages().await;
    assert_eq!((messages.len(), messages[0].turn_id), (1, turn));
    drop(harness);
    workshop.rig.end().await;
}

pub(crate) async fn mail_is_settled(file: &str) {
    let Some(workshop) = Workshop::of(Language::Shell).await else { return };
    // What a body has in it is no token.
    let body = "\"leaseToken\": \"none\"";
    let mail = workshop.rig.agent("bob").await.send("ada", body).await;
    let said = workshop.succeeds(workshop.example(file, &[])).await;
    assert!(said.contains(&format!("\"id\": \"{mail}\"")), "{said}");
    let delivery = workshop.rig.operator().await.delivery("ada", mail).await;
    assert_eq!(delivery.state(), DeliveryState::Acked, "{said}");
    workshop.rig.end().await;
}
