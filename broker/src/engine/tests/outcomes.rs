//! The outcome table: what the end of a turn does to the mail it carried, in one transaction, once.

use hive_core::delivery::RedeliveryCause;

use super::*;
use crate::engine::turn::end::Settled;

/// A turn that carries the mail that woke it, one piece whose tool result will reach the model, and
/// one whose result will not.
async fn three_carried(hive: &Hive) -> (Harness, Run) {
    for body in ["woke", "returned", "lost"] {
        hive.send("alice", "bob", body).await;
    }
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    assert_eq!(hive.recv(&run, "tool-returned", 1).await.deliveries.len(), 1);
    assert_eq!(hive.recv(&run, "tool-lost", 1).await.deliveries.len(), 1);
    (harness, run)
}

fn ending(outcome: Outcome) -> Ended {
    Ended { returned_tool_uses: ["tool-returned".to_owned()].into(), ..ended(outcome) }
}

/// State, attempt and cause of each of bob's deliveries.
async fn stand(hive: &Hive) -> Vec<(State, u32, Option<RedeliveryCause>)> {
    let inbox = hive.inbox("bob").await;
    inbox.into_iter().map(|delivery| (delivery.state, delivery.attempt, delivery.cause)).collect()
}

#[tokio::test]
async fn a_good_end_acks_the_presented_mail_and_requeues_the_rest() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (_harness, run) = three_carried(&hive).await;
    let answer = hive.try_end(&run, ending(Outcome::Ok)).await.expect("it ends");
    assert_eq!(answer.settled, Settled { acked: 2, returned: 1, dead: 0, held: 0 });
    let acked = (State::Acked, 1, None);
    assert_eq!(
        stand(&hive).await,
        [acked, acked, (State::Ready, 1, Some(RedeliveryCause::NotReceived))]
    );
    assert_eq!(answer.pending, 1);
}

#[tokio::test]
async fn mail_taken_without_a_tool_call_is_never_taken_as_seen() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "woke").await;
    let other = hive.send("alice", "bob", "taken").await;
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    receive(hive.engine(), run.actor(), hive.request("ReceiveMessages"), up_to(1))
        .await
        .expect("taken");
    let end = Ended {
        returned_tool_uses: ["tool-returned".to_owned(), String::new()].into(),
        ..ended(Outcome::Ok)
    };
    hive.try_end(&run, end).await.expect("it ends");
    assert_eq!(hive.state("bob", other).await, (State::Ready, 1));
}

#[tokio::test]
async fn a_failed_turn_uses_an_attempt_of_each_delivery_and_notifies_the_parent() {
    let hive = Hive::new(&["alice"]).await;
    hive.create("bob", Some("alice"), Policy::default()).await;
    let (_harness, run) = three_carried(&hive).await;
    let end = Ended { output_tail: "last words".to_owned(), ..ending(Outcome::Failed) };
    let answer = hive.try_end(&run, end).await.expect("it ends");
    assert_eq!(answer.settled, Settled { returned: 3, ..Settled::default() });
    assert_eq!(stand(&hive).await, [(State::Ready, 1, Some(RedeliveryCause::TurnFailed)); 3]);
    for delivery in hive.inbox("bob").await {
        assert_eq!(
            (delivery.last_error.as_str(), delivery.output_tail.as_str()),
            ("it was Failed", "last words")
        );
        assert!(delivery.not_before.is_some(), "it comes back with backoff");
    }
    let notices = hive.notices("alice").await;
    assert_eq!(notices.len(), 1);
    assert_eq!(notices[0].message.system_kind, Some(SystemKind::TurnFailed));
    assert!(notices[0].message.body.contains("last words"));
    assert!(hive.notices("operator").await.is_empty());
}

#[tokio::test]
async fn weather_uses_no_attempt_however_often_it_blows() {
    let causes = [
        (Outcome::RateLimited, RedeliveryCause::RateLimited),
        (Outcome::AuthFailed, RedeliveryCause::AuthFailed),
        (Outcome::Unavailable, RedeliveryCause::Unavailable),
        (Outcome::Drained, RedeliveryCause::Drained),
    ];
    for (outcome, cause) in causes {
        let hive = Hive::new(&["alice", "bob"]).await;
        let (harness, mut run) = three_carried(&hive).await;
        for round in 0..10 {
            let answer = hive.try_end(&run, ending(outcome)).await.expect("it ends");
            let carried = if round == 0 { 3 } else { 1 };
            assert_eq!(
                answer.settled,
                Settled { returned: carried, ..Settled::default() },
                "{outcome:?}"
            );
            hive.pass(3600);
            if outcome == Outcome::AuthFailed {
                let idle = HarnessState::Idle;
                hive.report(&harness, idle).await.expect("logged in");
            }
            run = hive.begin(&harness).await;
        }
        let stand = stand(&hive).await;
        assert_eq!(stand[1..], [(State::Ready, 1, Some(cause)); 2], "{outcome:?}");
        assert_eq!((stand[0].0, stand[0].1), (State::Leased, 1), "{outcome:?}");
        assert_eq!(hive.count_events(EventKind::DeliveryDead).await, 0);
    }
}

