//! Questions and other open items, with the real CLI: the model asks, another party answers, and
//! the next turn gets the answer. Whatever is killed in between, there is one question and one
//! outcome.

use hive_proto::v1::{
    DeliveryState, EventKind, Question, QuestionState, SystemKind, Turn, TurnOutcome,
};
use hive_tests::api::{Recorded, Reply, Script};
use hive_tests::rig::{Wire, fresh_id, gone, soon};
use rustix::process::{Signal, kill_process};
use serde_json::json;

use crate::stage::{Stage, count};

const QUESTION: &str = "Which colour shall it be?";
/// Ada and her two children.
const TRIO: &str = "[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[agents.cid]\nparent = \"ada\"\n";

fn ask(to: &str) -> Reply {
    Reply::tool(
        "mcp__hive__ask",
        json!({"question": QUESTION, "options": ["red", "green"], "to": to}),
    )
}

/// A script that asks when it is requested, and continues when it gets the answer.
fn script(to: &str) -> Script {
    let goes_on = Reply::tool("mcp__hive__send", json!({"to": "operator", "body": "I go on."}));
    Script::new()
        .when(" is answered:", [goes_on, Reply::text("Done.")])
        .when("please decide", [ask(to), Reply::text("I have asked.")])
}

/// Starts ada and returns the question that she asks at the request of the operator.
async fn asked(stage: &mut Stage) -> Question {
    stage.start();
    stage.operator.send("ada", "please decide").await;
    stage.operator.asked("operator").await
}

/// Kills the broker without warning and starts another.
async fn another_broker(stage: &mut Stage) {
    stage.rig.crash_broker().await;
    stage.operator = stage.rig.operator().await;
}

/// The next turn that ends is about the outcome, holds the question and the answer, and settles it;
/// and that was all.
async fn next_turn_gets(stage: &mut Stage, question: &Question, answer: &[&str]) -> Turn {
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Ok, 1), "{turn:?}");
    let outcome = stage.operator.delivery("ada", turn.message_id).await;
    let message = outcome.message.clone().expect("a message");
    assert_eq!(
        (message.system_kind(), message.question_id),
        (SystemKind::QuestionAnswered, question.id),
        "{message:?}"
    );
    assert_eq!(outcome.state(), DeliveryState::Acked);

    let prompt = stage.requests_of(message.id).remove(0).prompt;
    let answer: String = answer.iter().map(|line| format!("| > {line}\n")).collect();
    let (id, target) = (question.id, &question.target);
    let words = format!(
        "Message {} from Hive itself, question {id} is answered:\n| {target} answered question {id}:\n| \n{answer}| \n\
         | The question was:\n| > {QUESTION}\n",
        message.id
    );
    assert_eq!(prompt, words);
    let told = stage
        .operator
        .all_deliveries("ada")
        .await
        .into_iter()
        .filter_map(|delivery| delivery.message);
    assert_eq!(told.filter(|message| message.question_id == id).count(), 1, "one outcome");
    let questions = stage.operator.questions().await;
    assert_eq!(
        questions.iter().map(|question| (question.id, question.state())).collect::<Vec<_>>(),
        [(id, QuestionState::Answered)]
    );
    turn
}

/// Counts the notices to go on that the operator got.
async fn goings_on(stage: &Stage) -> usize {
    stage.operator.messages().await.iter().filter(|message| message.body == "I go on.").count()
}

#[tokio::test]
async fn the_operator_answers_and_the_next_turn_gets_it() {
    let mut stage = Stage::set(script("operator")).await;
    let question = asked(&mut stage).await;
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), question.turn_id), (TurnOutcome::Ok, turn.id));
    let result =
        stage.api.recorded().iter().flat_map(Recorded::tool_results).next().expect("a result");
    assert!(
        !result.2 && result.1.starts_with(&format!("Asked operator: question #{}.", question.id)),
        "{result:?}"
    );

    let listed = stage.rig.hivectl(&["questions"]).await;
    assert!(listed.stdout.contains(QUESTION) && listed.stdout.contains("ada"), "{listed:?}");
    let id = question.id.to_string();
    let answered = stage.rig.hivectl(&["answer", &id, "but a dark one", "--choice", "green"]).await;
    assert_eq!(answered.code, 0, "{answered:?}");
    next_turn_gets(&mut stage, &question, &["Chosen: green", "but a dark one"]).await;
    // An answered question is not in the operator's inbox any more.
    let asked = stage.operator.delivery("operator", question.message_id).await;
    assert_eq!(asked.state(), DeliveryState::Acked);
    assert_eq!(goings_on(&stage).await, 1);
    stage.end().await;
}

#[tokio::test]
async fn broker_and_harness_are_killed_between_question_answer_and_turn() {
    let mut stage = Stage::set(script("operator")).await;
    let question = asked(&mut stage).await;
    // The turn that asked still runs: it continues with the next broker.
    another_broker(&mut stage).await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok);
    assert_eq!(stage.operator.asked("operator").await, question);
    stage.rig.kill_harness("ada").await;
    // A broker without a session of that harness: the other might not have noticed yet, and deliver
    // the answer to the dead harness.
    another_broker(&mut stage).await;
    stage.operator.answer(question.id, "red").await;
    another_broker(&mut stage).await;
    stage.start();
    next_turn_gets(&mut stage, &question, &["red"]).await;
    assert_eq!(goings_on(&stage).await, 1);
    stage.end().await;
}

