//! The operator: decides about mail without holding it, reads their own inbox without changing it,
//! and is recorded with what they do.

use hive_core::settlement::Action;

use super::*;
use crate::engine::error::MailError;

/// A delivery to bob in this state.
async fn delivery_in(state: State) -> (Hive, MessageId) {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    match state {
        State::Ready | State::Superseded => {}
        State::Leased => drop(hive.receive("bob", 1).await),
        State::Held => {
            let harness = hive.attach("bob").await;
            hive.turn(&harness, Outcome::Cancelled).await;
        }
        State::Dead => {
            let taken = hive.receive("bob", 1).await;
            hive.nack("bob", &taken[0], true).await.expect("given up");
        }
        State::Acked => hive.decide("bob", sent, Decision::Ack).await.expect("acked"),
        State::Dropped => hive.decide("bob", sent, Decision::Drop).await.expect("dropped"),
    }
    assert_eq!(hive.state("bob", sent).await.0, state);
    (hive, sent)
}

#[tokio::test]
async fn each_decision_works_where_it_makes_sense_and_nowhere_else() {
    use State::{Acked, Dead, Dropped, Held, Leased, Ready};
    let table = [
        (
            Decision::Ack,
            vec![(Ready, Acked), (Leased, Acked), (Held, Acked), (Dead, Acked), (Acked, Acked)],
        ),
        (
            Decision::Drop,
            vec![(Ready, Dropped), (Leased, Dropped), (Held, Dropped), (Dead, Dropped)],
        ),
        (Decision::Release, vec![(Held, Ready)]),
        (Decision::Redrive, vec![(Dead, Ready)]),
        (Decision::Supersede, vec![(Ready, State::Superseded)]),
    ];
    for (decision, works) in table {
        for state in [Ready, Leased, Held, Dead, Acked, Dropped] {
            let (hive, sent) = delivery_in(state).await;
            let events = hive.events().await;
            let answer = hive.decide("bob", sent, decision).await;
            if let Some((_, after)) = works.iter().find(|(before, _)| *before == state) {
                answer.expect("it works");
                assert_eq!(hive.state("bob", sent).await.0, *after, "{decision:?} {state:?}");
            } else {
                let refusal = answer.expect_err("it makes no sense");
                assert!(
                    matches!(refusal, Refusal::Mail(MailError::WrongState { state: told, .. }) if told == state),
                    "{decision:?} {state:?}"
                );
                assert_eq!(hive.events().await, events);
            }
        }
    }
}

#[tokio::test]
async fn the_caller_of_a_change_is_stored() {
    let (hive, sent) = delivery_in(State::Dead).await;
    hive.decide("bob", sent, Decision::Redrive).await.expect("redriven");
    assert_eq!(hive.delivery("bob", sent).await.settled_by, "");
    hive.decide("bob", sent, Decision::Drop).await.expect("dropped");
    assert_eq!(hive.delivery("bob", sent).await.settled_by, "uid 1000 (ada)");
    let events = hive.events().await;
    let kinds = [EventKind::DeliveryRedriven, EventKind::DeliveryDropped];
    let details: Vec<&str> = events
        .iter()
        .filter(|event| kinds.contains(&event.kind()))
        .map(|event| event.detail.as_str())
        .collect();
    assert_eq!(details, ["by uid 1000 (ada)"; 2]);
}

#[tokio::test]
async fn a_delivery_that_the_operator_settles_loses_its_lease() {
    for decision in [Decision::Ack, Decision::Drop] {
        let hive = Hive::new(&["alice", "bob"]).await;
        let sent = hive.send("alice", "bob", "hello").await;
        // The message was requeued once before, so that a nack is part of its history.
        let taken = hive.receive("bob", 1).await;
        hive.nack("bob", &taken[0], false).await.expect("given back");
        hive.pass(5);
        let taken = hive.receive("bob", 1).await;
        hive.decide("bob", sent, decision).await.expect("decided");
        let events = hive.events().await;
        assert_eq!(reason(hive.ack("bob", &taken[0]).await), Reason::LeaseLost, "{decision:?}");
        assert_eq!(
            reason(hive.nack("bob", &taken[0], false).await),
            Reason::LeaseLost,
            "{decision:?}"
        );
        let token = taken[0].token.clone().expect("a token");
        let minute = Duration::from_secs(60);
        assert_eq!(
            reason(hive.settle("bob", token, Action::Extend(minute)).await),
            Reason::LeaseLost
        );
        hive.pass_and_sweep(3600).await;
        assert_eq!(hive.events().await, events);
    }
}

#[tokio::test]
async fn a_decision_said_twice_is_one_decision() {
    let (hive, sent) = delivery_in(State::Dead).await;
    let key = request("RedriveDeadLetter", "d1", 1);
    let decide = || {
        hive.engine().decide(
            caller("operator"),
            key.clone(),
            "bob".to_owned(),
            sent,
            Decision::Redrive,
        )
    };
    decide().await.expect("redriven");
    decide().await.expect("answered again");
    assert_eq!(hive.count_events(EventKind::DeliveryRedriven).await, 1);
}

