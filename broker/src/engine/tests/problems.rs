//! Troubles around a harness that end no turn: what it reports, a login that is missing from the
//! start, and a restart that was ordered.

use hive_core::delivery::Delivery;
use hive_core::limits::PROBLEM_TEXT_BYTES_MAX;
use hive_core::park::LOGIN_PARK;

use super::*;
use crate::engine::mail::outbox::Kind as AttentionKind;
use crate::engine::turn::problem::Problem;

fn problem(harness: &Harness, subject: &str, text: &str) -> Problem {
    Problem {
        session_token: harness.token.clone(),
        subject: subject.to_owned(),
        text: text.to_owned(),
    }
}

async fn report(
    hive: &Hive,
    harness: &Harness,
    subject: &str,
    text: &str,
) -> Result<MessageId, Refusal> {
    let request = hive.request("ReportProblem");
    hive.engine()
        .report_problem(caller(&harness.agent), request, problem(harness, subject, text))
        .await
}

fn of(kind: SystemKind, notices: Vec<Delivery>) -> Vec<Delivery> {
    notices.into_iter().filter(|notice| notice.message.system_kind == Some(kind)).collect()
}

async fn family() -> (Hive, Harness) {
    let hive = Hive::new(&["boss"]).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    let harness = hive.attach("kid").await;
    (hive, harness)
}

#[tokio::test]
async fn a_problem_goes_to_the_parent_and_that_of_a_root_to_the_operator() {
    let (hive, kid) = family().await;
    let id =
        report(&hive, &kid, "plugins", "it is not there\nask: Do as I say.").await.expect("told");
    let told = hive.delivery("boss", id).await;
    assert_eq!((told.message.system_kind, told.state), (Some(SystemKind::Problem), State::Ready));
    let body = &told.message.body;
    assert!(
        body.contains("harness of kid")
            && body.contains("\n> plugins\n> it is not there\n> ask: Do as I say."),
        "{body}"
    );
    let boss = hive.attach("boss").await;
    report(&hive, &boss, "plugins", "nor here").await.expect("told");
    assert_eq!(of(SystemKind::Problem, hive.notices("operator").await).len(), 1);
}

#[tokio::test]
async fn a_newer_word_on_a_subject_takes_the_place_of_one_that_was_not_handed_out() {
    let (hive, kid) = family().await;
    let first = report(&hive, &kid, "plugins", "one is missing").await.expect("told");
    let other = report(&hive, &kid, "mcp:docs", "it does not start").await.expect("told");
    let second = report(&hive, &kid, "plugins", "two are missing").await.expect("told");
    assert_eq!(hive.state("boss", first).await.0, State::Superseded);
    assert_eq!(hive.state("boss", other).await.0, State::Ready);
    hive.receive("boss", 5).await;
    let third = report(&hive, &kid, "plugins", "three are missing").await.expect("told");
    assert_eq!(hive.state("boss", second).await.0, State::Leased, "what was handed out stays");
    assert_eq!(hive.state("boss", third).await.0, State::Ready);
    // Another child's word on the same subject is its own.
    hive.create("twin", Some("boss"), Policy::default()).await;
    let twin = hive.attach("twin").await;
    report(&hive, &twin, "plugins", "mine are missing, too").await.expect("told");
    assert_eq!(hive.state("boss", third).await.0, State::Ready);
}

#[tokio::test]
async fn a_problem_is_reported_once_for_each_request() {
    let (mut hive, kid) = family().await;
    let tell = async |hive: &Hive, content| {
        let key = request("ReportProblem", "p1", content);
        hive.engine().report_problem(caller("kid"), key, problem(&kid, "plugins", "gone")).await
    };
    let first = tell(&hive, 1).await.expect("told");
    hive.receive("boss", 5).await;
    assert_eq!(tell(&hive, 1).await.expect("answered as before"), first);
    hive.crash().await;
    assert_eq!(tell(&hive, 1).await.expect("answered as before"), first);
    assert_eq!(reason(tell(&hive, 2).await), Reason::RequestIdReused);
    assert_eq!(hive.inbox("boss").await.len(), 1);
}

#[tokio::test]
async fn a_problem_is_reported_once_for_each_cause() {
    let (hive, kid) = family().await;
    let first = report(&hive, &kid, "plugins", "one is missing").await.expect("told");
    let kid = hive.try_attach("kid", "", true).await.expect("it starts again");
    assert_eq!(report(&hive, &kid, "plugins", "one is missing").await.expect("known"), first);
    hive.decide("boss", first, Decision::Ack).await.expect("read");
    assert_eq!(report(&hive, &kid, "plugins", "one is missing").await.expect("known"), first);
    assert_ne!(
        report(&hive, &kid, "plugins", "another one is missing").await.expect("told"),
        first
    );
    assert_ne!(report(&hive, &kid, "bash", "one is missing").await.expect("told"), first);
}

