//! An API that is overloaded, breaks off or is away: the CLI copes, or the turn uses no attempt and
//! is retried after growing delays.

use hive_proto::v1::TurnOutcome;
use hive_tests::api::{Reply, Script};
use hive_tests::rig::{Mode, Rig};

use crate::stage::Stage;

both!(
    an_overloaded_api_is_asked_ever_less_often,
    a_broken_stream_is_retried,
    an_api_that_is_away_costs_no_attempt
);

async fn an_overloaded_api_is_asked_ever_less_often(mode: Mode) {
    let script = Script::new()
        .when("", [Reply::overloaded().times(2), Reply::fault().times(1), Reply::text("Done.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    slower(&mut stage.rig).await;
    let message = stage.send("in the storm").await;
    stage.start();
    for error in ["529", "529", "500"] {
        let turn = stage.turn().await;
        assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Unavailable, 1), "{turn:?}");
        assert!(turn.error.contains(error), "{turn:?}");
    }
    assert_eq!(stage.ok().await.attempt, 1);
    let requests = stage.requests_of(message);
    assert_eq!(requests.len(), 4, "one request a turn, whatever the CLI thinks of it");
    // Each rest is twice the one before. What else a turn takes only adds to it.
    for (pair, rest_ms) in requests.windows(2).zip([400, 800, 1600]) {
        let rest = pair[1].time.duration_since(pair[0].time).as_millis();
        assert!(rest >= rest_ms, "it came again after {rest} ms, not after {rest_ms}");
    }
    stage.end().await;
}

/// Restarts the broker with rests long enough to be distinguished.
async fn slower(rig: &mut Rig) {
    rig.stop_broker().await;
    rig.configure(
        "[agents.ada]\n[agents.bob]\nparent = \"ada\"\n[broker.limits]\nretry_backoff_base_ms = 20\nretry_backoff_max_ms = 40\n\
         park_backoff_base_ms = 400\npark_backoff_max_ms = 10000\n",
    );
    rig.start_broker().await;
}

async fn a_broken_stream_is_retried(mode: Mode) {
    let script = Script::new()
        .when("| cut off", [Reply::cut().times(1), Reply::text("Done.")])
        .when("| an error", [Reply::stream_error().times(1), Reply::text("Done.")])
        .when("| no answer", [Reply::reset().times(2), Reply::text("Done.")]);
    let mut stage = Stage::in_mode(mode, script).await;
    // The CLI asks once more by itself; what breaks off twice is the turn's end.
    stage.set_env("HIVE_CLAUDE_MAX_RETRIES", "1");
    let mut messages = Vec::new();
    for body in ["cut off in the middle", "an error in the middle", "no answer at all"] {
        messages.push(stage.send(body).await);
    }
    stage.start();
    let mut lives = Vec::new();
    for _ in 0..4 {
        let turn = stage.turn().await;
        assert!(turn.outcome() == TurnOutcome::Ok || turn.error.contains("ECONNRESET"), "{turn:?}");
        lives.push((turn.message_id, turn.attempt, turn.outcome()));
    }
    let [cut, error, none] = messages[..] else { panic!("{messages:?}") };
    let ok = |message: u64| (message, 1, TurnOutcome::Ok);
    assert_eq!(lives, [ok(cut), ok(error), (none, 1, TurnOutcome::Unavailable), ok(none)]);
    let asked: Vec<usize> =
        messages.iter().map(|message| stage.requests_of(*message).len()).collect();
    assert_eq!(asked, [2, 2, 3], "once more each, and the turn that came again");
    stage.end().await;
}

async fn an_api_that_is_away_costs_no_attempt(mode: Mode) {
    let mut stage = Stage::in_mode(mode, Script::new()).await;
    stage.api.kill();
    let message = stage.send("is anybody there").await;
    stage.start();
    let turn = stage.turn().await;
    assert_eq!((turn.outcome(), turn.attempt), (TurnOutcome::Unavailable, 1), "{turn:?}");
    assert!(turn.error.contains("ECONNREFUSED"), "{turn:?}");
    stage.api.run();
    let turn = loop {
        let turn = stage.turn().await;
        if turn.outcome() != TurnOutcome::Unavailable {
            break turn;
        }
    };
    assert_eq!(
        (turn.outcome(), turn.attempt, turn.message_id),
        (TurnOutcome::Ok, 1, message),
        "{turn:?}"
    );
    stage.end().await;
}
