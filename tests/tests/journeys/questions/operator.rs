//! An agent asks the operator. Broker, harness and claude are killed between the question and the
//! turn that gets the answer.

use hive_proto::v1::{DeliveryState, EventKind, Question, QuestionState, SystemKind, TurnOutcome};
use hive_tests::rig::{Client, Rig, Wire, fresh_id, soon};
use hive_tests::scripted::script::Step;
use rustix::process::Signal;
use serde_json::{Value, json};
use tonic::Code;

use super::{QUESTION, TWO_TURNS, ask, asker, gets_answer, letters, notices};
use crate::steps::{ended, rule, send, text, touch, wait_for};

/// Bob's harness runs, and he has asked the operator.
async fn bob_asks() -> (Rig, Client, Question) {
    let mut rig = Rig::duo().await;
    rig.start_harness("bob", &asker("operator"));
    let operator = rig.operator().await;
    operator.send("bob", "Decide.").await;
    let question = operator.asked("operator").await;
    (rig, operator, question)
}

/// Checks that bob continues once with the answer `red`, and ends the hive.
async fn goes_on(rig: Rig, question: &Question, lives: &[(TurnOutcome, u32)]) {
    gets_answer(&rig, question, &["red"], lives).await;
    assert_eq!(letters(&rig.operator().await).await, ["I go on."]);
    rig.end().await;
}

#[tokio::test]
async fn hivectl_answers_it_and_the_next_turn_gets_the_answer() {
    let (rig, operator, question) = bob_asks().await;
    let mut watch = rig.watch().await;
    let id = question.id.to_string();
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;

    let listed = rig.hivectl(&["--json", "questions"]).await;
    let rows: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    assert_eq!(
        (rows[0]["id"].as_u64(), rows[0]["text"].as_str(), rows.as_array().map(Vec::len)),
        (Some(question.id), Some(QUESTION), Some(1))
    );
    let refused = rig.hivectl(&["answer", &id, "--choice", "blue"]).await;
    assert!(refused.code == 2 && refused.stderr.contains("offered are: red, green"), "{refused:?}");
    let answered = rig.hivectl(&["answer", &id, "but a dark one", "--choice", "green"]).await;
    assert_eq!(answered.code, 0, "{answered:?}");
    gets_answer(&rig, &question, &["Chosen: green", "but a dark one"], &TWO_TURNS).await;

    // The question is settled on both sides, and closed for good.
    assert_eq!(
        notices(&operator, "operator", question.id).await,
        [(SystemKind::QuestionAsked, DeliveryState::Acked)]
    );
    assert_eq!(letters(&operator).await, ["I go on."]);
    assert_eq!(rig.hivectl(&["--json", "questions"]).await.stdout, "[]\n");
    let late = rig.hivectl(&["answer", &id, "red, after all"]).await;
    assert_eq!(late.code, 5, "{late:?}");
    assert!(
        late.stderr.contains("QUESTION_CLOSED") && late.stderr.contains("answered by "),
        "{late:?}"
    );
    rig.end().await;
}

#[tokio::test]
async fn the_broker_is_killed_between_question_and_answer() {
    let (mut rig, _operator, question) = bob_asks().await;
    // The turn that asked may still run.
    rig.crash_broker().await;
    let operator = rig.operator().await;
    assert_eq!(operator.asked("operator").await, question);
    operator.answer(question.id, "red").await;
    goes_on(rig, &question, &TWO_TURNS).await;
}

#[tokio::test]
async fn the_harness_is_away_when_the_answer_comes() {
    let (mut rig, _operator, question) = bob_asks().await;
    let mut watch = rig.watch().await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    rig.kill_harness("bob").await;
    // A broker without a session of that harness: the other might not have noticed yet, and deliver
    // the answer to the dead harness.
    rig.crash_broker().await;
    let operator = rig.operator().await;
    operator.answer(question.id, "red").await;
    rig.start_harness("bob", &asker("operator"));
    goes_on(rig, &question, &TWO_TURNS).await;
}

