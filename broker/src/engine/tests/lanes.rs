//! Order: first in, first out within a lane, by sequence; the system lane first, but eight in a row
//! at most; a delivery in backoff blocks no other.

use hive_core::delivery::Lane;

use super::*;
use crate::engine::mail::notice;
use crate::engine::mail::notice::Notice;

/// Sends a notice of the broker to an agent.
async fn tell(hive: &Hive, agent: &str, body: &str) {
    let (to, limits, body) = (hive.row(agent).await.key, hive.limits.clone(), body.to_owned());
    let told = hive.engine().store().write(move |tx| {
        let notice = Notice::about("somebody", to, SystemKind::Restarted, &body);
        notice::send(tx, &limits, notice)
    });
    told.await.map_err(|refusal: Refusal| refusal.to_string()).expect("told");
}

#[tokio::test]
async fn mail_is_served_in_the_order_it_was_accepted_whatever_the_clock_says() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut sent = Vec::new();
    for number in 0..6 {
        hive.clock.set_wall(WallTime(1_800_000_000_000 - number * 3_600_000));
        sent.push(
            hive.send(
                if number % 2 == 0 { "alice" } else { "operator" },
                "bob",
                &number.to_string(),
            )
            .await,
        );
    }
    assert_eq!(ids(&hive.receive("bob", 10).await), sent);
}

#[tokio::test]
async fn a_requeued_delivery_keeps_its_position() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for body in ["one", "two", "three"] {
        hive.send("alice", "bob", body).await;
    }
    let harness = hive.attach("bob").await;
    assert_eq!(hive.turn(&harness, Outcome::Drained).await.body(), "one");
    assert_eq!(hive.turn(&harness, Outcome::Ok).await.body(), "one");
    assert_eq!(hive.turn(&harness, Outcome::Ok).await.body(), "two");
}

#[tokio::test]
async fn notices_go_before_mail() {
    let hive = Hive::new(&["bob"]).await;
    hive.send("operator", "bob", "mail").await;
    tell(&hive, "bob", "notice").await;
    let taken = hive.receive("bob", 2).await;
    assert_eq!(bodies(&taken), ["notice", "mail"]);
    assert_eq!((taken[0].delivery.lane, taken[1].delivery.lane), (Lane::System, Lane::Normal));
}

#[tokio::test]
async fn after_eight_notices_one_piece_of_mail_is_served_and_a_restart_does_not_forget_the_count() {
    let mut hive = Hive::new(&["bob"]).await;
    for number in 0..20 {
        tell(&hive, "bob", &format!("notice {number}")).await;
    }
    for number in 0..3 {
        hive.send("operator", "bob", &format!("mail {number}")).await;
    }
    let mut served = Vec::new();
    for turn in 0..23 {
        if turn % 3 == 0 {
            hive.crash().await;
        }
        let taken = hive.receive("bob", 1).await;
        hive.ack("bob", &taken[0]).await.expect("acked");
        served.push(taken[0].delivery.message.body.clone());
    }
    let mail: Vec<usize> =
        (0..served.len()).filter(|place| served[*place].starts_with("mail")).collect();
    assert_eq!(mail, [8, 17, 22], "{served:?}");
    let notices: Vec<String> =
        served.into_iter().filter(|body| body.starts_with("notice")).collect();
    let in_order: Vec<String> = (0..20).map(|number| format!("notice {number}")).collect();
    assert_eq!(notices, in_order);
}

#[tokio::test]
async fn a_delivery_in_backoff_does_not_block_later_ones() {
    let hive = Hive::new(&["bob"]).await;
    let first = hive.send("operator", "bob", "one").await;
    hive.send("operator", "bob", "two").await;
    let harness = hive.attach("bob").await;
    assert_eq!(hive.turn(&harness, Outcome::Failed).await.message(), first);
    let delivery = hive.delivery("bob", first).await;
    assert_eq!((delivery.state, delivery.attempt), (State::Ready, 1));
    assert!(delivery.not_before.is_some());
    assert_eq!(hive.turn(&harness, Outcome::Ok).await.body(), "two");
    hive.send("operator", "bob", "three").await;
    hive.pass(5);
    assert_eq!(
        hive.turn(&harness, Outcome::Ok).await.body(),
        "one",
        "its time has come, and it is the oldest"
    );
    assert_eq!(hive.turn(&harness, Outcome::Ok).await.body(), "three");
}

#[tokio::test]
async fn a_bound_on_bytes_is_kept_before_anything_is_leased() {
    let hive = Hive::new(&["bob"]).await;
    for body in ["12345", "12345", "1", "1234567890123"] {
        hive.send("operator", "bob", body).await;
    }
    let ask = |max_bytes| Receive { max_bytes: Some(max_bytes), ..up_to(10) };
    let received = hive.try_receive("bob", ask(10)).await.expect("taken");
    assert_eq!((bodies(&received.deliveries), received.pending), (vec!["12345", "12345"], 2));
    let states: Vec<State> =
        hive.inbox("bob").await.iter().map(|delivery| delivery.state).collect();
    assert_eq!(states, [State::Leased, State::Leased, State::Ready, State::Ready]);
    // The order is kept: a small one does not overtake a large one, and the first always fits.
    let received = hive.try_receive("bob", ask(3)).await.expect("taken");
    assert_eq!(bodies(&received.deliveries), ["1"]);
    let received = hive.try_receive("bob", ask(3)).await.expect("taken");
    assert_eq!(bodies(&received.deliveries), ["1234567890123"]);
}
