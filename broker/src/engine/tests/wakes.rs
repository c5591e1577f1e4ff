//! Wakes: mail from a co-process of the agent, under a label that imitates no other sender; a
//! coalescing key keeps only the newest undelivered one.

use hive_core::delivery::Lane;
use hive_core::message::Origin;

use super::*;
use crate::engine::mail::wake::Woken;

fn word(label: &str, body: &str, key: Option<&str>) -> Wake {
    let label = Label::parse(label).expect("a label");
    Wake {
        label,
        body: body.to_owned(),
        coalescing_key: key.map(str::to_owned),
        session_token: None,
    }
}

async fn wake(hive: &Hive, label: &str, body: &str, key: Option<&str>) -> Result<Woken, Refusal> {
    hive.engine().wake(actor("bob"), hive.request("Wake"), word(label, body, key)).await
}

#[tokio::test]
async fn a_wake_is_ordinary_durable_mail_to_oneself() {
    let mut hive = Hive::new(&["bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    // The co-process shows no token: it is no part of a turn.
    let woken = wake(&hive, "matrix.room", "a guest came", None).await.expect("accepted");
    let begun = done(waiting).await.expect("a turn begins");
    assert_eq!((begun.delivery().message.id, begun.delivery().lane), (woken.message, Lane::Normal));
    assert_eq!(
        begun.delivery().message.origin,
        Origin::External(Label::parse("matrix.room").expect("a label"))
    );
    assert_eq!(begun.delivery().message.origin.to_string(), "external:matrix.room");
    let second = wake(&hive, "matrix.room", "another one", None).await.expect("accepted");
    hive.crash().await;
    assert_eq!(hive.state("bob", second.message).await, (State::Ready, 0));
}

#[tokio::test]
async fn a_label_cannot_imitate_an_agent() {
    let hive = Hive::new(&["alice", "bob", "dave"]).await;
    hive.retire("dave").await;
    for label in ["alice", "bob", "dave", "alice.", "bob-", "dave._", "operator.", "s.e-l_f"] {
        assert_eq!(reason(wake(&hive, label, "it is me", None).await), Reason::FieldInvalid);
    }
    for label in
        ["operator", "system", "reminder", "self", "external", "external:x", "<parent>", ""]
    {
        assert!(Label::parse(label).is_err(), "{label:?}");
    }
    assert!(hive.inbox("bob").await.is_empty());
}

#[tokio::test]
async fn a_repeated_wake_is_one_wake() {
    let hive = Hive::new(&["bob"]).await;
    let key = request("Wake", "w1", 1);
    let first = hive
        .engine()
        .wake(actor("bob"), key.clone(), word("timer", "tick", Some("t")))
        .await
        .expect("accepted");
    let again = hive
        .engine()
        .wake(actor("bob"), key, word("timer", "tick", Some("t")))
        .await
        .expect("answered again");
    assert_eq!((first.message, first.superseded), (again.message, again.superseded));
    assert_eq!(hive.inbox("bob").await.len(), 1);
}

#[tokio::test]
async fn a_newer_wake_replaces_the_undelivered_one() {
    let hive = Hive::new(&["bob"]).await;
    let first = wake(&hive, "timer", "tick 1", Some("tick")).await.expect("accepted");
    let second = wake(&hive, "timer", "tick 2", Some("tick")).await.expect("accepted");
    assert_eq!((first.superseded, second.superseded), (None, Some(first.message)));
    let third = wake(&hive, "timer", "tick 3", Some("tick")).await.expect("accepted");
    assert_eq!(third.superseded, Some(second.message));
    assert_eq!(bodies(&hive.receive("bob", 10).await), ["tick 3"]);
    let states: Vec<State> =
        hive.inbox("bob").await.iter().map(|delivery| delivery.state).collect();
    assert_eq!(states, [State::Superseded, State::Superseded, State::Leased]);
    assert_eq!(
        hive.delivery("bob", first.message).await.message.body,
        "tick 1",
        "messages are immutable"
    );
    assert_eq!(hive.numbers("bob").await.open_count, 1);
}

#[tokio::test]
async fn a_leased_delivery_is_not_superseded() {
    let hive = Hive::new(&["bob"]).await;
    let first = wake(&hive, "timer", "tick 1", Some("tick")).await.expect("accepted");
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    let second = wake(&hive, "timer", "tick 2", Some("tick")).await.expect("accepted");
    assert_eq!(second.superseded, None);
    hive.end(&run, Outcome::Drained).await;
    // Now there are two undelivered ones of a key; a newer one takes the newest one's place and
    // loses none.
    assert_eq!(hive.state("bob", first.message).await, (State::Ready, 1));
    assert_eq!(hive.turn(&harness, Outcome::Ok).await.body(), "tick 1");
    assert_eq!(hive.turn(&harness, Outcome::Ok).await.body(), "tick 2");
}

#[tokio::test]
async fn keys_belong_to_a_label_and_an_agent() {
    let hive = Hive::new(&["alice", "bob"]).await;
    wake(&hive, "timer", "one", Some("k")).await.expect("accepted");
    wake(&hive, "mailer", "two", Some("k")).await.expect("accepted");
    wake(&hive, "timer", "three", Some("other")).await.expect("accepted");
    wake(&hive, "timer", "four", None).await.expect("accepted");
    hive.engine()
        .wake(actor("alice"), hive.request("Wake"), word("timer", "hers", Some("k")))
        .await
        .expect("accepted");
    assert_eq!(bodies(&hive.receive("bob", 10).await), ["one", "two", "three", "four"]);
    assert_eq!(bodies(&hive.receive("alice", 10).await), ["hers"]);
}

#[tokio::test]
async fn a_refused_wake_supersedes_nothing() {
    let limits = Limits { sends_per_minute_max: 1, ..Default::default() };
    let hive = Hive::with_limits(&["bob"], limits).await;
    let first = wake(&hive, "timer", "tick 1", Some("tick")).await.expect("accepted");
    assert_eq!(reason(wake(&hive, "timer", "tick 2", Some("tick")).await), Reason::RateLimited);
    assert_eq!(hive.state("bob", first.message).await, (State::Ready, 0));
}

#[tokio::test]
async fn a_full_inbox_takes_a_wake_that_only_takes_a_place() {
    let limits = Limits { inbox_depth_max: 1, ..Default::default() };
    let hive = Hive::with_limits(&["bob"], limits).await;
    wake(&hive, "timer", "tick 1", Some("tick")).await.expect("accepted");
    wake(&hive, "timer", "tick 2", Some("tick")).await.expect("accepted in its place");
    assert_eq!(reason(wake(&hive, "timer", "tick 3", None).await), Reason::InboxFull);
}

#[tokio::test]
async fn a_coalescing_key_is_short() {
    let hive = Hive::new(&["bob"]).await;
    assert!(wake(&hive, "timer", "tick", Some(&"k".repeat(128))).await.is_ok());
    assert_eq!(
        reason(wake(&hive, "timer", "tick", Some(&"k".repeat(129))).await),
        Reason::FieldInvalid
    );
}

#[tokio::test]
async fn a_wake_with_the_token_of_the_session_goes_before_other_mail() {
    let hive = Hive::new(&["bob"]).await;
    hive.send("operator", "bob", "mail").await;
    let harness = hive.attach("bob").await;
    let with = |token: &str| Wake {
        session_token: Some(token.to_owned()),
        ..word("bash", "a task has ended", None)
    };
    let wake =
        async |wake: Wake| hive.engine().wake(actor("bob"), hive.request("Wake"), wake).await;
    assert_eq!(reason(wake(with("guessed")).await), Reason::SessionLost);
    wake(word("ci", "built", None)).await.expect("accepted");
    let woken = wake(with(&harness.token)).await.expect("accepted").message;
    assert_eq!(hive.delivery("bob", woken).await.lane, Lane::System);
    let bodies = [hive.turn(&harness, Outcome::Ok).await, hive.turn(&harness, Outcome::Ok).await];
    assert_eq!(bodies.each_ref().map(Run::body), ["a task has ended", "mail"]);
}
