//! Weather: limits and logins. Nothing of it uses an attempt, and the mail is delivered when it has
//! passed.

use hive_proto::v1::{HarnessState, SystemKind, TurnOutcome};
use hive_tests::api::{Reply, Script};

use crate::stage::{Stage, count};
use hive_tests::rig::Mode;

both!(
    a_rate_limit_parks_and_costs_no_attempt,
    a_limit_that_says_when_it_ends_is_waited_out,
    a_login_that_fails_for_a_moment_is_tried_again_at_once,
    a_missing_login_is_tried_twice_reported_once_and_awaited,
);

async fn a_rate_limit_parks_and_costs_no_attempt(mode: Mode) {
    let script = Script::new().when("", [Reply::rate_limited(None).times(2), Reply::text("Done.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    stage.set_env("HIVE_RATE_LIMIT_SLEEP_SECS", "1");
    let message = stage.send("in the rush hour").await;
    stage.start();
    for _ in 0..2 {
        let turn = stage.turn().await;
        assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::RateLimited, 1), "{turn:?}");
        assert!(turn.error.contains("429"), "{turn:?}");
    }
    let turn = stage.ok().await;
    assert_eq!(turn.attempt, 1, "{turn:?}");
    let requests = stage.requests_of(message);
    assert_eq!(requests.len(), 3, "no call was made in vain");
    for pair in requests.windows(2) {
        let rest = pair[1].time.duration_since(pair[0].time);
        assert!(rest.as_millis() >= 1000, "it rested for {rest:?}, not for a second");
    }
    let again = &requests[2].prompt;
    assert!(again.contains("the last turn hit the model's rate limit"), "{again}");
    assert!(stage.operator.deliveries("operator", &[]).await.is_empty(), "a limit is no news");
    stage.end().await;
}

async fn a_limit_that_says_when_it_ends_is_waited_out(mode: Mode) {
    // The host's clock, from the time of a new file: tests do not read the clock.
    let now = tempfile::tempfile().and_then(|file| file.metadata()).expect("a file");
    let resets_at = std::os::unix::fs::MetadataExt::mtime(&now) + 4;
    let limit = Reply::usage_limit(resets_at);
    let mut stage =
        Stage::in_mode(mode, Script::new().when("", [limit.times(1), Reply::text("Done.")])).await;
    // The CLI reports a subscription's limit for a login, not for a key.
    stage.options.claude_env.remove("ANTHROPIC_API_KEY");
    stage.options.claude_env.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy-token".to_owned());
    // The time in the limit's report overrides any setting.
    stage.set_env("HIVE_RATE_LIMIT_SLEEP_SECS", "3600");
    let message = stage.send("at the end of the week").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!(turn.outcome(), TurnOutcome::RateLimited, "{turn:?}");
    let park = stage.operator.get_agent("ada").await.park;
    let turn = stage.ok().await;
    assert_eq!(turn.attempt, 1, "{turn:?}");
    assert_eq!(stage.requests_of(message).len(), 2, "no call was made in vain");
    let began = turn.start_time.expect("a time").seconds;
    assert!(began >= resets_at, "{began} is before {resets_at}");
    // On a slow machine the limit may have ended before the test reads it.
    if let Some(park) = park {
        let until = park.until_time.expect("it is known").seconds;
        assert!(
            (resets_at..resets_at + 60).contains(&until),
            "the reset and a jitter: {until}, {resets_at}"
        );
        assert_eq!(park.cause(), TurnOutcome::RateLimited);
    }
    stage.end().await;
}

async fn a_login_that_fails_for_a_moment_is_tried_again_at_once(mode: Mode) {
    let script = Script::new().when("", [Reply::unauthorized().times(1), Reply::text("Done.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    let message = stage.send("who is there").await;
    stage.start();
    let turn = stage.ok().await;
    assert_eq!((turn.attempt, turn.message_id), (1, message), "{turn:?}");
    let tries = stage.requests_of(message);
    assert_eq!(tries.len(), 2, "once, and once more");
    assert!(tries[1].prompt.contains("the login failed for a moment"), "{}", tries[1].prompt);
    assert_eq!(stage.turns().await.len(), 1, "it was one turn");
    assert!(stage.operator.deliveries("operator", &[]).await.is_empty(), "that is no news");
    stage.end().await;
}

async fn a_missing_login_is_tried_twice_reported_once_and_awaited(mode: Mode) {
    let script = Script::new().when("", [Reply::unauthorized().times(2), Reply::text("Done.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    let message = stage.send("who are you").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::AuthFailed, 1), "{turn:?}");
    let tries = stage.requests_of(message);
    assert_eq!(tries.len(), 2, "once, and once more");
    assert!(tries[1].prompt.contains("the login failed for a moment"), "{}", tries[1].prompt);
    assert_eq!(count(&tries[1], "who are you"), 1, "{}", tries[1].body["messages"]);

    let notices = stage.operator.deliveries("operator", &[]).await;
    let [notice] = &notices[..] else { panic!("{notices:?}") };
    let notice = notice.message.clone().expect("a message");
    assert_eq!(notice.system_kind(), SystemKind::Unavailable);
    stage.state_is(HarnessState::NeedsLogin).await;
    let agent = stage.operator.get_agent("ada").await;
    assert_eq!(agent.park.map(|park| park.cause()), Some(TurnOutcome::AuthFailed));

    // More mail changes nothing: without a login no request is made.
    let second = stage.send("are you there").await;
    assert_eq!(stage.api.recorded().len(), 2);
    // The effect of a login.
    let home = stage.rig.path("agents/ada/home/.claude");
    std::fs::write(home.join(".credentials.json"), "{}").expect("claude has made the directory");
    let turn = stage.ok().await;
    assert_eq!((turn.attempt, turn.message_id), (1, message), "{turn:?}");
    assert_eq!(stage.ok().await.message_id, second, "the other one");
    stage.end().await;
}
