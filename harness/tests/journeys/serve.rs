//! Journeys of `hive serve`: the real program against a played broker and a scripted claude.

use crate::support::broker::Asked;
use crate::support::{Stage, lives, wait_until};
use hive_proto::v1;
use hive_proto::v1::HarnessState as State;
use hive_proto::v1::TurnOutcome as Outcome;
use hive_proto::v1::attach_response::Step;
use hive_proto::v1::command::Command as Order;
use rustix::process::Signal;

fn command(id: u64, order: Order) -> Step {
    Step::Command(v1::Command { id, command: Some(order), create_time: None })
}

/// A claude that goes on until it is stopped, and tells that it runs.
const ENDLESS: &str = "init; echo $$ > $HOME/new; mv $HOME/new $HOME/running; exec sleep 1000";

#[tokio::test]
async fn a_message_becomes_a_turn_and_the_turn_is_settled() {
    let mut stage = Stage::new().await;
    let mut hive = stage.serve("well", &[("HIVE_SECRET", "x")]);
    assert_eq!(stage.broker.attach().await.session_token, "");
    stage.broker.status(State::Idle).await;
    stage.broker.mail(17, "hello @/etc/passwd", |_| {});
    let line = |asked| {
        if let Asked::Line(line) = asked { line.contains("\"result\"").then_some(()) } else { None }
    };
    stage.broker.next("the result as a live line", line).await;
    let end = stage.broker.end().await;
    assert_eq!(
        (end.turn_id, end.outcome(), end.model.as_str()),
        (7, Outcome::Ok, "claude-x"),
        "{end:?}"
    );
    stage.broker.status(State::Idle).await;

    assert_eq!(
        stage.read("home/prompt.1"),
        "Message 17 from agent alice:\n| hello \\@/etc/passwd\n"
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
    let mut stage = Stage::new().await;
    let _hive = stage.serve("well", &[]);
    stage.broker.answer(v1::EndTurnResponse {
        next_turn_requested: true,
        ..v1::EndTurnResponse::default()
    });
    stage.broker.mail(17, "go on", |_| {});
    stage.broker.end().await;
    let kind = stage
        .broker
        .next("a turn", |asked| if let Asked::Open(kind) = asked { Some(kind) } else { None })
        .await;
    assert_eq!(kind, v1::TurnKind::Continue);
    assert_eq!(stage.broker.end().await.turn_id, 8);
    assert!(stage.read("home/prompt.2").starts_with("Message from self:\n| continue\n"));
}

#[tokio::test]
async fn nothing_that_a_turn_started_outlives_it() {
    let mut stage = Stage::new().await;
    let script = "init; (setsid sh -c 'trap \"\" INT TERM; echo $$ > $HOME/escaped; sleep 1000' &) ; \
                  sleep 1000 & echo $! > $HOME/child; while [ ! -s $HOME/escaped ]; do :; done; kill -9 $$";
    let _hive = stage.serve(script, &[]);
    stage.broker.mail(17, "x", |_| {});
    let end = stage.broker.end().await;
    assert_eq!(end.outcome(), Outcome::Failed);
    for name in ["home/escaped", "home/child"] {
        assert!(!lives(&stage.read(name)), "{name}");
    }
}

#[tokio::test]
async fn a_broker_that_restarts_in_mid_turn_ends_nothing() {
    let mut stage = Stage::new().await;
    let script =
        "init; echo $$ > $HOME/running; while [ ! -e $HOME/go ]; do sleep 0.02; done; well";
    let _hive = stage.serve(script, &[]);
    stage.broker.mail(17, "x", |_| {});
    let pid = stage.appears("home/running").await;
    stage.broker.stop().await;
    stage.broker.again();
    // It comes back to the same session; the first request was that of the start.
    stage.broker.attach().await;
    assert_eq!(stage.broker.attach().await.session_token, "session-1");
    assert!(lives(&pid));
    stage.broker.stop().await;
    std::fs::write(stage.path("home/go"), "").expect("written");
    wait_until("claude ends", || !lives(&pid)).await;
    // Its end waits for the broker.
    stage.broker.again();
    let end = stage.broker.end().await;
    assert_eq!((end.outcome(), end.session_token.as_str()), (Outcome::Ok, "session-1"));
}

#[tokio::test]
async fn a_harness_that_is_fenced_kills_its_claude_and_begins_anew() {
    let mut stage = Stage::new().await;
    let _hive = stage.serve(ENDLESS, &[]);
    stage.broker.mail(17, "x", |_| {});
    let pid = stage.appears("home/running").await;
    stage.broker.attach().await;
    stage.broker.fence().await;
    assert_eq!(stage.broker.attach().await.session_token, "");
    assert!(!lives(&pid));
}

#[tokio::test]
async fn a_harness_that_was_killed_leaves_no_claude_to_the_next_one() {
    let mut stage = Stage::new().await;
    let mut hive = stage.serve(ENDLESS, &[]);
    stage.broker.mail(17, "x", |_| {});
    let pid = stage.appears("home/running").await;
    stage.broker.status(State::Thinking).await;
    hive.signal(Signal::KILL);
    hive.exit().await;
    assert!(lives(&pid));
    let _hive = stage.serve("well", &[]);
    stage.broker.status(State::Idle).await;
    assert!(!lives(&pid));
    stage.broker.mail(18, "y", |_| {});
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn a_cancel_ends_the_turn_and_is_closed() {
    let mut stage = Stage::new().await;
    let _hive = stage.serve(ENDLESS, &[]);
    stage.broker.mail(17, "x", |_| {});
    stage.appears("home/running").await;
    stage.broker.tell(Ok(command(30, Order::CancelTurn(v1::CancelTurn { turn_id: 7 })))).await;
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Cancelled);
    let ack = stage
        .broker
        .next(
            "an ack",
            |asked| if let Asked::Ack(id, error) = asked { Some((id, error)) } else { None },
        )
        .await;
    assert_eq!(ack, (30, String::new()));
}

#[tokio::test]
async fn a_drain_stops_the_turn_after_its_grace() {
    let mut stage = Stage::new().await;
    let mut hive = stage.serve(ENDLESS, &[("HIVE_DRAIN_GRACE_SECS", "0")]);
    stage.broker.mail(17, "x", |_| {});
    stage.appears("home/running").await;
    hive.signal(Signal::TERM);
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Drained);
    assert_eq!(hive.exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_claude_that_obeys_no_signal_is_killed() {
    let mut stage = Stage::new().await;
    let script = "trap '' INT TERM; init; while :; do sleep 1000; done";
    let _hive = stage.serve(script, &[("HIVE_TURN_IDLE_TIMEOUT_SECS", "1")]);
    stage.broker.mail(17, "x", |_| {});
    let end = stage.broker.end().await;
    assert_eq!(end.outcome(), Outcome::Unavailable);
    assert!(end.error.contains("HIVE_TURN_IDLE_TIMEOUT_SECS"), "{end:?}");
}

#[tokio::test]
async fn a_restart_keeps_the_process_and_begins_a_new_session() {
    let mut stage = Stage::new().await;
    let mut hive = stage.serve("well", &[]);
    stage.broker.attach().await;
    stage.broker.status(State::Idle).await;
    stage.broker.tell(Ok(command(30, Order::RestartHarness(v1::RestartHarness {})))).await;
    stage.broker.next("an ack", |asked| matches!(asked, Asked::Ack(30, _)).then_some(())).await;
    assert_eq!(stage.broker.attach().await.session_token, "");
    stage.broker.mail(17, "x", |_| {});
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Ok);
    hive.signal(Signal::TERM);
    assert_eq!(hive.exit().await.code(), Some(0));
}

#[tokio::test]
async fn a_missing_login_is_tried_twice_and_then_waited_for() {
    let mut stage = Stage::new().await;
    let script = "mkdir -p $HOME/.claude; if [ -e $HOME/.claude/login ]; then well; else fail authentication_failed 401; fi";
    let _hive = stage.serve(script, &[]);
    let park = v1::Park { cause: Outcome::AuthFailed.into(), ..v1::Park::default() };
    stage.broker.answer(v1::EndTurnResponse { park: Some(park), ..v1::EndTurnResponse::default() });
    stage.broker.mail(17, "x", |_| {});
    assert_eq!(stage.broker.end().await.outcome(), Outcome::AuthFailed);
    assert!(stage.path("home/prompt.2").exists() && !stage.path("home/prompt.3").exists());
    stage.broker.status(State::NeedsLogin).await;
    std::fs::write(stage.path("home/.claude/login"), "").expect("written");
    stage.broker.status(State::Idle).await;
    stage
        .broker
        .mail(17, "x", |delivery| delivery.set_redelivery_cause(v1::RedeliveryCause::AuthFailed));
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Ok);
    assert!(
        stage
            .read("home/prompt.3")
            .contains("This is attempt 1 again: the last turn found no valid login.")
    );
}

