//! Journeys of `hive serve`: the real program with the real broker and a scripted claude.

use std::time::Duration;

use crate::support::{Stage, lives, wait_until};
use hive_in_process::Recorded;
use hive_proto::v1;
use hive_proto::v1::HarnessState as State;
use hive_proto::v1::TurnOutcome as Outcome;
use hive_proto::v1::command::Command as Order;
use hive_proto::v1::turn_service_client::TurnServiceClient;
use hive_tests::rig::Harness;
use rustix::process::Signal;

/// A claude that runs until it is stopped, and creates a file when it runs.
const ENDLESS: &str = "init; echo $$ > $HOME/new; mv $HOME/new $HOME/running; exec sleep 1000";

#[tokio::test]
async fn a_message_becomes_a_turn_and_the_turn_is_settled() {
    let stage = Stage::new();
    let mut hive = stage.serve("well", &[("HIVE_SECRET", "x")]);
    assert_eq!(stage.attach().await, None);
    stage.status(State::Idle).await;
    let message = stage.mail("hello @/etc/passwd").await;
    stage.next::<v1::ReportTurnEventsRequest>("ReportTurnEvents").await;
    let end = stage.end().await;
    assert_eq!((end.outcome(), end.model.as_str()), (Outcome::Ok, "claude-x"), "{end:?}");
    let operator = stage.broker.operator().await;
    let turns = operator.turns("bob").await;
    assert_eq!(turns.iter().map(|turn| turn.id).collect::<Vec<_>>(), [end.turn_id]);
    let lines = operator.lines(end.turn_id).await;
    assert!(lines.iter().any(|line| line.contains("\"result\"")), "{lines:?}");
    stage.status(State::Idle).await;

    assert_eq!(
        stage.read("home/prompt.1"),
        format!("Message {message} from agent alice:\n| hello \\@/etc/passwd\n")
    );
    let arguments = stage.read("home/arguments.1");
    assert!(
        arguments.starts_with("--print\n--verbose\n") && arguments.contains("--continue\n"),
        "{arguments}"
    );
    let environment = stage.read("home/environment.1");
    assert!(!environment.contains("HIVE_"), "{environment}");
    assert!(environment.contains("CLAUDE_CODE_DISABLE_ATTACHMENTS=1\n"));
    let config = stage.read("home/.hive/claude-mcp-config.json");
    assert!(
        config.contains("\"alwaysLoad\": true") && config.contains("HIVE_PROCESS_TOKEN"),
        "{config}"
    );
    for name in ["claude-mcp-config.json", "claude-settings.json", "claude-system-prompt.md"] {
        assert_eq!(stage.mode(&format!("home/.hive/{name}")), 0o600, "{name}");
    }
    assert!(
        stage.read("home/.hive/claude-system-prompt.md").starts_with("You are `bob`, an agent.")
    );

    hive.signal(Signal::TERM);
    assert_eq!(hive.exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_turn_that_was_asked_for_follows() {
    let stage = Stage::new();
    let _hive = stage.serve("init; while [ ! -e $HOME/go ]; do sleep 0.02; done; well", &[]);
    stage.mail("go on").await;
    let begin: v1::BeginTurnRequest = stage.next("BeginTurn").await;
    stage.appears("home/prompt.1").await;
    let claude = stage.broker.client("bob").await.with_process(&begin.process_token);
    let wish = claude.request(v1::RequestNextTurnRequest {});
    TurnServiceClient::new(claude.channel()).request_next_turn(wish).await.expect("it may wish");
    std::fs::write(stage.path("home/go"), "").expect("written");
    stage.end().await;
    let begin: v1::BeginTurnRequest = stage.next("BeginTurn").await;
    assert_eq!(begin.kind(), v1::TurnKind::Continue);
    let second = stage.broker.operator().await.turn(stage.end().await.turn_id).await;
    assert_eq!(second.kind(), v1::TurnKind::Continue);
    assert!(stage.read("home/prompt.2").starts_with("Message from self:\n| continue\n"));
}

#[tokio::test]
async fn nothing_that_a_turn_started_outlives_it() {
    let stage = Stage::new();
    let script = "init; (setsid sh -c 'trap \"\" INT TERM; echo $$ > $HOME/escaped; sleep 1000' &) ; \
                  sleep 1000 & echo $! > $HOME/child; while [ ! -s $HOME/escaped ]; do :; done; kill -9 $$";
    let _hive = stage.serve(script, &[]);
    stage.mail("x").await;
    let end = stage.end().await;
    assert_eq!(end.outcome(), Outcome::Failed);
    for name in ["home/escaped", "home/child"] {
        assert!(!lives(&stage.read(name)), "{name}");
    }
}

#[tokio::test]
async fn a_broker_that_restarts_in_mid_turn_ends_nothing() {
    let mut stage = Stage::new();
    let script = "init; echo $$ > $HOME/new; mv $HOME/new $HOME/running; \
                  while [ ! -e $HOME/go ]; do sleep 0.02; done; well";
    let _hive = stage.serve(script, &[]);
    stage.mail("x").await;
    let pid = stage.appears("home/running").await;
    stage.broker.run();
    // The harness reattaches in the same session; the first request was that of the start.
    stage.attach().await;
    let session = stage.session("BeginTurn").await;
    assert!(session.is_some());
    assert_eq!(stage.attach().await, session);
    assert!(lives(&pid));
    stage.broker.kill();
    std::fs::write(stage.path("home/go"), "").expect("written");
    wait_until("claude ends", || !lives(&pid)).await;
    // Its end waits for the broker.
    stage.broker.run();
    let end = |call: &Recorded| {
        let end: v1::EndTurnRequest = call.request("EndTurn")?;
        Some((end.outcome(), call.session_token.clone()))
    };
    assert_eq!(stage.broker.next("EndTurn", end).await, (Outcome::Ok, session));
}

#[tokio::test]
async fn a_fenced_harness_kills_its_claude_and_attaches_again() {
    let stage = Stage::new();
    let _hive = stage.serve(ENDLESS, &[]);
    stage.mail("x").await;
    let pid = stage.appears("home/running").await;
    stage.attach().await;
    // Another harness takes over, and goes.
    drop(Harness::attach(&stage.broker.client("bob").await.channel(), true).await);
    assert_eq!(stage.attach().await, None);
    assert!(!lives(&pid));
}

#[tokio::test]
async fn a_harness_that_was_killed_leaves_no_claude_to_the_next_one() {
    let stage = Stage::new();
    let mut hive = stage.serve(ENDLESS, &[]);
    stage.mail("x").await;
    let pid = stage.appears("home/running").await;
    stage.status(State::Thinking).await;
    hive.signal(Signal::KILL);
    hive.exit().await;
    assert!(lives(&pid));
    stage.broker.operator().await.does("bob", State::Offline).await;
    let _hive = stage.serve("well", &[]);
    stage.status(State::Idle).await;
    assert!(!lives(&pid));
    stage.mail("y").await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn a_cancel_ends_the_turn_and_is_closed() {
    let stage = Stage::new();
    let _hive = stage.serve(ENDLESS, &[]);
    stage.mail("x").await;
    stage.appears("home/running").await;
    let turn_id = stage.broker.operator().await.get_agent("bob").await.open_turn_ids[0];
    let command_id = stage.order(Order::CancelTurn(v1::CancelTurn { turn_id })).await;
    assert_eq!(stage.end().await.outcome(), Outcome::Cancelled);
    let ack: v1::AckCommandRequest = stage.next("AckCommand").await;
    assert_eq!((ack.command_id, ack.error.as_str()), (command_id, ""));
}

#[tokio::test]
async fn a_drain_stops_the_turn_after_its_grace() {
    let stage = Stage::new();
    let mut hive = stage.serve(ENDLESS, &[("HIVE_DRAIN_GRACE_SECS", "0")]);
    stage.mail("x").await;
    stage.appears("home/running").await;
    hive.signal(Signal::TERM);
    assert_eq!(stage.end().await.outcome(), Outcome::Drained);
    assert_eq!(hive.exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_claude_that_obeys_no_signal_is_killed() {
    let stage = Stage::new();
    let script = "trap '' INT TERM; init; while :; do sleep 1000; done";
    let _hive = stage.serve(script, &[("HIVE_TURN_IDLE_TIMEOUT_SECS", "1")]);
    stage.mail("x").await;
    let end = stage.end().await;
    assert_eq!(end.outcome(), Outcome::Unavailable);
    assert!(end.error.contains("HIVE_TURN_IDLE_TIMEOUT_SECS"), "{end:?}");
}

#[tokio::test]
async fn a_restart_keeps_the_process_and_begins_a_new_session() {
    let stage = Stage::new();
    let mut hive = stage.serve("well", &[]);
    stage.attach().await;
    stage.status(State::Idle).await;
    let command_id = stage.order(Order::RestartHarness(v1::RestartHarness {})).await;
    assert_eq!(stage.next::<v1::AckCommandRequest>("AckCommand").await.command_id, command_id);
    assert_eq!(stage.attach().await, None);
    stage.mail("x").await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
    hive.signal(Signal::TERM);
    assert_eq!(hive.exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_missing_login_is_tried_twice_and_then_awaited() {
    let stage = Stage::new();
    let script = "mkdir -p $HOME/.claude; if [ -e $HOME/.claude/login ]; then well; else fail authentication_failed 401; fi";
    let _hive = stage.serve(script, &[]);
    stage.mail("x").await;
    assert_eq!(stage.end().await.outcome(), Outcome::AuthFailed);
    assert!(stage.path("home/prompt.2").exists() && !stage.path("home/prompt.3").exists());
    stage.status(State::NeedsLogin).await;
    std::fs::write(stage.path("home/.claude/login"), "").expect("written");
    stage.status(State::Idle).await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
    assert!(
        stage
            .read("home/prompt.3")
            .contains("This is attempt 1 again: the last turn found no valid login.")
    );
}

#[tokio::test]
async fn a_text_that_the_conversation_holds_is_not_repeated() {
    let stage = Stage::new();
    let project: String = stage
        .path("state")
        .canonicalize()
        .expect("there")
        .to_string_lossy()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let dir = stage.path("home/.claude/projects").join(project);
    std::fs::create_dir_all(&dir).expect("created");
    // Its first turn has met a limit.
    let message = stage.mail("x").await;
    let earlier = stage.broker.harness("bob").await;
    let turn = earlier.begin().await.0.turn.expect("a turn");
    earlier.end(turn.id, Outcome::RateLimited).await;
    drop(earlier);
    stage.broker.advance(Duration::from_secs(3600));
    let text = format!("Message {message} from agent alice:\n| x\n");
    let held = serde_json::json!({"type": "user", "message": {"content": text}});
    std::fs::write(dir.join("s.jsonl"), held.to_string()).expect("written");
    let _hive = stage.serve("well", &[]);
    stage.end().await;
    assert!(
        stage
            .read("home/prompt.1")
            .starts_with(&format!("Message {message} from agent alice, whose text stands above"))
    );
}

#[tokio::test]
async fn a_missing_cli_is_reported_and_does_not_crash() {
    let stage = Stage::new();
    let _hive = stage.serve("", &[("HIVE_CLAUDE", "/no/such/claude")]);
    stage.status(State::Unavailable).await;
    stage.mail("x").await;
    let end = stage.end().await;
    assert_eq!(end.outcome(), Outcome::Unavailable);
    assert!(end.error.contains("/no/such/claude") && end.error.contains("HIVE_CLAUDE"), "{end:?}");
}

#[tokio::test]
async fn a_second_harness_is_refused_unless_it_takes_over() {
    let stage = Stage::new();
    let _other = stage.broker.harness("bob").await;
    let mut refused = stage.serve("well", &[]);
    assert_eq!(refused.exit().await.code(), Some(1));
    let log = stage.read("hive.log");
    assert!(log.contains("ALREADY_ATTACHED") && log.contains("--take-over"), "{log}");
    let _hive = stage.serve("well", &[("--take-over", "")]);
    stage.mail("x").await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn an_old_cli_is_reported() {
    let stage = Stage::new();
    let _hive = stage.serve("", &[("HIVE_CLAUDE_ENV", r#"{"VERSION":"1.0.60"}"#)]);
    stage.mail("x").await;
    let end = stage.end().await;
    assert_eq!(end.outcome(), Outcome::Unavailable);
    assert!(end.error.contains("claude 1.0.60 is too old"), "{end:?}");
}

#[tokio::test]
async fn output_without_end_is_taken_in_without_blocking_claude() {
    let stage = Stage::bounded("body_bytes_max = 300_000\n");
    let script = "init; head -c 20000000 /dev/zero | tr '\\0' x; echo; yes '{\"type\":\"other\"}' | head -n 20000; \
                  head -c 3000000 /dev/zero | tr '\\0' 'e' >&2; well";
    let _hive = stage.serve(script, &[]);
    stage.mail(&"y\n".repeat(100_000)).await;
    assert_eq!(stage.end().await.outcome(), Outcome::Ok);
}
