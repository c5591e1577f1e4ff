//! Settlements in bulk: one commit, a result for each, and repeats with the same result.

use std::sync::Arc;

use hive_core::delivery::RedeliveryCause;
use hive_core::limits::SETTLEMENTS_MAX;
use hive_core::settlement::{Action, Entry, Settled, Target};

use super::*;
use crate::engine::mail::settlements::Results;

/// bob has this much mail.
async fn hive_with(count: usize) -> Hive {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..count {
        hive.send("alice", "bob", &number.to_string()).await;
    }
    hive
}

fn token(leased: &Leased) -> String {
    leased.token.clone().expect("a consumer's lease")
}

fn nack(permanent: bool) -> Action {
    Action::Nack { error: "cannot".to_owned(), permanent }
}

async fn settle(hive: &Hive, entries: Vec<Entry>) -> Results {
    hive.engine().settle(actor("bob"), entries).await.expect("settled")
}

/// The results, with the reason of each refusal.
fn shown(results: Results) -> Vec<Result<Settled, Reason>> {
    results.into_iter().map(|result| result.map_err(|refusal| refusal.reason())).collect()
}

#[tokio::test]
async fn a_token_of_an_unknown_agent_is_refused_alone() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    let token = taken[0].token.clone().expect("a consumer's");
    let unknown = Entry::of_lease("999999.1.f", Action::Ack);
    let results = settle(&hive, vec![Entry::of_lease(token, Action::Ack), unknown]).await;
    assert_eq!(shown(results), [Ok(Settled::State(State::Acked)), Err(Reason::LeaseLost)]);
}

#[tokio::test]
async fn many_are_settled_in_one_commit_with_results_in_order() {
    let hive = hive_with(6).await;
    let taken = hive.receive("bob", 6).await;
    hive.pass(1);
    let entries = vec![
        Entry::of_lease(token(&taken[4]), Action::Release),
        Entry::of_lease(token(&taken[0]), Action::Ack),
        Entry::of_lease("no such token", Action::Ack),
        Entry::of_lease(token(&taken[1]), nack(false)),
        Entry::of_lease(token(&taken[2]), nack(true)),
        Entry::of_lease(token(&taken[3]), Action::Extend(Duration::from_secs(90))),
    ];
    hive.idle().await;
    let before = hive.commits();
    let results = settle(&hive, entries).await;
    assert_eq!(hive.commits(), before + 1, "it is one command");
    let expected = [
        Ok(Settled::State(State::Ready)),
        Ok(Settled::State(State::Acked)),
        Err(Reason::LeaseLost),
        Ok(Settled::State(State::Ready)),
        Ok(Settled::State(State::Dead)),
        Ok(Settled::Extended(Duration::from_secs(90))),
    ];
    assert_eq!(shown(results), expected);
    // The release used no attempt and has no backoff, the nack has both.
    let released = hive.delivery("bob", message(5)).await;
    let seen = (released.state, released.attempt, released.cause, released.not_before);
    assert_eq!(seen, (State::Ready, 1, Some(RedeliveryCause::NotReceived), None));
    let nacked = hive.delivery("bob", message(2)).await;
    assert_eq!(
        (nacked.cause, nacked.last_error.as_str()),
        (Some(RedeliveryCause::Nacked), "cannot")
    );
    assert!(nacked.not_before.is_some());
    hive.pass_and_sweep(80).await;
    assert_eq!(hive.state("bob", message(4)).await, (State::Leased, 1), "it was extended");
    assert_eq!(hive.state("bob", message(6)).await, (State::Ready, 1), "it expired");
}

