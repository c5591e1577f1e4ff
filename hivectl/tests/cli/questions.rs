//! Asking, waiting and answering, with and without somebody at a terminal.

use std::process::Stdio;

use hive_proto::v1::{Answer, Question, QuestionState};
use rustix::process::Signal;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use super::fake::Broker;
use super::follow::Following;
use super::run::{Ran, hivectl, run, run_with, signal};
use super::terminal::Terminal;

/// Runs `hivectl answer` with somebody at the terminal who types this.
async fn answer(broker: &Broker, id: &str, types: &str) -> Ran {
    let terminal = Terminal::open();
    terminal.types(types);
    let output = hivectl(&broker.socket())
        .args(["answer", id])
        .stdin(terminal.side())
        .output()
        .await
        .expect("the binary runs");
    Ran {
        code: output.status.code().expect("it ends by itself"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_id_is_all_that_is_printed_of_a_question_that_was_asked() {
    let broker = Broker::start();
    let ran = run(&broker.socket(), &["ask", "ada", "Done?"]).await;
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "40\n", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_may_come_from_stdin_and_its_answer_goes_to_stdout() {
    let broker = Broker::start();
    let ran = run_with(
        &broker.socket(),
        &["ask", "ada", "-", "--wait", "--option", "yes"],
        b"Done?\nReally?\n",
    )
    .await;
    assert_eq!((ran.code, ran.out.as_str()), (0, "yes\nin an hour\nor two\n"));
    assert_eq!(ran.err, "question 40 is asked; waiting for ada\n");
    assert_eq!(
        broker.changes(),
        [r#"ask ada: "Done?\nReally?", options ["yes"], multi false, ttl 0 s"#]
    );
}

/// An outcome for question 43.
fn outcome(state: QuestionState, text: &str) -> Question {
    let answer = Some(Answer { choices: Vec::new(), text: text.to_owned() });
    Question { id: 43, state: state.into(), answer, ..Question::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_an_answer_waits_out_a_broker_that_goes_away() {
    let mut broker = Broker::start();
    let mut child = hivectl(&broker.socket())
        .args(["ask", "mute", "Done?", "--wait"])
        .spawn()
        .expect("the binary runs");
    let mut err = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines();
    assert_eq!(
        err.next_line().await.expect("text").as_deref(),
        Some("question 43 is asked; waiting for mute")
    );
    broker.watched().await;
    broker.goes_away();
    assert_eq!(
        err.next_line().await.expect("text").as_deref(),
        Some("the broker is gone; waiting for it to come back")
    );
    broker.watched().await;
    broker.question(outcome(QuestionState::Open, ""));
    broker.question(outcome(QuestionState::Answered, "at last"));
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"at last\n"[..]));
    assert_eq!(broker.changes().len(), 1, "it is asked once");
}

/// An interrupt is no answer, so a script must not go on as if it were one.
#[tokio::test(flavor = "multi_thread")]
async fn an_interrupt_ends_the_wait_and_leaves_the_question_open() {
    let mut broker = Broker::start();
    let child = hivectl(&broker.socket())
        .args(["ask", "mute", "Done?", "--wait"])
        .spawn()
        .expect("the binary runs");
    broker.watched().await;
    signal(&child, Signal::INT);
    let output = child.wait_with_output().await.expect("it ends");
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(1), &b""[..]));
    let err = String::from_utf8(output.stderr).expect("text");
    insta::assert_snapshot!(err);
    assert_eq!(broker.changes().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_followed_to_their_outcome_over_an_absence_of_the_broker() {
    let mut broker = Broker::start();
    let mut questions = Following::start(&broker, &["questions", "--follow"]);
    let mut told = Vec::new();
    // Two questions of five and two lines.
    for _ in 0..8 {
        told.push(questions.line().await);
    }
    broker.watched().await;
    broker.goes_away();
    // It was answered meanwhile.
    told.push(questions.line().await);
    broker.watched().await;
    let asked = Question {
        id: 45,
        asker: "bob".to_owned(),
        target: "operator".to_owned(),
        text: "Now?".to_owned(),
        ..outcome(QuestionState::Open, "")
    };
    broker.question(asked.clone());
    told.extend([questions.line().await, questions.line().await]);
    broker.question(Question { state: QuestionState::Expired.into(), answer: None, ..asked });
    told.push(questions.line().await);
    insta::assert_snapshot!(told.join("\n"));
    assert_eq!(questions.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_counts_down() {
    let broker = Broker::start();
    let ran = run(&broker.socket(), &["questions", "--asker", "clock"]).await;
    assert!(ran.out.contains("  open   in 12 min  Quick?\n"), "{}", ran.out);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_may_come_from_stdin() {
    let broker = Broker::start();
    let ran = run_with(&broker.socket(), &["answer", "30", "-"], b"not\nyet\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(broker.changes(), [r#"answer 30: [], "not\nyet""#]);
}

#[tokio::test(flavor = "multi_thread")]
async fn somebody_at_a_terminal_is_asked() {
    let broker = Broker::start();
    let ran = answer(&broker, "30", "2\n").await;
    insta::assert_snapshot!(ran.all());
    assert_eq!(answer(&broker, "30", "no\n").await.code, 0);
    assert_eq!(answer(&broker, "30", "not before noon\n").await.code, 0);
    assert_eq!(answer(&broker, "32", "3\n").await.code, 0);
    let asked = [
        r#"answer 30: ["no"], """#,
        r#"answer 30: ["no"], """#,
        r#"answer 30: [], "not before noon""#,
        r#"answer 32: [], "3""#,
    ];
    assert_eq!(broker.changes(), asked);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_meant_is_asked_again() {
    let broker = Broker::start();
    let ran = answer(&broker, "34", "4\n1, 3\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("there is no option 4; there are 1 to 3\n"), "{}", ran.err);
    let ran = answer(&broker, "30", "1 2\n1\n").await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.err.contains("only one may be chosen\n"), "{}", ran.err);
    assert_eq!(
        broker.changes(),
        [r#"answer 34: ["tests", "lint"], """#, r#"answer 30: ["yes"], """#]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_typed_answers_nothing() {
    let broker = Broker::start();
    for types in ["\n", "  \n", "\u{4}"] {
        let ran = answer(&broker, "30", types).await;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""));
        assert!(
            ran.err.contains("error: nothing was answered; question 30 stays open\n"),
            "{}",
            ran.err
        );
    }
    assert!(broker.changes().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_asked_about_what_is_closed_or_unknown() {
    let broker = Broker::start();
    let ran = answer(&broker, "33", "1\n").await;
    assert_eq!((ran.code, ran.out.as_str()), (5, ""));
    assert!(
        ran.err
            .starts_with("error: question 33 has its outcome: answered by uid 1000 (eve) in the place of bob: a, b; both⏎then\n"),
        "{}",
        ran.err
    );
    assert_eq!(answer(&broker, "99", "1\n").await.code, 3);
    assert!(broker.changes().is_empty());
}

/// Runs `hivectl` with its stdout on a terminal.
async fn shown(broker: &Broker, args: &[&str], env: &[(&str, &str)]) -> String {
    let terminal = Terminal::open();
    let mut command = hivectl(&broker.socket());
    command.args(args).envs(env.iter().copied()).stdout(terminal.side()).stderr(Stdio::inherit());
    let status = command.status().await.expect("the binary runs");
    // It holds the other side of the terminal as long as it lives.
    drop(command);
    assert!(status.success());
    terminal.shown()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_searched_for_stands_out_on_a_terminal_only() {
    let broker = Broker::start();
    let found = "\u{1b}[1m\u{1b}[33m42\u{1b}[0m";
    let on_terminal = shown(&broker, &["search", "42"], &[]).await;
    assert!(on_terminal.contains(found), "{on_terminal:?}");
    let without = shown(&broker, &["search", "42"], &[("NO_COLOR", "1")]).await;
    assert!(
        without.contains("It is 42.⏎I asked bob.\\u{1b}]0;owned\\u{7}\n")
            && !without.contains('\u{1b}'),
        "{without:?}"
    );
    let piped = run(&broker.socket(), &["search", "42"]).await.out;
    assert!(!piped.contains('\u{1b}'), "{piped:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_read_page_by_page_up_to_its_limit() {
    let broker = Broker::start();
    let count = async |args: &[&str]| {
        let ran = run(&broker.socket(), args).await;
        (ran.out.lines().filter(|line| line.starts_with("14 ")).count(), ran.err)
    };
    let more = |count| format!("these are the newest {count}; there is more: --limit shows it\n");
    assert_eq!(count(&["search", "many"]).await, (20, more(20)));
    assert_eq!(count(&["search", "many", "--limit", "55"]).await, (55, more(55)));
    assert_eq!(count(&["search", "many", "--limit", "60"]).await, (60, String::new()));
    assert_eq!(count(&["search", "many", "--limit", "500"]).await, (60, String::new()));
}