/// The harness has the answer, and the model has not received it.
#[tokio::test]
async fn the_harness_is_killed_with_the_answer() {
    let mut rig = Rig::duo().await;
    let mut rules = asker("operator");
    rules[0].steps.insert(0, wait_for(&rig, "go"));
    rig.start_harness("bob", &rules);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Decide.").await;
    let question = operator.asked("operator").await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    operator.answer(question.id, "red").await;
    watch.kind("bob", EventKind::TurnBegun).await;
    rig.kill_harness("bob").await;
    rig.start_harness("bob", &asker("operator"));
    let lives = [(TurnOutcome::Ok, 1), (TurnOutcome::Vanished, 1), (TurnOutcome::Ok, 2)];
    goes_on(rig, &question, &lives).await;
}

/// The turn that runs again has the question in its prompt, and asks it again anyway.
#[tokio::test]
async fn claude_is_killed_after_it_asked() {
    let mut rig = Rig::duo().await;
    let goes_on = rule(" is answered", vec![text("Done.")]);
    let again = rule("This is attempt 2", vec![ask("operator"), text("I have asked.")]);
    let first = rule("", vec![ask("operator"), touch(&rig, "reached"), wait_for(&rig, "never")]);
    rig.start_harness("bob", &[goes_on, again, first]);
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let sent = operator.send("bob", "Decide.").await;
    rig.appeared("reached").await;
    let question = operator.asked("operator").await;
    rig.kill_claude("bob").await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;

    let prompts = rig.prompts("bob");
    let again = format!(
        "Earlier attempts asked this already, and the outcome comes as a message:\n| question {} to operator: {QUESTION}\n",
        question.id
    );
    assert!(
        prompts[1].starts_with(&format!("Message {sent} from ")) && prompts[1].contains(&again),
        "{prompts:?}"
    );
    let results = rig.tool_results("bob");
    assert!(
        results[1].starts_with("Not asked again: ")
            && results[1].contains(&format!("question #{}, which is open", question.id)),
        "{results:?}"
    );
    assert_eq!(
        operator.questions().await,
        std::slice::from_ref(&question),
        "the operator has one question"
    );
    operator.answer(question.id, "red").await;
    let lives = [(TurnOutcome::Failed, 1), (TurnOutcome::Ok, 2), (TurnOutcome::Ok, 1)];
    gets_answer(&rig, &question, &["red"], &lives).await;
    assert_eq!(
        notices(&operator, "operator", question.id).await,
        [(SystemKind::QuestionAsked, DeliveryState::Acked)]
    );
    rig.end().await;
}

/// The model never knew whether it has asked: the call was under way.
#[tokio::test]
async fn claude_is_killed_while_it_asks() {
    let mut rig = Rig::duo().await;
    let goes_on = rule(" is answered", vec![text("Done.")]);
    let again = rule("This is attempt 2", vec![ask("operator"), text("I have asked.")]);
    let input = json!({"question": QUESTION, "options": ["red", "green"]});
    let call = Step::Call { call: "ask".to_owned(), input, touch: rig.path("called") };
    rig.start_harness(
        "bob",
        &[goes_on, again, rule("", vec![touch(&rig, "reached"), wait_for(&rig, "go"), call])],
    );
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    operator.send("bob", "Decide.").await;
    rig.appeared("reached").await;
    rig.broker().suspend().await;
    rig.touch("go");
    rig.appeared("called").await;
    rig.kill_claude("bob").await;
    rig.broker().signal(Signal::CONT);
    ended(&rig, &mut watch, "bob", TurnOutcome::Ok).await;
    let question = operator.asked("operator").await;
    assert_eq!(
        operator.questions().await,
        std::slice::from_ref(&question),
        "the operator has one question"
    );
    operator.answer(question.id, "red").await;
    let lives = [(TurnOutcome::Failed, 1), (TurnOutcome::Ok, 2), (TurnOutcome::Ok, 1)];
    gets_answer(&rig, &question, &["red"], &lives).await;
    rig.end().await;
}

