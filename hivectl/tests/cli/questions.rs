//! Asking, waiting and answering, with and without a terminal.

use std::time::Duration;

use hive_proto::v1::{AnswerQuestionRequest, AskQuestionRequest, QuestionState};
use hive_tests::rig::request;
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::follow::Following;
use super::hive::Hive;
use super::run::{Ran, assert_contains, assert_starts, ended, run_with, signal};
use super::terminal::Terminal;

/// Runs `hivectl answer` on a terminal on which this is typed.
async fn answer(hive: &Hive, id: &str, types: &str) -> Ran {
    let terminal = Terminal::open();
    terminal.types(types);
    let mut command = hive.hivectl(&["answer", id]);
    ended(command.stdin(terminal.side()).spawn().expect("the binary runs")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_is_all_that_is_printed_of_a_question_that_was_asked() {
    let hive = Hive::start().await;
    let ran = hive.run(&["ask", "ada", "Done?"]).await;
    let asked = hive.operator().await.questions().await.pop().expect("it is asked");
    assert_eq!(asked.text, "Done?");
    assert_eq!((ran.code, ran.out, ran.err.as_str()), (0, format!("{}\n", asked.id), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_may_come_from_stdin_and_its_answer_goes_to_stdout() {
    let hive = Hive::start().await;
    let socket = hive.socket();
    let args = ["ask", "ada", "-", "--wait", "--option", "yes"];
    let asking = run_with(&socket, &args, b"Done?\nReally?\n");
    let answering = async {
        let question = hive.awaited().await;
        hive.answers(question).await;
        question
    };
    let (ran, question) = tokio::join!(asking, answering);
    assert_eq!((ran.code, ran.out.as_str()), (0, "yes\nin an hour\nor two\n"));
    assert_eq!(ran.err, format!("question {question} is asked; waiting for ada\n"));
    let asked: Vec<AskQuestionRequest> = hive.requests("AskQuestion");
    let [AskQuestionRequest { text, options, multi: false, ttl: None, .. }] = &asked[..] else {
        panic!("{asked:?}")
    };
    assert_eq!((text.as_str(), &options[..]), ("Done?\nReally?", &["yes".to_owned()][..]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wait_for_an_answer_survives_a_restart_of_the_broker() {
    let mut hive = Hive::start().await;
    let mut child = hive.spawn(&["ask", "ada", "Done?", "--wait"]);
    let mut err = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    let question = hive.awaited().await;
    assert_eq!(
        err.next_line().await.expect("text"),
        Some(format!("question {question} is asked; waiting for ada"))
    );
    hive.restart().await;
    assert_eq!(
        err.next_line().await.expect("text").as_deref(),
        Some("the broker is gone; waiting for it to come back")
    );
    assert_eq!(hive.awaited().await, question);
    hive.operator().await.answer(question, "at last").await;
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "at last\n"));
    assert_eq!(hive.changes().len(), 1, "it is asked once");
}

/// An interrupt is no answer, so a script must not go on as if it were one.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_wait_and_leaves_the_question_open() {
    let hive = Hive::new("[agents.ada]");
    let child = hive.spawn(&["ask", "ada", "Done?", "--wait"]);
    let question = hive.awaited().await;
    signal(&child, Signal::INT);
    let ran = ended(child).await;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    insta::assert_snapshot!(ran.err);
    assert_eq!(hive.changes().len(), 1);
    assert_eq!(hive.operator().await.question(question).await.state(), QuestionState::Open);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_followed_to_their_outcome_over_an_absence_of_the_broker() {
    let mut hive = Hive::start().await;
    let mut questions = Following::start(&hive, &["questions", "--follow"]);
    let mut output = Vec::new();
    // Three questions: of five, four and five lines.
    for _ in 0..14 {
        output.push(questions.line().await);
    }
    hive.awaited().await;
    // At the first reconnection, the broker is not ready.
    hive.breaks();
    hive.restart().await;
    hive.awaited().await;
    hive.operator().await.answer(37, "yes").await;
    output.push(questions.line().await);
    let ask = AskQuestionRequest {
        ttl: Some(prost_types::Duration { seconds: 60, nanos: 0 }),
        ..request::ask("operator", "Now?")
    };
    hive.claude().await.question_of(ask).await;
    output.extend([questions.line().await, questions.line().await]);
    hive.advance(Duration::from_secs(61));
    output.push(questions.line().await);
    insta::assert_snapshot!(hive.masked(&output.join("\n")));
    assert_eq!(questions.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_counts_down() {
    let hive = Hive::since(jiff::Timestamp::now().as_second(), "[agents.clock]");
    let quick = AskQuestionRequest {
        ttl: Some(prost_types::Duration { seconds: 12 * 60 + 30, nanos: 0 }),
        ..request::ask("operator", "Quick?")
    };
    hive.client("clock").await.question_of(quick).await;
    let ran = hive.run(&["questions", "--asker", "clock"]).await;
    assert_contains(&ran.out, "  open   in 12 min  Quick?\n");
}

/// Returns the answers that were sent: question, choices and text.
fn answers(hive: &Hive) -> Vec<(u64, Vec<String>, String)> {
    let given = hive.requests::<AnswerQuestionRequest>("AnswerQuestion").into_iter();
    given.map(|answer| (answer.question_id, answer.choices, answer.text)).collect()
}

fn given(id: u64, choices: &[&str], text: &str) -> (u64, Vec<String>, String) {
    (id, request::texts(choices), text.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_come_from_stdin() {
    let hive = Hive::start().await;
    let ran = run_with(&hive.socket(), &["answer", "37", "-"], b"not\nyet\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(answers(&hive), [given(37, &[], "not\nyet")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_terminal_is_prompted_for_the_answer() {
    let hive = Hive::start().await;
    let ran = answer(&hive, "37", "2\n").await;
    insta::assert_snapshot!(hive.output(&ran));
    assert_eq!(answer(&hive, "39", "no\n").await.code, 0);
    assert_eq!(answer(&hive, "14", "not before noon\n").await.code, 0);
    assert_eq!(answer(&hive, "35", "3\n").await.code, 0);
    let asked = [
        given(37, &["no"], ""),
        given(39, &["no"], ""),
        given(14, &[], "not before noon"),
        given(35, &[], "3"),
    ];
    assert_eq!(answers(&hive), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_asked_again() {
    let hive = Hive::start().await;
    let ran = answer(&hive, "14", "4\n1, 3\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_contains(&ran.err, "there is no option 4; there are 1 to 3\n");
    let ran = answer(&hive, "37", "1 2\n1\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_contains(&ran.err, "only one may be chosen\n");
    assert_eq!(answers(&hive), [given(14, &["tests", "lint"], ""), given(37, &["yes"], "")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_typed_answers_nothing() {
    let hive = Hive::start().await;
    for types in ["\n", "  \n", "\u{4}"] {
        let ran = answer(&hive, "37", types).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert_contains(&ran.err, "error: nothing was answered; question 37 stays open\n");
    }
    assert!(hive.changes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_or_unknown_question_opens_no_prompt() {
    let hive = Hive::start().await;
    let ran = answer(&hive, "41", "1\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""));
    assert_starts(
        &hive.masked(&ran.err),
        "error: question 41 has its outcome: answered by uid 1000 (eve) in the place of bob: a, b; both⏎then\n",
    );
    assert_eq!(answer(&hive, "999", "1\n").await.code, 3);
    assert!(hive.changes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_searched_for_stands_out_on_a_terminal_only() {
    let hive = Hive::start().await;
    let found = "\u{1b}[1m\u{1b}[33m42\u{1b}[0m";
    let on_terminal = Hive::run_on(Terminal::open(), hive.hivectl(&["search", "42"])).await.1;
    assert_contains(&on_terminal, found);
    let mut command = hive.hivectl(&["search", "42"]);
    command.env("NO_COLOR", "1");
    let without = Hive::run_on(Terminal::open(), command).await.1;
    assert!(
        without.contains("It is 42.⏎I asked bob.\\u{1b}]0;owned\\u{7}\n")
            && !without.contains('\u{1b}'),
        "{without:?}"
    );
    let piped = hive.run(&["search", "42"]).await.out;
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_read_page_by_page_up_to_its_limit() {
    let hive = Hive::new("[agents.ada]");
    let operator = hive.operator().await;
    let mut newest = 0;
    for _ in 0..60 {
        newest = operator.send("ada", "many").await;
    }
    hive.finds("many", newest).await;
    let count = async |args: &[&str]| {
        let ran = hive.run(args).await;
        (ran.out.lines().filter(|line| line.ends_with("  operator to ada")).count(), ran.err)
    };
    let more = |count| format!("these are the newest {count}; there is more: --limit shows it\n");
    assert_eq!(count(&["search", "many"]).await, (20, more(20)));
    assert_eq!(count(&["search", "many", "--limit", "55"]).await, (55, more(55)));
    assert_eq!(count(&["search", "many", "--limit", "60"]).await, (60, String::new()));
    assert_eq!(count(&["search", "many", "--limit", "500"]).await, (60, String::new()));
}