#[tokio::test]
async fn a_repeat_has_the_same_results_until_the_delivery_is_leased_again() {
    let hive = hive_with(5).await;
    // The second has used all attempts but one.
    let mut limits_reached = Vec::new();
    for _ in 0..4 {
        let taken = hive.receive("bob", 1).await;
        hive.nack("bob", &taken[0], false).await.expect("nacked");
        hive.pass(3600);
        limits_reached = taken;
    }
    drop(limits_reached);
    let last = hive.receive("bob", 1).await;
    assert_eq!(last[0].delivery.attempt, 5);
    let taken = hive.receive("bob", 4).await;
    let actions = [
        (token(&last[0]), nack(false), State::Dead),
        (token(&taken[0]), Action::Ack, State::Acked),
        (token(&taken[1]), nack(false), State::Ready),
        (token(&taken[2]), nack(true), State::Dead),
        (token(&taken[3]), Action::Release, State::Ready),
    ];
    let all = || -> Vec<Entry> {
        let of = |(token, action, _): &(String, Action, State)| {
            Entry::of_lease(token.clone(), action.clone())
        };
        actions.iter().map(of).collect()
    };
    let expected: Vec<_> = actions.iter().map(|(_, _, state)| Ok(Settled::State(*state))).collect();
    assert_eq!(shown(settle(&hive, all()).await), expected);
    let events = hive.events().await;
    assert_eq!(shown(settle(&hive, all()).await), expected);
    // Every other settlement of a lease that has ended is refused.
    for (token, action, _) in &actions {
        for other in [Action::Ack, nack(false), nack(true), Action::Release] {
            let is_equal = match (&other, action) {
                (Action::Nack { permanent: one, .. }, Action::Nack { permanent: two, .. }) => {
                    one == two
                }
                (one, two) => std::mem::discriminant(one) == std::mem::discriminant(two),
            };
            let answer = hive.settle("bob", token.clone(), other).await;
            assert_eq!(answer.is_ok(), is_equal, "{answer:?}");
        }
        let extend = Action::Extend(Duration::from_secs(60));
        assert_eq!(reason(hive.settle("bob", token.clone(), extend).await), Reason::LeaseLost);
    }
    assert_eq!(hive.events().await, events);
    // What came back is leased again.
    hive.pass(3600);
    assert_eq!(hive.receive("bob", 5).await.len(), 2);
    let again = shown(settle(&hive, all()).await);
    let is_lost: Vec<bool> = again.iter().map(|one| *one == Err(Reason::LeaseLost)).collect();
    assert_eq!(is_lost, [false, false, true, false, true]);
}

#[tokio::test]
async fn a_repeat_after_a_restart_has_the_same_results() {
    let mut hive = hive_with(2).await;
    let taken = hive.receive("bob", 2).await;
    let entries = || {
        vec![
            Entry::of_lease(token(&taken[0]), Action::Ack),
            Entry::of_lease(token(&taken[1]), Action::Release),
        ]
    };
    let first = shown(settle(&hive, entries()).await);
    hive.crash().await;
    assert_eq!(shown(settle(&hive, entries()).await), first);
    hive.reboot().await;
    assert_eq!(shown(settle(&hive, entries()).await), first);
}

#[tokio::test]
async fn one_delivery_is_settled_once_in_one_list() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    let entries = [Action::Ack, Action::Ack, nack(false)];
    let entries = entries.map(|action| Entry::of_lease(token(&taken[0]), action)).into();
    let acked = || Ok(Settled::State(State::Acked));
    let results = shown(settle(&hive, entries).await);
    assert_eq!(results, [acked(), acked(), Err(Reason::LeaseLost)]);
}

#[tokio::test]
async fn a_settlement_after_the_operators_decision_is_refused() {
    let hive = hive_with(2).await;
    let taken = hive.receive("bob", 2).await;
    hive.decide("bob", message(1), Decision::Ack).await.expect("acked");
    hive.decide("bob", message(2), Decision::Drop).await.expect("dropped");
    for leased in &taken {
        for action in [Action::Ack, nack(true), Action::Release] {
            let answer = hive.settle("bob", token(leased), action).await;
            assert_eq!(reason(answer), Reason::LeaseLost);
        }
    }
}

