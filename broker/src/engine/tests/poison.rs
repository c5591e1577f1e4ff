//! Attempts: a message that breaks its turns is a dead letter after five, alone from the third on,
//! and the queue moves on.

use hive_core::delivery::RedeliveryCause;

use super::*;

/// Long enough for every backoff and park.
const LONG: u64 = 3600;

/// Runs the mail that is served next until it has failed this often.
async fn fail(hive: &Hive, harness: &Harness, times: u32) -> Run {
    let mut last = None;
    for _ in 0..times {
        hive.pass(LONG);
        let run = hive.begin(harness).await;
        let end = Ended { output_tail: "its last words".to_owned(), ..ended(Outcome::Failed) };
        hive.try_end(&run, end).await.expect("it ends");
        last = Some(run);
    }
    hive.pass(LONG);
    last.expect("at least one turn")
}

#[tokio::test]
async fn after_five_failures_it_is_a_dead_letter_and_the_queue_moves_on_at_once() {
    let hive = Hive::new(&["boss"]).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    let poison = hive.send("operator", "kid", "poison").await;
    let harness = hive.attach("kid").await;
    fail(&hive, &harness, 4).await;
    assert_eq!(hive.state("kid", poison).await, (State::Ready, 4));
    let good = hive.send("operator", "kid", "good").await;
    let run = hive.begin(&harness).await;
    assert_eq!((run.message(), run.begun().delivery().attempt), (poison, 5));
    let end = Ended { output_tail: "its last words".to_owned(), ..ended(Outcome::Failed) };
    let answer = hive.try_end(&run, end).await.expect("it ends");
    assert_eq!((answer.settled.dead, answer.settled.returned), (1, 0));
    assert!(answer.park.is_none(), "the trouble has gone with the message");
    // No time passes: the next one is served at once.
    let run = hive.begin(&harness).await;
    assert_eq!((run.message(), run.begun().delivery().attempt), (good, 1));

    let (dead, _) = hive.engine().list_dead_letters(String::new(), None, 10).await.expect("listed");
    assert_eq!(dead.len(), 1);
    assert_eq!(
        (dead[0].message.id, dead[0].state, dead[0].agent.as_str()),
        (poison, State::Dead, "kid")
    );
    assert_eq!(
        (dead[0].last_error.as_str(), dead[0].output_tail.as_str()),
        ("it was Failed", "its last words")
    );
    assert_eq!(hive.count_events(EventKind::DeliveryDead).await, 1);
    let notices = hive.notices("boss").await;
    let about_death: Vec<_> = notices
        .iter()
        .filter(|notice| notice.message.system_kind == Some(SystemKind::DeadLetter))
        .collect();
    assert_eq!(about_death.len(), 1);
    assert_eq!(about_death[0].message.in_reply_to, Some(poison));
}

#[tokio::test]
async fn the_parent_of_a_root_hears_of_its_dead_letters_in_the_operators_inbox() {
    let hive = Hive::new(&["root"]).await;
    hive.send("operator", "root", "poison").await;
    let harness = hive.attach("root").await;
    fail(&hive, &harness, 5).await;
    let kinds: Vec<_> = hive
        .notices("operator")
        .await
        .iter()
        .filter_map(|notice| notice.message.system_kind)
        .collect();
    assert_eq!(kinds.iter().filter(|kind| **kind == SystemKind::DeadLetter).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == SystemKind::TurnFailed).count(), 5);
}

#[tokio::test]
async fn backoff_grows_with_each_failure() {
    let hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    let harness = hive.attach("bob").await;
    for seconds in [5, 10, 20, 40] {
        hive.turn(&harness, Outcome::Failed).await;
        let (now, due) =
            (hive.now().wall, hive.delivery("bob", poison).await.not_before.expect("a backoff"));
        assert_eq!(due.since(now).as_secs(), seconds);
        hive.pass(LONG);
    }
}

#[tokio::test]
async fn from_the_third_attempt_on_it_is_served_alone() {
    let hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    let neighbour = hive.send("operator", "bob", "neighbour").await;
    let harness = hive.attach("bob").await;
    // At the second attempt it may still share its turn.
    fail(&hive, &harness, 1).await;
    let run = hive.begin(&harness).await;
    assert_eq!(run.message(), poison);
    assert_eq!(bodies(&hive.recv(&run, "tool-1", 5).await.deliveries), ["neighbour"]);
    hive.end(&run, Outcome::Failed).await;
    assert_eq!(hive.state("bob", neighbour).await, (State::Ready, 1));
    hive.pass(LONG);
    // At the third, what is asked for in its turn is refused, and the answer says why there is
    // nothing.
    let run = hive.begin(&harness).await;
    assert_eq!((run.message(), run.begun().delivery().attempt), (poison, 3));
    let received = hive.recv(&run, "tool-1", 5).await;
    assert_eq!((received.deliveries.len(), received.pending, received.alone), (0, 1, true));
    hive.end(&run, Outcome::Failed).await;
    assert_eq!(
        hive.state("bob", neighbour).await,
        (State::Ready, 1),
        "its neighbour's attempts are its own"
    );
}

