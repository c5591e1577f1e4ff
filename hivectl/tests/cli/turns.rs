//! What turns say, as they say it.

use std::process::Stdio;

use super::fake::{Broker, Output};
use super::follow::Following;
use super::run::{hivectl, ran, run};
use super::terminal::Terminal;

fn said(sequence: u64, words: &str) -> Output {
    let content = serde_json::json!([{ "type": "text", "text": words }]);
    Output::Line(
        sequence,
        serde_json::json!({ "type": "assistant", "message": { "content": content } }).to_string(),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_followed_from_turn_to_turn_until_ctrl_c() {
    let mut broker = Broker::start();
    let mut ada = Following::start(&broker, &["turn", "show", "ada", "--follow"]);
    // The event log first, then the turn.
    broker.watched().await;
    broker.watched().await;
    assert_eq!(ada.line().await, "turn 21 of ada: continue, begun 2020-03-01 12:00");
    assert_eq!(ada.line().await, "2020-03-01 12:00  (started: no message)");
    broker.turn_does(said(2, "On it.\u{1b}[2J"));
    assert_eq!(ada.line().await, "2020-03-01 12:00  On it.\\u{1b}[2J");
    broker.turn_does(Output::Ends);
    assert_eq!(ada.line().await, "turn 21 of ada: ok after 3.0 s");
    broker.next_turn();
    assert_eq!(ada.line().await, "turn 24 of ada: compact, begun 2020-03-01 12:00");
    assert_eq!(ada.line().await, "2020-03-01 12:00  (started: to compact)");
    assert_eq!(ada.line().await, "turn 24 of ada: failed after 3.0 s: nothing to compact");
    assert_eq!(ada.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_followed_to_its_end_also_over_a_broker_that_goes_away() {
    let mut broker = Broker::start();
    let mut turn = Following::start(&broker, &["turn", "show", "21", "--follow", "--json"]);
    broker.watched().await;
    let line = |line: String| serde_json::from_str::<serde_json::Value>(&line).expect("JSON");
    let first = line(turn.line().await);
    assert_eq!(
        (first["schema"].as_str(), first["turn_id"].as_u64()),
        (Some("hive.turn_event.v1"), Some(21))
    );
    broker.turn_does(Output::Breaks);
    broker.watched().await;
    // The first line is there again, but is not told again.
    broker.turn_does(said(2, "Still here."));
    assert_eq!(line(turn.line().await)["sequence"], 2);
    broker.turn_does(Output::Ends);
    assert_eq!(turn.ends().await, 0, "it ends with the turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_lines_go_to_stdout_as_claude_printed_them_and_all_else_to_stderr() {
    let broker = Broker::start();
    let ran_raw = run(&broker.socket(), &["turn", "show", "11", "--raw"]).await;
    assert_eq!((ran_raw.code, ran_raw.err.as_str()), (0, "claude starts\na \\u{1b}[1mwarning\n"));
    let types: Vec<String> = ran_raw
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).expect("claude's JSON")["type"]
                .to_string()
        })
        .collect();
    assert_eq!(types, ["\"assistant\"", "\"assistant\"", "\"user\"", "\"system\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_terminal_there_is_colour_and_nothing_of_a_turn_steers_it() {
    let broker = Broker::start();
    for option in ["--output", "--raw"] {
        let terminal = Terminal::open();
        terminal.resize(24, 60);
        let mut command = hivectl(&broker.socket());
        command.args(["turn", "show", "11", option]).stdout(terminal.side()).stderr(Stdio::piped());
        let child = command.spawn().expect("the binary runs");
        // It has the terminal's other side for as long as it lives.
        drop(command);
        let ran = ran(child.wait_with_output().await.expect("it ends"));
        assert_eq!(ran.code, 0, "{}", ran.err);
        let shown = terminal.shown();
        assert!(
            !shown.contains("\u{1b}[1mwarning") && !shown.contains("\u{1b}[31m14"),
            "{shown:?}"
        );
        assert_eq!(
            shown.contains("\u{1b}["),
            option == "--output",
            "colours are ours alone: {shown:?}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_of_which_nothing_is_kept_says_so() {
    let broker = Broker::start();
    let ran = run(&broker.socket(), &["turn", "show", "13", "--output"]).await;
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (
            0,
            "turn 13 of bob: mail of message 12, attempt 5, begun 2020-03-01 12:00\nturn 13 of bob: failed after 400 ms: claude exited with 1\n",
            "none of its output is kept\n"
        )
    );
    let ran = run(&Broker::empty().socket(), &["turn", "show"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
}