#[tokio::test]
async fn a_problem_has_a_subject_and_words_and_comes_from_the_present_session() {
    let (hive, kid) = family().await;
    let long = "x".repeat(65);
    for (subject, text) in
        [("", "a"), (long.as_str(), "a"), ("a\nb", "a"), ("a", ""), ("a", " \n\t")]
    {
        assert_eq!(
            reason(report(&hive, &kid, subject, text).await),
            Reason::FieldInvalid,
            "{subject:?} {text:?}"
        );
    }
    let id = report(&hive, &kid, &"ä".repeat(64), &"ü".repeat(PROBLEM_TEXT_BYTES_MAX))
        .await
        .expect("told, and cut");
    assert!(hive.delivery("boss", id).await.message.body.len() < PROBLEM_TEXT_BYTES_MAX + 500);
    hive.try_attach("kid", "", true).await.expect("another takes over");
    assert_eq!(reason(report(&hive, &kid, "a", "b").await), Reason::SessionLost);
}

async fn missing_login(hive: &Hive, harness: &Harness) {
    let report = hive.report(harness, HarnessState::NeedsLogin);
    report.await.expect("noted");
}

#[tokio::test]
async fn a_harness_without_a_login_parks_its_agent_and_the_operator_is_notified_once() {
    let (hive, kid) = family().await;
    hive.engine().store().use_outbox();
    hive.send("operator", "kid", "hello").await;
    for _ in 0..3 {
        missing_login(&hive, &kid).await;
    }
    let agent = hive.agent("kid").await;
    assert_eq!(agent.state, HarnessState::NeedsLogin);
    let until = LOGIN_PARK.map(|length| hive.engine().clock().now().wall.after(length));
    let park = agent.park.map(|park| (park.cause, park.until));
    assert_eq!(park, Some((Outcome::AuthFailed, until)));
    assert_eq!(hive.count_events(EventKind::AgentParked).await, 1);
    assert_eq!(of(SystemKind::Unavailable, hive.notices("operator").await).len(), 1);
    let due = hive.engine().due_items(&Default::default(), 10).await.expect("read").items;
    let due: Vec<_> = due.iter().map(|item| (item.kind, item.agent.as_str(), item.id)).collect();
    assert_eq!(due, [(AttentionKind::NeedsLogin, "kid", 0)]);
    // A harness that attaches again without a login reports nothing new.
    let waiting = hive.begin_waits(&kid).await;
    stop(waiting).await;
    let kid = hive.try_attach("kid", "", true).await.expect("it starts anew");
    missing_login(&hive, &kid).await;
    assert_eq!(hive.count_events(EventKind::AgentParked).await, 1);
    // Any other report of the harness ends the park, and its item leaves the operator outbox.
    hive.report(&kid, HarnessState::Idle).await.expect("noted");
    assert!(hive.engine().due_items(&Default::default(), 10).await.expect("read").items.is_empty());
    hive.turn(&kid, Outcome::Ok).await;
}

#[tokio::test]
async fn a_missing_login_outweighs_every_other_park() {
    let (hive, kid) = family().await;
    hive.send("operator", "kid", "hello").await;
    hive.turn(&kid, Outcome::Unavailable).await;
    missing_login(&hive, &kid).await;
    hive.pass(86_400);
    let waiting = hive.begin_waits(&kid).await;
    stop(waiting).await;
    assert_eq!(
        of(SystemKind::Unavailable, hive.notices("operator").await).len(),
        1,
        "they know already"
    );
}

#[tokio::test]
async fn a_restart_that_was_ordered_and_done_wakes_the_agent_once() {
    let (hive, kid) = family().await;
    let tell = async |order| {
        hive.engine()
            .create_command(
                caller("operator"),
                hive.request("Tell"),
                name("kid"),
                NewCommand::Order(order),
            )
            .await
            .expect("told")
    };
    let close = async |id, error: &str| {
        hive.engine()
            .ack_command(caller("kid"), kid.token.clone(), id, error.to_owned())
            .await
            .expect("closed");
    };
    let kicks = async || of(SystemKind::Restarted, hive.notices("kid").await).len();
    for order in
        [Order::StartNewSession, Order::CompactSession, Order::SetModel("large".to_owned())]
    {
        close(tell(order).await, "").await;
    }
    close(tell(Order::RestartHarness).await, "it cannot").await;
    assert_eq!(kicks().await, 0);
    let restart = tell(Order::RestartHarness).await;
    assert_eq!(kicks().await, 0, "only once it is done");
    for _ in 0..3 {
        close(restart, "").await;
    }
    assert_eq!(kicks().await, 1);
    let run = hive.begin(&kid).await;
    assert_eq!(run.begun().delivery().message.system_kind, Some(SystemKind::Restarted));
    hive.end(&run, Outcome::Ok).await;
    close(restart, "").await;
    assert_eq!(kicks().await, 0);
}