/// The answer is on disk, and the operator gets no reply: the broker dies with it.
#[tokio::test]
async fn the_broker_is_killed_before_the_reply_to_the_answer_is_out() {
    let (mut rig, operator, question) = bob_asks().await;
    let wire = Wire::lay(&rig.path("wire"), &rig.operator_socket());
    let (client, request_id, id) = (rig.client_at(wire.path()).await, fresh_id(), question.id);
    wire.lose_replies(true);
    let answering = tokio::spawn({
        let request_id = request_id.clone();
        async move { client.try_answer(&request_id, id, "red").await }
    });
    let closed = operator.closed(question.id, QuestionState::Answered).await;
    rig.kill_broker().await;
    let lost = soon("the call fails", answering)
        .await
        .expect("it is not stopped")
        .expect_err("no reply came");
    assert!(
        matches!(lost.code(), Code::Unavailable | Code::Unknown | Code::Cancelled | Code::Internal),
        "{lost:?}"
    );
    rig.start_broker().await;
    let operator = rig.operator().await;
    // The first answer is repeated; as another request it is too late.
    assert_eq!(
        operator.try_answer(&request_id, id, "red").await.expect("it was answered so"),
        closed
    );
    let late = operator.try_answer(&fresh_id(), id, "red").await.expect_err("it is answered");
    assert_eq!(
        hive_proto::status::reason(&late),
        Some(hive_core::reason::Reason::QuestionClosed),
        "{late:?}"
    );
    goes_on(rig, &question, &TWO_TURNS).await;
}

/// The broker dies with the answer in its hands, read or not; said again it is one answer.
#[tokio::test]
async fn the_broker_is_killed_with_the_answer() {
    let (mut rig, mut operator, question) = bob_asks().await;
    let (request_id, id) = (fresh_id(), question.id);
    for stopped in [true, false, false] {
        if stopped {
            rig.broker().suspend().await;
        }
        let (client, again) = (operator.clone(), request_id.clone());
        let answering = tokio::spawn(async move { client.try_answer(&again, id, "red").await });
        // Lets the call start.
        tokio::task::yield_now().await;
        rig.kill_broker().await;
        let said = soon("the call ends", answering).await.expect("it is not stopped");
        assert!(!stopped || said.is_err(), "no broker could answer: {said:?}");
        rig.start_broker().await;
        operator = rig.operator().await;
    }
    let answered = operator.try_answer(&request_id, id, "red").await.expect("it is answered so");
    assert_eq!((answered.id, answered.state()), (id, QuestionState::Answered));
    goes_on(rig, &question, &TWO_TURNS).await;
}

/// The other way round: the operator asks and waits, over a restart of the broker in the agent's
/// turn.
#[tokio::test]
async fn hivectl_waits_for_an_agents_answer_over_a_kill() {
    let mut rig = Rig::duo().await;
    let answer = crate::steps::tool(
        "answer",
        json!({"id": "$question", "choices": ["green"], "answer": "a dark one"}),
    );
    let steps = vec![
        touch(&rig, "reached"),
        wait_for(&rig, "go"),
        answer,
        send("operator", "Answered."),
        text("Done."),
    ];
    rig.start_harness("bob", &[rule(" for you", steps)]);
    let kill = async |rig: &mut Rig| {
        rig.appeared("reached").await;
        rig.kill_broker().await;
        rig.touch("go");
        rig.start_broker().await;
    };
    // Another program on the same hive, because the first one is busy with the broker.
    let socket = rig.operator_socket();
    let mut command =
        hive_tests::rig::Process::command(&hive_tests::binary::find("hivectl", "hivectl"));
    command
        .arg("--socket")
        .arg(socket)
        .args(["ask", "bob", QUESTION, "--option", "red", "--option", "green", "--wait"]);
    let (said, ()) = tokio::join!(hive_tests::rig::run(command), kill(&mut rig));
    assert_eq!((said.code, said.stdout.as_str()), (0, "green\na dark one\n"), "{said:?}");
    let operator = rig.operator().await;
    let [question] = &operator.questions().await[..] else { panic!("one question") };
    assert_eq!((question.asker.as_str(), question.target.as_str()), ("operator", "bob"));
    assert_eq!((question.closed_by.as_str(), question.operator_override), ("bob", false));
    rig.watch().await.kind("bob", EventKind::TurnEnded).await;
    assert_eq!(
        notices(&operator, "bob", question.id).await,
        [(SystemKind::QuestionAsked, DeliveryState::Acked)]
    );
    rig.end().await;
}