#[tokio::test]
async fn a_turn_stays_alone_though_its_message_is_dropped_under_it() {
    let hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    let neighbour = hive.send("operator", "bob", "neighbour").await;
    let harness = hive.attach("bob").await;
    fail(&hive, &harness, 2).await;
    let run = hive.begin(&harness).await;
    assert_eq!((run.message(), run.begun().delivery().attempt), (poison, 3));
    hive.decide("bob", poison, Decision::Drop).await.expect("dropped");
    // The model has read the poison; what it does to this turn is no fault of the neighbour.
    let received = hive.recv(&run, "tool-1", 5).await;
    assert_eq!((received.deliveries.len(), received.pending, received.alone), (0, 1, true));
    hive.end(&run, Outcome::Failed).await;
    assert_eq!(hive.state("bob", neighbour).await, (State::Ready, 0));
    hive.pass(LONG);
    let run = hive.begin(&harness).await;
    assert_eq!(run.message(), neighbour);
}

#[tokio::test]
async fn other_turns_leave_out_deliveries_that_are_served_alone() {
    let hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    let harness = hive.attach("bob").await;
    fail(&hive, &harness, 2).await;
    hive.send("operator", "bob", "harmless").await;
    let run = hive.open(&harness, Kind::Continue).await.expect("it opens");
    let received = hive.recv(&run, "tool-1", 5).await;
    assert_eq!(
        (bodies(&received.deliveries), received.pending, received.alone),
        (vec!["harmless"], 1, false)
    );
    hive.end(&run, Outcome::Failed).await;
    assert_eq!(hive.state("bob", poison).await, (State::Ready, 2));
}

#[tokio::test]
async fn a_redriven_dead_letter_starts_afresh() {
    let hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    let harness = hive.attach("bob").await;
    fail(&hive, &harness, 5).await;
    let waiting = hive.begin_waits(&harness).await;
    hive.decide("bob", poison, Decision::Redrive).await.expect("redriven");
    let begun = done(waiting).await.expect("a turn");
    assert_eq!((begun.delivery().message.id, begun.delivery().attempt), (poison, 1));
    assert_eq!(begun.delivery().cause, Some(RedeliveryCause::Redriven));
}

#[tokio::test]
async fn attempts_and_dead_letters_survive_a_restart_of_the_broker() {
    let mut hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    let harness = hive.attach("bob").await;
    for attempt in 1..=4 {
        fail(&hive, &harness, 1).await;
        hive.crash().await;
        assert_eq!(hive.state("bob", poison).await, (State::Ready, attempt));
    }
    fail(&hive, &harness, 1).await;
    hive.crash().await;
    assert_eq!(hive.state("bob", poison).await, (State::Dead, 5));
}

#[tokio::test]
async fn failures_over_notices_of_failures_are_reported_by_their_dead_letters_alone() {
    let hive = Hive::new(&["boss"]).await;
    hive.create("lead", Some("boss"), Policy::default()).await;
    hive.create("kid", Some("lead"), Policy::default()).await;
    hive.send("operator", "kid", "poison").await;
    let (kid, lead) = (hive.attach("kid").await, hive.attach("lead").await);
    for _ in 0..5 {
        hive.turn(&kid, Outcome::Failed).await;
        hive.pass(LONG);
    }
    assert_eq!(hive.notices("lead").await.len(), 6, "five failures and a dead letter");
    for _ in 0..30 {
        hive.turn(&lead, Outcome::Failed).await;
        hive.pass(LONG);
    }
    assert_eq!(hive.notices("boss").await.len(), 6, "a dead letter for each notice");
}

#[tokio::test]
async fn a_vanished_harness_uses_attempts_too() {
    let hive = Hive::new(&["bob"]).await;
    let poison = hive.send("operator", "bob", "poison").await;
    for attempt in 1..=5 {
        let harness = hive.attach("bob").await;
        let run = hive.begin(&harness).await;
        assert_eq!((run.message(), run.begun().delivery().attempt), (poison, attempt));
        drop(harness);
        hive.pass_and_sweep(LONG).await;
        hive.pass(LONG);
    }
    let delivery = hive.delivery("bob", poison).await;
    let dead = (State::Dead, 5, Some(RedeliveryCause::HarnessVanished));
    assert_eq!((delivery.state, delivery.attempt, delivery.cause), dead);
}