#[tokio::test]
async fn a_cancelled_turn_holds_its_mail_until_the_operator_decides() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (harness, run) = three_carried(&hive).await;
    let answer = hive.try_end(&run, ending(Outcome::Cancelled)).await.expect("it ends");
    assert_eq!(answer.settled, Settled { held: 3, ..Settled::default() });
    assert!(answer.park.is_none());
    let waiting = hive.begin_waits(&harness).await;
    let held = hive.inbox("bob").await;
    hive.decide("bob", held[1].message.id, Decision::Release).await.expect("released");
    let begun = done(waiting).await.expect("a turn");
    assert_eq!((begun.delivery().message.id, begun.delivery().attempt), (held[1].message.id, 1));
    assert_eq!(begun.delivery().cause, Some(RedeliveryCause::Released));
    hive.decide("bob", held[0].message.id, Decision::Drop).await.expect("dropped");
    hive.decide("bob", held[2].message.id, Decision::Ack).await.expect("acked");
    let states: Vec<State> =
        hive.inbox("bob").await.iter().map(|delivery| delivery.state).collect();
    assert_eq!(states, [State::Dropped, State::Leased, State::Acked]);
}

#[tokio::test]
async fn only_the_broker_says_vanished_or_fenced() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (_harness, run) = three_carried(&hive).await;
    for outcome in [Outcome::Vanished, Outcome::Fenced] {
        assert_eq!(reason(hive.try_end(&run, ending(outcome)).await), Reason::FieldInvalid);
    }
    hive.end(&run, Outcome::Drained).await;
}

#[tokio::test]
async fn an_end_said_twice_is_one_end() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let (_harness, run) = three_carried(&hive).await;
    let key = request("EndTurn", "e1", 1);
    let end = async |hive: &Hive| {
        end_turn(hive.engine(), &run, key.clone(), ending(Outcome::Ok)).await.expect("it ends")
    };
    let first = end(&hive).await;
    let events = hive.events().await.len();
    let again = end(&hive).await;
    assert_eq!(first.settled, again.settled);
    // With another request id, and even with another outcome, it has ended as it has ended.
    let other = hive.try_end(&run, ending(Outcome::Failed)).await.expect("answered as then");
    assert_eq!(first.settled, other.settled);
    assert_eq!(hive.events().await.len(), events);
    hive.crash().await;
    let again = end(&hive).await;
    assert_eq!(first.settled, again.settled);
    assert_eq!(hive.events().await.len(), events);
}

#[tokio::test]
async fn an_end_settles_everything_in_one_commit() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (_harness, run) = three_carried(&hive).await;
    let commits = hive.commits();
    hive.end(&run, Outcome::Ok).await;
    assert_eq!(hive.commits() - commits, 1);
}

#[tokio::test]
async fn a_delivery_settled_by_the_operator_in_mid_turn_is_not_settled_again() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (_harness, run) = three_carried(&hive).await;
    hive.decide("bob", run.message(), Decision::Drop).await.expect("dropped");
    let answer = hive.try_end(&run, ending(Outcome::Ok)).await.expect("it ends");
    assert_eq!(answer.settled, Settled { acked: 1, returned: 1, ..Settled::default() });
    assert_eq!(hive.state("bob", run.message()).await.0, State::Dropped);
}

#[tokio::test]
async fn a_redelivery_shows_its_attempt_and_its_cause() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (harness, run) = three_carried(&hive).await;
    hive.try_end(&run, ending(Outcome::Failed)).await.expect("it ends");
    hive.pass(10);
    let run = hive.begin(&harness).await;
    assert_eq!(
        (run.begun().delivery().attempt, run.begun().delivery().cause),
        (2, Some(RedeliveryCause::TurnFailed))
    );
    assert_eq!(run.begun().turn.attempt, 2);
    let taken = hive.recv(&run, "tool-1", 2).await.deliveries;
    assert_eq!(ids(&taken).len(), 2);
    assert!(taken.iter().all(|leased| leased.delivery.attempt == 2
        && leased.delivery.cause == Some(RedeliveryCause::TurnFailed)));
    assert!(
        taken.iter().all(|leased| leased.token.is_none()),
        "the turn settles them, not a token"
    );
}