/// The harness has the answer: the turn that was to show it is cut off, and the next one shows
/// it.
#[tokio::test]
async fn a_harness_that_is_killed_with_the_answer_gets_it_again() {
    let mut stage = Stage::set(script("operator")).await;
    let question = asked(&mut stage).await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok);
    stage.operator.answer(question.id, "red").await;
    stage.watch.kind("ada", EventKind::TurnBegun).await;
    stage.rig.kill_harness("ada").await;
    stage.start();
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Vanished);
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Ok, 2), "{turn:?}");
    let request = stage.requests_of(turn.message_id).pop().expect("a request");
    assert!(
        request.prompt.contains("This is attempt 2: the last turn was cut off."),
        "{}",
        request.prompt
    );
    // In this prompt, or in the one of the turn that was cut off, if claude had come so far.
    let answer = format!(
        "answered question {}:\n| \n| > red\n| \n| The question was:\n| > {QUESTION}\n",
        question.id
    );
    assert_eq!(count(&request, &answer), 1, "{:#}", request.body["messages"]);
    assert_eq!(stage.operator.delivery("ada", turn.message_id).await.state(), DeliveryState::Acked);
    assert_eq!(goings_on(&stage).await, 1);
    stage.end().await;
}

#[tokio::test]
async fn a_claude_that_is_killed_after_its_question_gets_it_in_its_prompt() {
    let script = Script::new()
        .when("This is attempt 2", [ask("operator"), Reply::text("I have asked.")])
        .when("please decide", [ask("operator"), Reply::hang()]);
    let mut stage = Stage::set(script).await;
    let question = asked(&mut stage).await;
    // Its receipt may be with the model, or with the bridge yet.
    let claude = stage.rig.the_one("ada", "claude");
    kill_process(claude, Signal::KILL).expect("it runs");
    gone(claude).await;
    let failed = stage.turn().await;
    assert_eq!(failed.outcome(), TurnOutcome::Failed, "{failed:?}");
    let again = stage.turn().await;
    assert_eq!((again.outcome(), again.attempt), (TurnOutcome::Ok, 2), "{again:?}");

    let last = stage.requests_of(again.message_id).pop().expect("a request");
    let told = format!(
        "Earlier attempts asked this already, and the outcome comes as a message:\n| question {} to operator: {QUESTION}\n",
        question.id
    );
    assert!(last.prompt.contains(&told), "{}", last.prompt);
    let results = last.tool_results();
    let (_, result, is_error) = results.last().expect("a result");
    let not_again = format!("already asked this as question #{}, which is open", question.id);
    assert!(
        !is_error && result.starts_with("Not asked again: ") && result.contains(&not_again),
        "{results:?}"
    );
    assert_eq!(
        stage.operator.questions().await,
        std::slice::from_ref(&question),
        "the operator has one question"
    );
    stage.operator.answer(question.id, "red").await;
    next_turn_gets(&mut stage, &question, &["red"]).await;
    stage.end().await;
}

#[tokio::test]
async fn an_answer_whose_reply_dies_with_the_broker_is_one_answer() {
    let mut stage = Stage::set(script("operator")).await;
    let question = asked(&mut stage).await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok);
    let wire = Wire::lay(&stage.rig.path("wire"), &stage.rig.operator_socket());
    let (client, request_id, id) =
        (stage.rig.client_at(wire.path()).await, fresh_id(), question.id);
    wire.lose_replies(true);
    let again = request_id.clone();
    let answering = tokio::spawn(async move { client.try_answer(&again, id, "red").await });
    let closed = stage.operator.closed(id, QuestionState::Answered).await;
    another_broker(&mut stage).await;
    soon("the call fails", answering).await.expect("it is not stopped").expect_err("no reply came");
    assert_eq!(
        stage.operator.try_answer(&request_id, id, "red").await.expect("it was answered so"),
        closed
    );
    next_turn_gets(&mut stage, &question, &["red"]).await;
    assert_eq!(goings_on(&stage).await, 1);
    stage.end().await;
}

