//! `hivectl top` in a real terminal: the hive is on its screen, and keys change the hive.

use hive_proto::v1::question_service_client::QuestionServiceClient;
use hive_proto::v1::{
    AskQuestionRequest, DeliveryState, EventKind, GetQuestionRequest, Question, QuestionState,
    TurnOutcome,
};
use hive_tests::rig::{
    Client, Rig,
    request::{self, texts},
};
use prost_types::Duration;
use rustix::process::Signal;

use crate::steps::{acked, ended, exit, hang, rule, text, touch};
use crate::terminal::Terminal;

const SIZE: (u16, u16) = (80, 24);
const DOWN: &str = "\x1b[B";
const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";

/// Ada asks the operator.
async fn asks(ada: &Client, words: &str, options: &[&str], seconds: Option<i64>) -> Question {
    let request = AskQuestionRequest {
        options: texts(options),
        ttl: seconds.map(|seconds| Duration { seconds, nanos: 0 }),
        ..request::ask("operator", words)
    };
    let asked = QuestionServiceClient::new(ada.channel()).ask_question(ada.request(request)).await;
    asked.expect("the question is accepted").into_inner().question.expect("a question")
}

async fn question(client: &Client, question_id: u64) -> Question {
    let request = client.request(GetQuestionRequest { question_id });
    let read = QuestionServiceClient::new(client.channel()).get_question(request).await;
    read.expect("the question is read").into_inner().question.expect("a question")
}

/// A hive whose bob cannot stand one message: it is a dead letter.
async fn with_a_dead_letter() -> (Rig, u64) {
    let mut rig = Rig::duo().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let poison = operator.send("bob", "poison").await;
    let complain =
        hive_tests::scripted::script::Step::Stderr { stderr: "I cannot stand this.".to_owned() };
    rig.start_harness(
        "bob",
        &[rule("sends it round again", vec![text("Done.")]), rule("", vec![complain, exit(3)])],
    );
    watch.kind("bob", EventKind::DeliveryDead).await;
    // Nothing moves any more but what the journey moves.
    rig.stop_harness("bob").await;
    (rig, poison)
}

/// The screen with what differs between two runs made equal: numbers, how wide they are, and the
/// units of ages.
fn masked(screen: &str) -> String {
    let mut masked = String::new();
    for c in screen.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        let repeated = matches!(c, '#' | ' ' | '─') && masked.ends_with(c);
        if !repeated {
            masked.push(c);
        }
    }
    masked.replace("#m ", "#s ")
}

#[tokio::test]
async fn mail_and_dead_letters_are_shown_whole_marked_and_redriven() {
    let (mut rig, poison) = with_a_dead_letter().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    let mail = ada.send("operator", "It is 42.\nI asked bob.\u{1b}]0;owned\u{7}").await;
    let mut top = Terminal::open(&rig, SIZE, &[], &["top"]);
    let (letter, message) = (format!("dead letter {poison}"), format!("mail {mail}"));
    top.shows(
        &["Waits on you: 1 unread", &message, "Stuck: 1 dead letter", &letter, "└ bob", "▸ Waits"],
        &[],
    )
    .await;
    assert!(top.is_alternate() && top.is_colored());

    top.types(ENTER).await;
    top.shows(
        &["▸ message", "I asked bob.\\u{1b}]0;owned\\u{7}", "m mark as read"],
        &["Waits on you"],
    )
    .await;
    top.types("m").await;
    top.shows(
        &[&format!("message {mail} marked as read"), "it is settled: this is how it was"],
        &[],
    )
    .await;
    top.types(ESCAPE).await;
    top.shows(&["Waits on you: nothing"], &[&message]).await;
    assert_eq!(operator.delivery("operator", mail).await.state(), DeliveryState::Acked);

    top.types("\t\r").await;
    top.shows(
        &["last error", "(exit code 3)", "end of the turn's output", "I cannot stand this."],
        &[],
    )
    .await;
    top.types("qd").await;
    top.shows(&[&format!("message {poison} of bob redriven"), "Stuck: nothing"], &[&letter]).await;
    rig.start_harness("bob", &[rule("", vec![text("Done.")])]);
    acked(&rig, "bob", poison).await;
    top.types("q").await;
    assert!(top.ends().await.success());
    rig.end().await;
}