#[tokio::test]
async fn a_text_that_the_conversation_holds_is_not_given_again() {
    let mut stage = Stage::new().await;
    let project: String = stage
        .path("state")
        .canonicalize()
        .expect("there")
        .to_string_lossy()
        .replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let dir = stage.path("home/.claude/projects").join(project);
    std::fs::create_dir_all(&dir).expect("created");
    let held = serde_json::json!({"type": "user", "message": {"content": "Message 17 from agent alice:\n| x\n"}});
    std::fs::write(dir.join("s.jsonl"), held.to_string()).expect("written");
    let _hive = stage.serve("well", &[]);
    stage
        .broker
        .mail(17, "x", |delivery| delivery.set_redelivery_cause(v1::RedeliveryCause::RateLimited));
    stage.broker.end().await;
    assert!(
        stage
            .read("home/prompt.1")
            .starts_with("Message 17 from agent alice, whose text stands above")
    );
}

#[tokio::test]
async fn a_missing_cli_is_told_and_does_not_crash() {
    let mut stage = Stage::new().await;
    let _hive = stage.serve("", &[("HIVE_CLAUDE", "/no/such/claude")]);
    stage.broker.status(State::Unavailable).await;
    stage.broker.mail(17, "x", |_| {});
    let end = stage.broker.end().await;
    assert_eq!(end.outcome(), Outcome::Unavailable);
    assert!(end.error.contains("/no/such/claude") && end.error.contains("HIVE_CLAUDE"), "{end:?}");
}