#[tokio::test]
async fn an_agent_asks_another_and_a_third_may_not_answer() {
    let mut stage = Stage::of(TRIO, script("bob")).await;
    stage.start();
    stage.operator.send("ada", "please decide").await;
    let question = stage.operator.asked("bob").await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok);

    let third = Reply::tool("mcp__hive__answer", json!({"id": question.id, "answer": "blue"}));
    let target = Reply::tool(
        "mcp__hive__answer",
        json!({"id": "$question", "choices": ["green"], "answer": "but a dark one"}),
    );
    let script = script("bob")
        .when("you know better", [third, Reply::text("I tried.")])
        .when(" for you:", [target, Reply::text("I have answered.")]);
    stage.api.set_script(script);
    stage.start_agent("cid");
    let meddling = stage.operator.send("cid", "you know better").await;
    assert_eq!(stage.first_turn_of("cid").await.outcome(), TurnOutcome::Ok);
    let results = stage.requests_of(meddling).pop().expect("a request").tool_results();
    assert!(
        results.len() == 1 && results[0].1.starts_with("QUESTION_NOT_FOUND: ") && results[0].2,
        "{results:?}"
    );
    assert_eq!(stage.operator.question(question.id).await, question, "it is as open as before");

    stage.start_agent("bob");
    let turn = stage.first_turn_of("bob").await;
    assert_eq!((turn.outcome(), turn.message_id), (TurnOutcome::Ok, question.message_id));
    let request = stage.requests_of(question.message_id).pop().expect("a request");
    assert!(
        request
            .prompt
            .contains(&format!("(mcp__hive__answer with id {} answers it)\n", question.id)),
        "{}",
        request.prompt
    );
    assert_eq!(
        request.tool_results()[0].1,
        format!("Answered question #{}; ada is told.", question.id)
    );
    next_turn_gets(&mut stage, &question, &["Chosen: green", "but a dark one"]).await;
    assert_eq!(stage.operator.question(question.id).await.closed_by, "bob");
    stage.end().await;
}

#[tokio::test]
async fn a_long_reminder_outlives_the_broker_and_can_be_read() {
    let body = format!("The plan: {} and then the roof.", "stone upon stone, ".repeat(400));
    let remind = Reply::tool("mcp__hive__remind", json!({"message": body, "delay_seconds": 2}));
    let mut stage =
        Stage::of("[agents.ada]\nstate_dir = \"agents/ada/state\"\n", Script::new()).await;
    let file = stage.rig.path("agents/ada/state/reminders/$reminder.md");
    let script = Script::new()
        .when(
            ", your reminder ",
            [Reply::tool("Read", json!({"file_path": file})), Reply::text("I know the plan.")],
        )
        .when("the plan", [remind, Reply::text("I shall.")]);
    stage.api.set_script(script);
    stage.start();
    stage.operator.send("ada", "remember the plan").await;
    let reminder = stage.watch.kind("ada", EventKind::ReminderSet).await.reminder_id;
    another_broker(&mut stage).await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok);
    let turn = stage.turn().await;
    assert_eq!(turn.outcome(), TurnOutcome::Ok, "{turn:?}");
    let request = stage.requests_of(turn.message_id).pop().expect("a request");
    let told = format!(
        "lies in your state directory as `reminders/{reminder}.md`. It begins:\n| \n| The plan: stone upon stone, "
    );
    assert!(
        request.prompt.contains(&told) && !request.prompt.contains("and then the roof."),
        "{}",
        request.prompt
    );
    let results = request.tool_results();
    let (_, read, is_error) = results.last().expect("a result");
    assert!(!is_error && read.contains(&body), "{results:?}");
    let fired = stage
        .operator
        .all_deliveries("ada")
        .await
        .into_iter()
        .filter_map(|delivery| delivery.message);
    assert_eq!(fired.filter(|message| message.reminder_id == reminder).count(), 1);
    stage.end().await;
}

#[tokio::test]
async fn open_items_are_listed_for_the_agent_and_its_parent() {
    let bob = [
        Reply::tool("mcp__hive__set_status", json!({"text": "waits for the build"})),
        ask("operator"),
        Reply::tool("mcp__hive__get_loose_ends", json!({})),
        Reply::text("Done."),
    ];
    let ada = [
        Reply::tool("mcp__hive__get_loose_ends", json!({"agent": "bob"})),
        Reply::tool("mcp__hive__get_agent_meta", json!({"name": "bob"})),
        Reply::text("Done."),
    ];
    let mut stage = Stage::set(Script::new().when("bob, open", bob).when("ada, look", ada)).await;
    stage.rig.agent("bob").await.publish("ci", &[("build-7", "the build is red")]).await;
    let opened = stage.operator.send("bob", "bob, open something").await;
    stage.start_agent("bob");
    assert_eq!(stage.first_turn_of("bob").await.outcome(), TurnOutcome::Ok);
    another_broker(&mut stage).await;
    let looked = stage.operator.send("ada", "ada, look").await;
    stage.start();
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok);

    let question = stage.operator.questions().await.remove(0);
    let own = stage.requests_of(opened).pop().expect("a request").tool_results();
    let seen = stage.requests_of(looked).pop().expect("a request").tool_results();
    for list in [&own[2], &seen[0]] {
        let asked = format!("#{} to operator, since ", question.id);
        let told = list.1.contains(&asked)
            && list.1.contains(QUESTION)
            && list.1.contains(" from ci, build-7, since ");
        assert!(!list.2 && told && list.1.contains(": the build is red"), "{list:?}");
    }
    assert!(seen[0].1.starts_with("Loose ends of bob\n"), "{seen:?}");
    assert!(seen[1].1.contains("\nstatus: waits for the build (set "), "{seen:?}");
    stage.end().await;
}