#[tokio::test]
async fn questions_are_answered_and_cancelled_with_keys() {
    let rig = Rig::duo().await;
    let (operator, ada) = (rig.operator().await, rig.agent("ada").await);
    let colour = asks(&ada, "Which colour?", &["red", "green"], Some(299)).await.id;
    let mut top = Terminal::open(&rig, SIZE, &[], &["top"]);
    top.shows(
        &[
            "Waits on you: 1 question ",
            &format!("question {colour}"),
            "in 4:5",
            "Which colour? [red] [green]",
        ],
        &[],
    )
    .await;
    // New questions are shown by themselves, below those that are due sooner.
    let free = asks(&ada, "What is your name?", &[], None).await.id;
    top.shows(&["Waits on you: 2 questions", "What is your name?"], &[]).await;
    let odd = asks(&ada, "Really?", &["yes"], Some(3000)).await.id;
    top.shows(&["Waits on you: 3 questions", "Really?"], &[]).await;

    top.types("a2").await;
    top.shows(&[&format!("▸ Question {colour} from ada"), "(x) green"], &[]).await;
    top.types(ENTER).await;
    top.shows(&[&format!("question {colour} answered"), "Waits on you: 2 questions"], &[]).await;
    let answered = question(&operator, colour).await;
    assert_eq!(
        answered.answer.map(|answer| (answer.choices, answer.text)),
        Some((vec!["green".to_owned()], String::new()))
    );

    top.types(&format!("{DOWN}aSir Läncelot\r")).await;
    top.shows(&[&format!("question {free} answered"), "Waits on you: 1 question "], &[]).await;
    let answered = question(&operator, free).await;
    assert_eq!(
        answered.answer.map(|answer| (answer.choices, answer.text)),
        Some((Vec::new(), "Sir Läncelot".to_owned()))
    );

    top.types("c").await;
    top.shows(&[&format!("cancel question {odd}? its asker is told (y/n)")], &[]).await;
    top.types("y").await;
    top.shows(&[&format!("question {odd} cancelled"), "Waits on you: nothing"], &[]).await;
    assert_eq!(question(&operator, odd).await.state(), QuestionState::Cancelled);

    // An item that another program closes disappears by itself.
    let late = asks(&ada, "And now?", &[], None).await.id;
    top.shows(&["And now?"], &[]).await;
    top.types("ayes").await;
    top.shows(&["> your answer: yes"], &[]).await;
    let said = rig.hivectl(&["answer", &late.to_string(), "no"]).await;
    assert_eq!(said.code, 0, "{said:?}");
    top.shows(&["it is not open any more; Esc leaves"], &[]).await;
    top.types(ENTER).await;
    top.shows(&[&format!("question {late} not answered: ")], &[]).await;
    top.types("q").await;
    assert!(top.ends().await.success());
    rig.end().await;
}