#[tokio::test]
async fn a_second_harness_is_refused_unless_it_takes_over() {
    let mut stage = Stage::new().await;
    stage.broker.occupy();
    let mut refused = stage.serve("well", &[]);
    assert_eq!(refused.exit().await.code(), Some(1));
    let log = stage.read("hive.log");
    assert!(log.contains("ALREADY_ATTACHED") && log.contains("--take-over"), "{log}");
    let _hive = stage.serve("well", &[("--take-over", "")]);
    stage.broker.mail(17, "x", |_| {});
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Ok);
}

#[tokio::test]
async fn an_old_cli_is_told() {
    let mut stage = Stage::new().await;
    let _hive = stage.serve("", &[("HIVE_CLAUDE_ENV", r#"{"VERSION":"1.0.60"}"#)]);
    stage.broker.mail(17, "x", |_| {});
    let end = stage.broker.end().await;
    assert_eq!(end.outcome(), Outcome::Unavailable);
    assert!(end.error.contains("claude 1.0.60 is too old"), "{end:?}");
}

#[tokio::test]
async fn output_without_end_is_taken_in_without_blocking_claude() {
    let mut stage = Stage::new().await;
    let script = "init; head -c 20000000 /dev/zero | tr '\\0' x; echo; yes '{\"type\":\"other\"}' | head -n 20000; \
                  head -c 3000000 /dev/zero | tr '\\0' 'e' >&2; well";
    let _hive = stage.serve(script, &[]);
    stage.broker.mail(17, &"y\n".repeat(100_000), |_| {});
    assert_eq!(stage.broker.end().await.outcome(), Outcome::Ok);
}