#[tokio::test]
async fn the_operator_acks_by_key_and_a_repeat_finds_it_done() {
    let hive = hive_with(2).await;
    let by_key =
        |number, action| Entry { target: Target::Key("bob".to_owned(), message(number)), action };
    let operator = || actor("operator");
    for _ in 0..2 {
        let entries = vec![by_key(1, Action::Ack), by_key(9, Action::Ack)];
        let results = hive.engine().settle(operator(), entries).await.expect("settled");
        let done = Ok(Settled::State(State::Acked));
        assert_eq!(shown(results), [done, Err(Reason::DeliveryNotFound)]);
    }
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 0));
    hive.decide("bob", message(2), Decision::Drop).await.expect("dropped");
    let dropped = hive.engine().settle_one(operator(), by_key(2, Action::Ack)).await;
    assert_eq!(reason(dropped), Reason::WrongState);
    // A key takes nothing but an ack, and an agent names no delivery by its key.
    for action in [Action::Release, nack(false), Action::Extend(Duration::from_secs(1))] {
        let refused = hive.engine().settle_one(operator(), by_key(2, action)).await;
        assert_eq!(reason(refused), Reason::FieldInvalid);
    }
    let own = hive.engine().settle_one(actor("bob"), by_key(2, Action::Ack)).await;
    assert_eq!(reason(own), Reason::NotYours);
}

#[tokio::test]
async fn an_invalid_list_settles_nothing() {
    let hive = hive_with(2).await;
    let taken = hive.receive("bob", 2).await;
    let good = || Entry::of_lease(token(&taken[0]), Action::Ack);
    let long = Action::Nack { error: "x".repeat(4097), permanent: false };
    let long = vec![good(), Entry::of_lease(token(&taken[1]), long)];
    let many = std::iter::repeat_with(good).take(SETTLEMENTS_MAX + 1).collect();
    for entries in [long, many] {
        let refused = hive.engine().settle(actor("bob"), entries).await;
        assert_eq!(reason(refused), Reason::FieldInvalid);
    }
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    let most = std::iter::repeat_with(good).take(SETTLEMENTS_MAX).collect();
    assert!(settle(&hive, most).await.iter().all(Result::is_ok));
}

#[tokio::test]
async fn a_receive_settles_and_leases_in_one_commit() {
    let hive = hive_with(4).await;
    let taken = hive.receive("bob", 2).await;
    hive.idle().await;
    let before = hive.commits();
    let entries = vec![
        Entry::of_lease(token(&taken[0]), Action::Ack),
        Entry::of_lease(token(&taken[1]), Action::Release),
        Entry::of_lease("no such token", Action::Ack),
    ];
    let request = hive.request("ReceiveMessages");
    let received =
        hive.engine().settle_and_receive(actor("bob"), request, entries, |_| {}, up_to(8)).await;
    let (received, results, handover) = received.expect("received");
    handover.taken();
    assert_eq!(hive.commits(), before + 1, "it is one command");
    // What was released in it is leased again.
    assert_eq!(bodies(&received.deliveries), ["1", "2", "3"]);
    let states = [State::Acked, State::Ready].map(|state| Ok(Settled::State(state)));
    assert_eq!(shown(results), [&states[..], &[Err(Reason::LeaseLost)]].concat());
}

#[tokio::test]
async fn settlements_of_a_receive_stand_however_its_wait_ends() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    let entries = vec![Entry::of_lease(token(&taken[0]), Action::Ack)];
    let (engine, request) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    let wait = Receive { wait: Duration::from_secs(180), ..up_to(1) };
    let waiting = hive
        .waits(async move {
            engine.settle_and_receive(actor("bob"), request, entries, |_| {}, wait).await
        })
        .await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 1));
    stop(waiting).await;
    assert_eq!(hive.state("bob", message(1)).await, (State::Acked, 1));
}

#[tokio::test]
async fn settlements_of_a_receive_that_is_refused_change_nothing() {
    let hive = hive_with(1).await;
    let taken = hive.receive("bob", 1).await;
    let harness = hive.attach("bob").await;
    let entries = vec![Entry::of_lease(token(&taken[0]), Action::Ack)];
    let request = hive.request("ReceiveMessages");
    let refused =
        hive.engine().settle_and_receive(actor("bob"), request, entries, |_| {}, up_to(1)).await;
    assert_eq!(reason(refused), Reason::HarnessAttached);
    assert_eq!(hive.state("bob", message(1)).await, (State::Leased, 1));
    drop(harness);
}