#[tokio::test]
async fn a_turn_is_cancelled_and_its_mail_is_released_or_dropped() {
    let mut rig = Rig::duo().await;
    let (operator, mut watch) = (rig.operator().await, rig.watch().await);
    let asked = operator.send("bob", "Hang.").await;
    let reached = touch(&rig, "reached");
    rig.start_harness("bob", &[rule("", vec![reached, hang()])]);
    rig.appeared("reached").await;
    let mut top = Terminal::open(&rig, SIZE, &[], &["top"]);
    top.shows(&["▸ Agents: 2", "thinking", "1 in a turn"], &[]).await;
    top.types(&format!("{DOWN}c")).await;
    top.shows(&["cancel turn ", " of bob? its mail is held (y/n)"], &[]).await;
    top.types("y").await;
    ended(&rig, &mut watch, "bob", TurnOutcome::Cancelled).await;
    rig.stop_harness("bob").await;
    let held = format!("held {asked}");
    top.shows(&["Stuck: 1 held", &held, "offline"], &["thinking"]).await;
    // Another one, which did not see it happen, finds it too.
    let mut other = Terminal::open(&rig, SIZE, &[], &["top"]);
    other.shows(&["Stuck: 1 held", &held], &[]).await;
    other.types("q").await;
    assert!(other.ends().await.success());

    top.types("\t\tr").await;
    top.shows(&[&format!("message {asked} of bob released"), "Stuck: nothing"], &[&held]).await;
    assert_eq!(operator.delivery("bob", asked).await.state(), DeliveryState::Ready);
    top.types("\x03").await;
    assert!(top.ends().await.success());
    rig.end().await;
}

#[tokio::test]
async fn it_outlives_a_broker_and_changes_its_size() {
    let (mut rig, poison) = with_a_dead_letter().await;
    let ada = rig.agent("ada").await;
    ada.send("operator", "hello").await;
    let mut top = Terminal::open(&rig, SIZE, &[("NO_COLOR", "1")], &["top"]);
    top.shows(&["Waits on you: 1 unread", "Stuck: 1 dead letter"], &[]).await;
    insta::assert_snapshot!(masked(&top.screen()));
    assert!(!top.is_colored());

    rig.kill_broker().await;
    top.shows(&["broker not reachable, reconnecting"], &[]).await;
    top.types("\td").await;
    top.shows(
        &[&format!("message {poison} of bob not redriven: the broker is not reachable")],
        &[],
    )
    .await;
    rig.start_broker().await;
    top.shows(&["the broker is back"], &["not reachable"]).await;
    rig.agent("ada").await.send("operator", "again").await;
    top.shows(&["Waits on you: 2 unread"], &[]).await;

    top.resize((38, 9));
    top.shows(&["too small: 38x9", "needs 40x10; q quits"], &["Stuck"]).await;
    top.resize((120, 30));
    top.shows(&["Waits on you: 2 unread", "Stuck: 1 dead letter", "▸ Stuck"], &["too small"]).await;
    top.types("?").await;
    top.shows(&["redrive a dead letter: all attempts anew"], &["Stuck"]).await;
    top.types("?q").await;
    assert!(top.ends().await.success());
    rig.end().await;
}

#[tokio::test]
async fn a_signal_restores_the_terminal_too() {
    let mut rig = Rig::duo().await;
    for signal in [Signal::TERM, Signal::INT] {
        let mut top = Terminal::open(&rig, SIZE, &[], &["top"]);
        top.shows(&["Agents: 2"], &[]).await;
        top.signal(signal);
        assert_eq!(top.ends().await.code(), Some(0), "{signal:?}");
    }
    rig.stop_broker().await;
    // Without an answer nothing is taken.
    let top = Terminal::open(&rig, SIZE, &[], &["top"]);
    assert_eq!(top.ends().await.code(), Some(7));
    rig.end().await;
}

#[tokio::test]
async fn it_does_not_outlive_its_terminal() {
    let rig = Rig::duo().await;
    let mut top = Terminal::open(&rig, SIZE, &[], &["top"]);
    top.shows(&["Agents: 2"], &[]).await;
    top.hangs_up().await;
    rig.end().await;
}

#[tokio::test]
async fn without_a_terminal_it_names_the_commands_to_use() {
    let rig = Rig::duo().await;
    let said = rig.hivectl(&["top"]).await;
    assert_eq!((said.code, said.stdout.as_str()), (2, ""), "{said:?}");
    assert!(said.stderr.contains("hint: `hivectl status --json`"), "{said:?}");
    let dumb = Terminal::open(&rig, SIZE, &[("TERM", "dumb")], &["top"]);
    assert_eq!(dumb.ends().await.code(), Some(2));
    rig.end().await;
}
