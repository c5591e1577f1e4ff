//! Output of turns while they run.

use std::time::Duration;

use hive_proto::v1::{EndTurnRequest, TurnEventStream, TurnKind, TurnOutcome};

use super::follow::Following;
use super::hive::Hive;
use super::terminal::Terminal;

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_followed_from_turn_to_turn_until_ctrl_c() {
    let mut hive = Hive::start().await;
    let mut following = Following::start(&hive, &["turn", "show", "ada", "--follow"]);
    assert_eq!(following.line().await, "turn 34 of ada: continue, begun 2100-01-01 00:00");
    assert_eq!(following.line().await, "2100-01-01 00:00  (started: no message)");
    hive.ada().say("On it.\u{1b}[2J").await;
    assert_eq!(following.line().await, "2100-01-01 00:02  On it.\\u{1b}[2J");
    hive.ada().end(TurnOutcome::Ok, EndTurnRequest::default()).await;
    assert_eq!(following.line().await, "turn 34 of ada: ok after 2 min 10 s");
    let next = hive.ada().open(TurnKind::Compact).await.turn;
    hive.ada().print(&[(TurnEventStream::Note, "started: to compact")]).await;
    let begun = format!("turn {next} of ada: compact, begun 2100-01-01 00:02");
    assert_eq!(following.line().await, begun);
    assert_eq!(following.line().await, "2100-01-01 00:02  (started: to compact)");
    hive.advance(Duration::from_secs(3));
    let how =
        EndTurnRequest { error: "nothing to compact".to_owned(), ..EndTurnRequest::default() };
    hive.ada().end(TurnOutcome::Failed, how).await;
    let ended = format!("turn {next} of ada: failed after 3.0 s: nothing to compact");
    assert_eq!(following.line().await, ended);
    assert_eq!(following.interrupt().await, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_turn_is_followed_to_its_end_also_over_a_broker_that_goes_away() {
    let mut hive = Hive::start().await;
    let mut turn = Following::start(&hive, &["turn", "show", "34", "--follow", "--json"]);
    let line = |line: String| serde_json::from_str::<serde_json::Value>(&line).expect("JSON");
    let first = line(turn.line().await);
    assert_eq!(
        (first["schema"].as_str(), first["turn_id"].as_u64()),
        (Some("hive.turn_event.v1"), Some(34))
    );
    hive.restart().await;
    // The first line is read again, but not printed again.
    hive.ada().say("Still here.").await;
    assert_eq!(line(turn.line().await)["sequence"], 2);
    hive.ada().end(TurnOutcome::Ok, EndTurnRequest::default()).await;
    assert_eq!(turn.ends().await, 0, "it ends with the turn");
}

#[tokio::test(flavor = "multi_thread")]
async fn raw_lines_go_to_stdout_as_claude_printed_them_and_all_else_to_stderr() {
    let hive = Hive::start().await;
    let ran_raw = hive.run(&["turn", "show", "2", "--raw"]).await;
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
    let hive = Hive::start().await;
    for option in ["--output", "--raw"] {
        let terminal = Terminal::open();
        terminal.resize(24, 60);
        let command = hive.hivectl(&["turn", "show", "2", option]);
        let (ran, shown) = Hive::run_on(terminal, command).await;
        assert_eq!(ran.code, 0, "{}", ran.err);
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
    let hive = Hive::start().await;
    let ran = hive.run(&["turn", "show", "29", "--output"]).await;
    assert_eq!(
        (ran.code, ran.out.as_str(), ran.err.as_str()),
        (
            0,
            "turn 29 of bob: mail of message 13, attempt 2, begun 2100-01-01 00:00\nturn 29 of bob: failed after 400 ms: claude exited with 1\n",
            "none of its output is kept\n"
        )
    );
    let ran = Hive::empty().run(&["turn", "show"]).await;
    assert_eq!((ran.code, ran.out.as_str()), (3, ""), "{}", ran.err);
}
