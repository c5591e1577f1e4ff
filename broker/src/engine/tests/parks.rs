//! Parks: an agent whose turns cannot run makes no model call until the limit ends, the operator
//! logs in, or a backoff is over.

use super::*;
use crate::engine::error::AgentError;

/// Returns the remaining time of the agent's park; `None` if it is not parked.
async fn parked(hive: &Hive) -> Option<Duration> {
    let now = hive.now().wall;
    let park = hive.agent("bob").await.park?;
    Some(park.until.map_or(Duration::MAX, |until| until.since(now)))
}

async fn rate_limited(hive: &Hive, harness: &Harness, until: Option<WallTime>) {
    let run = hive.begin(harness).await;
    let answer = hive
        .try_end(&run, Ended { retry_time: until, ..ended(Outcome::RateLimited) })
        .await
        .expect("it ends");
    assert_eq!(answer.park.is_some(), parked(hive).await.is_some());
}

#[tokio::test]
async fn a_rate_limited_agent_starts_no_turn_before_the_limit_ends() {
    let (hive, harness) = waiting_hive().await;
    let until = hive.now().wall.after(Duration::from_secs(1800));
    rate_limited(&hive, &harness, Some(until)).await;
    assert_eq!(parked(&hive).await, Some(Duration::from_secs(1800)));
    assert_eq!(hive.agent("bob").await.state, HarnessState::RateLimited);
    let waiting = hive.begin_waits(&harness).await;
    hive.pass(1799);
    hive.hint("bob").await;
    hive.send("operator", "bob", "more mail does not end it").await;
    hive.still_waits(&waiting).await;
    hive.pass(1);
    hive.hint("bob").await;
    done(waiting).await.expect("a turn begins");
}

#[tokio::test]
async fn a_limit_without_an_end_parks_for_a_while() {
    let (hive, harness) = waiting_hive().await;
    rate_limited(&hive, &harness, None).await;
    assert_eq!(parked(&hive).await, Some(Duration::from_secs(300)));
    hive.pass(300);
    hive.turn(&harness, Outcome::Ok).await;
}

#[tokio::test]
async fn a_limit_whose_end_was_wrong_does_not_loop() {
    let (hive, harness) = waiting_hive().await;
    let past = hive.now().wall;
    // After the first rate-limited turn only the retry time of the model counts. After each further
    // one the park lasts at least the broker's backoff.
    let mut parks = Vec::new();
    for _ in 0..4 {
        rate_limited(&hive, &harness, Some(past)).await;
        let park = parked(&hive).await.unwrap_or_default();
        parks.push(park.as_secs());
        hive.clock.advance(park);
    }
    assert_eq!(parks, [0, 10, 20, 40]);
}

#[tokio::test]
async fn a_missing_login_parks_until_the_harness_reports_that_it_waits_for_mail() {
    let (hive, harness) = waiting_hive().await;
    hive.turn(&harness, Outcome::AuthFailed).await;
    assert_eq!(parked(&hive).await, Some(Duration::MAX));
    assert_eq!(hive.agent("bob").await.state, HarnessState::NeedsLogin);
    let waiting = hive.begin_waits(&harness).await;
    hive.pass(100 * 86_400);
    hive.hint("bob").await;
    hive.still_waits(&waiting).await;
    let report = |state| hive.report(&harness, state);
    // None of these reports ends the park: a harness that is starting has not checked the login
    // yet, and a compaction that the operator ordered runs in spite of the park.
    for state in [
        HarnessState::NeedsLogin,
        HarnessState::Starting,
        HarnessState::Compacting,
        HarnessState::Thinking,
    ] {
        report(state).await.expect("noted");
        hive.still_waits(&waiting).await;
    }
    report(HarnessState::Idle).await.expect("noted");
    done(waiting).await.expect("a turn begins");
}

#[tokio::test]
async fn an_unavailable_model_parks_with_a_backoff_that_doubles() {
    let (hive, harness) = waiting_hive().await;
    let mut parks = Vec::new();
    for _ in 0..8 {
        hive.turn(&harness, Outcome::Unavailable).await;
        let park = parked(&hive).await.expect("parked");
        parks.push(park.as_secs());
        hive.clock.advance(park);
    }
    assert_eq!(parks, [10, 20, 40, 80, 160, 320, 600, 600]);
    hive.turn(&harness, Outcome::Ok).await;
    hive.send("operator", "bob", "again").await;
    hive.turn(&harness, Outcome::Unavailable).await;
    assert_eq!(parked(&hive).await, Some(Duration::from_secs(10)), "a good turn resets the count");
}

