//! Weather: limits, logins and windows. Nothing of it uses an attempt, and the mail is delivered when it has passed.

use hive_proto::v1::{DeliveryState, HarnessState, RedeliveryCause, SystemKind, TurnOutcome};
use hive_tests::api::{Reply, Script};

use crate::stage::{Stage, count};

/// Asserts that a message was delivered in the end, at its first attempt, and that the model was shown it once.
async fn delivered(stage: &Stage, message: u64, body: &str) {
    let delivery = stage.operator.delivery("ada", message).await;
    assert_eq!((delivery.state(), delivery.attempt), (DeliveryState::Acked, 1), "{delivery:?}");
    let last = stage.requests_of(message).pop().expect("the model was asked");
    assert_eq!(count(&last, body), 1, "the text stands once in the conversation: {:#}", last.body["messages"]);
}

#[tokio::test]
async fn a_rate_limit_parks_and_costs_no_attempt() {
    let script = Script::new().when("", [Reply::rate_limited(None).times(2), Reply::text("Done.")]);
    let mut stage = Stage::set(script).await;
    let message = stage.operator.send("ada", "in the rush hour").await;
    stage.start();
    for _ in 0..2 {
        let turn = stage.turn().await;
        assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::RateLimited, 1), "{turn:?}");
        assert!(turn.error.contains("429"), "{turn:?}");
    }
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Ok, 1), "{turn:?}");
    let again = stage.requests_of(message).pop().expect("a request").prompt;
    assert!(again.contains("the last turn hit the model's rate limit"), "{again}");
    delivered(&stage, message, "in the rush hour").await;
    assert!(stage.operator.deliveries("operator", &[]).await.is_empty(), "a limit is no news");
    stage.end().await;
}

#[tokio::test]
async fn a_limit_that_says_when_it_ends_is_waited_out() {
    // The host's clock, as everybody here reads it; a file's time tells it without asking for it.
    let now = tempfile::tempfile().and_then(|file| file.metadata()).expect("a file");
    let resets_at = std::os::unix::fs::MetadataExt::mtime(&now) + 4;
    let limit = Reply::usage_limit(resets_at);
    let mut stage = Stage::set(Script::new().when("", [limit.times(1), Reply::text("Done.")])).await;
    // A subscription's limit is told to who comes with a login, not with a key.
    stage.options.claude_env.remove("ANTHROPIC_API_KEY");
    stage.options.claude_env.insert("CLAUDE_CODE_OAUTH_TOKEN".to_owned(), "dummy-token".to_owned());
    let message = stage.operator.send("ada", "at the end of the week").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!(turn.outcome(), TurnOutcome::RateLimited, "{turn:?}");
    let park = stage.operator.get_agent("ada").await.park;
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Ok, 1), "{turn:?}");
    let requests = stage.requests_of(message);
    assert_eq!(requests.len(), 2, "no call was made in vain");
    let began = turn.start_time.expect("a time").seconds;
    assert!(began >= resets_at, "{began} is before {resets_at}");
    // Where the machine was slow, the limit had ended before anybody could look.
    if let Some(park) = park {
        let until = park.until_time.expect("it is known").seconds;
        assert!((resets_at..resets_at + 60).contains(&until), "the reset and a jitter: {until}, {resets_at}");
        assert_eq!(park.cause(), TurnOutcome::RateLimited);
    }
    delivered(&stage, message, "at the end of the week").await;
    stage.end().await;
}

#[tokio::test]
async fn a_missing_login_is_tried_twice_told_once_and_waited_for() {
    let script = Script::new().when("", [Reply::unauthorized().times(2), Reply::text("Done.")]);
    let mut stage = Stage::set(script).await;
    let message = stage.operator.send("ada", "who are you").await;
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
    let agent = stage.operator.get_agent("ada").await;
    assert_eq!(agent.state(), HarnessState::NeedsLogin);
    assert_eq!(agent.park.map(|park| park.cause()), Some(TurnOutcome::AuthFailed));

    // More mail changes nothing: nobody asks the API without a login.
    stage.operator.send("ada", "are you there").await;
    assert_eq!(stage.api.recorded().len(), 2);
    // What a login does.
    let home = stage.rig.path("agents/ada/home/.claude");
    std::fs::write(home.join(".credentials.json"), "{}").expect("claude has made the directory");
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt, turn.message_id), (TurnOutcome::Ok, 1, message), "{turn:?}");
    delivered(&stage, message, "who are you").await;
    assert_eq!(stage.turn().await.outcome(), TurnOutcome::Ok, "the other one");
    stage.end().await;
}

#[tokio::test]
async fn a_conversation_that_outgrew_its_window_uses_no_attempt_and_is_not_compacted_behind_our_back() {
    let script = Script::new().when("", [Reply::too_long().times(1), Reply::text("Done.")]);
    let mut stage = Stage::set(script).await;
    let message = stage.operator.send("ada", "one too many").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Unavailable, 1), "{turn:?}");
    assert!(turn.error.contains("Prompt is too long") && turn.error.contains("outgrown"), "{turn:?}");
    // With auto-compaction on, the CLI would have asked for a summary and gone on by itself.
    assert_eq!(stage.requests_of(message).len(), 1);
    assert!(!stage.lines(&turn).await.iter().any(|line| line["subtype"] == "compact_boundary"));
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Ok, 1), "{turn:?}");
    delivered(&stage, message, "one too many").await;
    assert_eq!(stage.operator.delivery("ada", message).await.redelivery_cause(), RedeliveryCause::Unavailable);
    let told = stage.operator.deliveries("operator", &[]).await.pop().and_then(|delivery| delivery.message).expect("a notice");
    assert!(told.system_kind() == SystemKind::Unavailable && told.body.contains("a new session"), "{told:?}");
    stage.end().await;
}