#[tokio::test]
async fn only_the_operator_decides() {
    let (hive, sent) = delivery_in(State::Ready).await;
    for who in ["alice", "bob"] {
        let request = hive.request("Decide");
        let answer =
            hive.engine().decide(caller(who), request, "bob".to_owned(), sent, Decision::Ack).await;
        assert_eq!(reason(answer), Reason::NotYours);
    }
    assert_eq!(reason(hive.decide("carol", sent, Decision::Ack).await), Reason::AgentNotFound);
    assert_eq!(reason(hive.decide("alice", sent, Decision::Ack).await), Reason::DeliveryNotFound);
    assert_eq!(
        reason(hive.decide("bob", message(99), Decision::Ack).await),
        Reason::DeliveryNotFound
    );
}

#[tokio::test]
async fn reading_the_operators_inbox_changes_nothing() {
    let mut hive = Hive::new(&["alice"]).await;
    let sent = hive.send("alice", "operator", "look at this").await;
    let events = hive.events().await;
    for _ in 0..3 {
        assert_eq!(hive.state("operator", sent).await, (State::Ready, 0));
        hive.engine().get_message(caller("operator"), sent).await.expect("read");
        hive.engine().inbox_status(caller("operator"), String::new()).await.expect("counted");
        hive.crash().await;
        hive.pass_and_sweep(86_400).await;
    }
    assert_eq!(hive.events().await, events);
    assert_eq!(hive.engine().totals().await.expect("totals").operator_unread, 1);
    hive.decide("operator", sent, Decision::Ack).await.expect("acked");
    assert_eq!(hive.engine().totals().await.expect("totals").operator_unread, 0);
    assert_eq!(hive.delivery("operator", sent).await.settled_by, "uid 1000 (ada)");
}

#[tokio::test]
async fn mail_of_retired_agents_can_still_be_decided() {
    let (hive, sent) = delivery_in(State::Leased).await;
    hive.retire("bob").await;
    assert_eq!(
        hive.state("bob", sent).await,
        (State::Ready, 1),
        "its leases went back without blame"
    );
    hive.decide("bob", sent, Decision::Drop).await.expect("dropped");
    assert_eq!(
        hive.state("bob", sent).await,
        (State::Dropped, 1),
        "the first attempt held it last"
    );
}

#[tokio::test]
async fn a_delivery_settled_by_the_operator_keeps_its_attempt() {
    for (state, attempt) in
        [(State::Ready, 0), (State::Leased, 1), (State::Held, 1), (State::Dead, 1)]
    {
        for decision in [Decision::Ack, Decision::Drop] {
            let (hive, sent) = delivery_in(state).await;
            assert_eq!(hive.state("bob", sent).await, (state, attempt));
            hive.decide("bob", sent, decision).await.expect("decided");
            assert_eq!(hive.state("bob", sent).await.1, attempt, "{state} {decision:?}");
        }
    }
}

#[tokio::test]
async fn an_agent_sees_its_own_inbox_and_no_other() {
    let (hive, _) = delivery_in(State::Ready).await;
    let list = |who: &str, whose: &str| {
        hive.engine().list_deliveries(caller(who), whose.to_owned(), ALL_STATES.to_vec(), None, 10)
    };
    assert_eq!(list("bob", "").await.expect("listed").0.len(), 1);
    assert_eq!(list("bob", "bob").await.expect("listed").0.len(), 1);
    assert_eq!(reason(list("alice", "bob").await), Reason::NotYours);
    assert_eq!(reason(list("alice", "operator").await), Reason::NotYours);
    assert_eq!(
        reason(hive.engine().inbox_status(caller("alice"), "bob".to_owned()).await),
        Reason::NotYours
    );
}

#[tokio::test]
async fn lists_are_paged_and_miss_nothing() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for number in 0..7 {
        hive.send("alice", "bob", &number.to_string()).await;
        hive.send("bob", "alice", &number.to_string()).await;
    }
    for agent in ["alice", "bob"] {
        for leased in hive.try_receive(agent, up_to(7)).await.expect("taken").deliveries {
            hive.nack(agent, &leased, true).await.expect("given up");
        }
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let (page, next) =
            hive.engine().list_dead_letters(String::new(), after, 4).await.expect("listed");
        seen.extend(page.iter().map(|delivery| delivery.message.id.get()));
        after = next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, (1..=14).collect::<Vec<u64>>());
}

#[tokio::test]
async fn an_inbox_in_numbers() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let oldest = hive.now().wall;
    for number in 0..4 {
        hive.send("alice", "bob", &number.to_string()).await;
        hive.pass(10);
    }
    let taken = hive.receive("bob", 2).await;
    hive.nack("bob", &taken[0], true).await.expect("given up");
    let status = hive.engine().inbox_status(caller("bob"), String::new()).await.expect("counted");
    assert_eq!((status.ready, status.leased, status.held, status.dead), (2, 1, 0, 1));
    assert_eq!(status.oldest_ready.expect("some wait").since(oldest).as_secs(), 20);
    let totals = hive.engine().totals().await.expect("totals");
    assert_eq!(
        (totals.agents, totals.ready, totals.leased, totals.dead, totals.operator_unread),
        (2, 2, 1, 1, 1)
    );
}