#[tokio::test]
async fn the_operator_is_notified_once_until_a_turn_succeeds() {
    let (hive, harness) = waiting_hive().await;
    let told = async || {
        let mut notices = hive.notices("operator").await;
        notices.retain(|notice| notice.message.system_kind == Some(SystemKind::Unavailable));
        notices.into_iter().map(|notice| notice.message.body).collect::<Vec<_>>()
    };
    for outcome in [Outcome::Unavailable, Outcome::Unavailable, Outcome::AuthFailed] {
        hive.turn(&harness, outcome).await;
        hive.pass(3600);
    }
    assert_eq!(told().await, ["bob cannot run turns now (unavailable):\n\n> it was Unavailable"]);
    let idle = HarnessState::Idle;
    hive.report(&harness, idle).await.expect("logged in");
    assert_eq!(told().await, ["bob works again."]);
    hive.turn(&harness, Outcome::Ok).await;
    hive.send("operator", "bob", "again").await;
    hive.turn(&harness, Outcome::Ok).await;
    assert_eq!(told().await, ["bob works again."], "once");
    hive.send("operator", "bob", "and again").await;
    hive.turn(&harness, Outcome::AuthFailed).await;
    let login = "bob cannot run turns now (auth failed):\n\n> it was AuthFailed\n\nLog in with `hivectl login bob`.";
    assert_eq!(told().await, [login], "only the newest is unread");
}

#[tokio::test]
async fn consecutive_failures_of_any_kind_back_off() {
    let (hive, harness) = waiting_hive().await;
    for body in ["two", "three", "four"] {
        hive.send("operator", "bob", body).await;
    }
    // Each message waits for its own backoff; the third consecutive failure also parks the agent.
    hive.turn(&harness, Outcome::Failed).await;
    assert_eq!(parked(&hive).await, None);
    hive.turn(&harness, Outcome::Failed).await;
    assert_eq!(parked(&hive).await, None);
    hive.turn(&harness, Outcome::Failed).await;
    assert_eq!(parked(&hive).await, Some(Duration::from_secs(10)));
    hive.pass(10);
    hive.turn(&harness, Outcome::Failed).await;
    assert_eq!(parked(&hive).await, Some(Duration::from_secs(20)));
}

#[tokio::test]
async fn cancels_and_drains_park_no_agent() {
    let (hive, harness) = waiting_hive().await;
    for _ in 0..5 {
        hive.turn(&harness, Outcome::Drained).await;
    }
    assert_eq!(parked(&hive).await, None);
    hive.turn(&harness, Outcome::Cancelled).await;
    assert_eq!(parked(&hive).await, None);
}

#[tokio::test]
async fn a_parked_agent_opens_no_turn_of_its_own_either() {
    let (hive, harness) = waiting_hive().await;
    hive.turn(&harness, Outcome::Unavailable).await;
    let refusal = hive.open(&harness, Kind::Continue).await.map(|_| ()).expect_err("parked");
    assert_eq!(
        (refusal.reason(), refusal.retry_after()),
        (Reason::AgentParked, Some(Duration::from_secs(10)))
    );
    hive.pass(10);
    let run = hive.open(&harness, Kind::Continue).await.expect("the park is over");
    hive.end(&run, Outcome::AuthFailed).await;
    let refusal = hive.open(&harness, Kind::Continue).await.map(|_| ()).expect_err("parked");
    assert!(
        matches!(refusal, Refusal::Agent(AgentError::Parked { retry_after: None, .. })),
        "nobody knows when somebody will log in"
    );
}

#[tokio::test]
async fn a_park_survives_a_restart_of_the_broker_and_of_the_harness() {
    for outcome in [Outcome::Unavailable, Outcome::AuthFailed] {
        let (mut hive, harness) = waiting_hive().await;
        hive.turn(&harness, outcome).await;
        let before = parked(&hive).await;
        hive.crash().await;
        assert_eq!(parked(&hive).await, before, "{outcome:?}");
        let harness = hive.attach("bob").await;
        let waiting = hive.begin_waits(&harness).await;
        stop(waiting).await;
    }
}

#[tokio::test]
async fn a_reboot_ends_backoffs_but_neither_limits_nor_missing_logins() {
    let (mut hive, harness) = waiting_hive().await;
    hive.turn(&harness, Outcome::Unavailable).await;
    hive.reboot().await;
    assert_eq!(parked(&hive).await, None);

    let (mut hive, harness) = waiting_hive().await;
    let until = hive.now().wall.after(Duration::from_secs(1800));
    rate_limited(&hive, &harness, Some(until)).await;
    hive.reboot().await;
    assert_eq!(
        parked(&hive).await,
        Some(Duration::from_secs(1710)),
        "the host was away for 90 seconds"
    );

    let (mut hive, harness) = waiting_hive().await;
    hive.turn(&harness, Outcome::AuthFailed).await;
    hive.reboot().await;
    assert_eq!(parked(&hive).await, Some(Duration::MAX));
}

#[tokio::test]
async fn a_reboot_in_a_limit_without_an_end_neither_loops_nor_parks_for_ever() {
    let (mut hive, harness) = waiting_hive().await;
    rate_limited(&hive, &harness, None).await;
    hive.reboot().await;
    assert_eq!(parked(&hive).await, None);
    let harness = hive.attach("bob").await;
    hive.turn(&harness, Outcome::Ok).await;
}
