//! Limits: above one, the refusal has the number and, if waiting helps, how long to wait. Other
//! senders are not slowed down, and the broker's own mail is never refused.

use super::*;
use crate::engine::error::MailError;
use crate::engine::mail::wake::Woken;

async fn wake(hive: &Hive, agent: &str, body: &str) -> Result<Woken, Refusal> {
    let label = Label::parse("timer").expect("a label");
    hive.engine()
        .wake(
            actor(agent),
            hive.request("Wake"),
            Wake { label, body: body.to_owned(), coalescing_key: None, session_token: None },
        )
        .await
}

#[tokio::test]
async fn a_body_over_the_bound_is_refused_with_both_numbers() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let max = hive.limits.body_bytes_max as usize;
    hive.send("alice", "bob", &"x".repeat(max)).await;
    let refusal = hive.try_send("alice", "bob", &"x".repeat(max + 1)).await.expect_err("too large");
    assert!(
        matches!(refusal, Refusal::Mail(MailError::BodyTooLarge { field: "body", bytes, max: 32_768 }) if bytes == max + 1)
    );
    assert_eq!(refusal.retry_after(), None, "waiting does not help");
    assert!(matches!(
        wake(&hive, "bob", &"x".repeat(max + 1)).await,
        Err(Refusal::Mail(MailError::BodyTooLarge { .. }))
    ));
    // Bytes count, not characters.
    let umlauts = "ä".repeat(max / 2 + 1);
    assert!(matches!(
        hive.try_send("alice", "bob", &umlauts).await,
        Err(Refusal::Mail(MailError::BodyTooLarge { .. }))
    ));
    assert_eq!(hive.inbox("bob").await.len(), 1);
}

#[tokio::test]
async fn a_full_inbox_refuses_its_senders_until_something_is_settled() {
    let hive = Hive::with_limits(
        &["alice", "bob", "carol"],
        Limits { inbox_depth_max: 2, ..Limits::default() },
    )
    .await;
    hive.send("alice", "bob", "one").await;
    hive.send("alice", "bob", "two").await;
    let refusal = hive.try_send("alice", "bob", "three").await.expect_err("full");
    assert!(
        matches!(&refusal, Refusal::Mail(MailError::InboxFull { agent, depth: 2, max: 2 }) if agent == "bob")
    );
    assert!(refusal.retry_after().is_some());
    assert!(matches!(
        hive.try_send("operator", "bob", "three").await,
        Err(Refusal::Mail(MailError::InboxFull { .. }))
    ));
    assert!(matches!(
        wake(&hive, "bob", "three").await,
        Err(Refusal::Mail(MailError::InboxFull { .. }))
    ));
    hive.send("alice", "carol", "others are not concerned").await;
    // A leased delivery is not settled yet.
    let leased = hive.receive("bob", 1).await;
    assert!(matches!(
        hive.try_send("alice", "bob", "three").await,
        Err(Refusal::Mail(MailError::InboxFull { .. }))
    ));
    hive.ack("bob", &leased[0]).await.expect("acked");
    hive.send("alice", "bob", "three").await;
}

#[tokio::test]
async fn a_broadcast_leaves_full_inboxes_out_and_says_which() {
    let hive = Hive::with_limits(
        &["alice", "bob", "carol"],
        Limits { inbox_depth_max: 1, ..Limits::default() },
    )
    .await;
    hive.send("alice", "bob", "one").await;
    let receipt = hive.try_send("alice", "*", "all").await.expect("accepted");
    assert_eq!((receipt.recipients, receipt.skipped), (1, vec!["bob".to_owned()]));
    assert_eq!(hive.inbox("carol").await.len(), 1);
    let receipt = hive.try_send("alice", "*", "again").await.expect("accepted");
    assert_eq!(
        (receipt.recipients, receipt.skipped),
        (0, vec!["bob".to_owned(), "carol".to_owned()])
    );
}

#[tokio::test]
async fn a_fast_sender_gets_the_time_to_wait_and_others_are_not_slowed() {
    let hive = Hive::with_limits(
        &["alice", "bob", "carol"],
        Limits { sends_per_minute_max: 3, ..Limits::default() },
    )
    .await;
    for _ in 0..3 {
        hive.send("alice", "bob", "hello").await;
    }
    let refusal = hive.try_send("alice", "bob", "hello").await.expect_err("too fast");
    assert!(matches!(refusal, Refusal::Mail(MailError::RateLimited { per_minute: 3, .. })));
    let wait = refusal.retry_after().expect("waiting helps");
    assert_eq!(wait, Duration::from_secs(20));
    assert_eq!(reason(wake(&hive, "alice", "hello").await), Reason::RateLimited);
    hive.send("carol", "bob", "hello").await;
    for _ in 0..10 {
        hive.send("operator", "bob", "the operator has no such bound").await;
    }
    hive.clock.advance(wait - Duration::from_millis(1));
    assert!(hive.try_send("alice", "bob", "hello").await.is_err());
    hive.clock.advance(Duration::from_millis(1));
    hive.send("alice", "bob", "hello").await;
}

#[tokio::test]
async fn a_repeated_request_costs_no_rate() {
    let hive = Hive::with_limits(
        &["alice", "bob"],
        Limits { sends_per_minute_max: 1, ..Limits::default() },
    )
    .await;
    let key = request("SendMessage", "r1", 1);
    for _ in 0..3 {
        let sent = hive.send_with("alice", key.clone(), "bob", "hello").await;
        sent.expect("answered");
    }
}

#[tokio::test]
async fn bytes_waiting_unread_are_bounded_per_sender_and_freed_by_settling() {
    let limits = Limits { sender_stored_bytes_max: 10, ..Limits::default() };
    let hive = Hive::with_limits(&["alice", "bob", "carol"], limits).await;
    let first = hive.send("alice", "bob", "123456").await;
    hive.send("alice", "carol", "1234").await;
    assert_eq!(hive.numbers("alice").await.stored_bytes, 10);
    let refusal = hive.try_send("alice", "bob", "x").await.expect_err("full");
    assert!(matches!(refusal, Refusal::Mail(MailError::StorageFull { bytes: 10, max: 10 })));
    assert!(refusal.retry_after().is_some());
    assert!(matches!(
        wake(&hive, "alice", "x").await,
        Err(Refusal::Mail(MailError::StorageFull { .. }))
    ));
    hive.send("bob", "carol", "not slowed").await;
    hive.send("operator", "bob", "the operator's bytes are not counted").await;
    hive.decide("bob", first, Decision::Drop).await.expect("dropped");
    assert_eq!(hive.numbers("alice").await.stored_bytes, 4);
    hive.send("alice", "bob", "123456").await;
}

#[tokio::test]
async fn a_broadcast_counts_once_for_each_inbox_it_waits_in() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    hive.send("alice", "*", "1234").await;
    assert_eq!(hive.numbers("alice").await.stored_bytes, 8);
    let leased = hive.receive("bob", 1).await;
    hive.ack("bob", &leased[0]).await.expect("acked");
    assert_eq!(hive.numbers("alice").await.stored_bytes, 4);
}

#[tokio::test]
async fn a_broadcast_that_would_wait_in_too_many_inboxes_is_refused() {
    let limits = Limits { sender_stored_bytes_max: 10, ..Limits::default() };
    let hive = Hive::with_limits(&["alice", "bob", "carol", "dave"], limits).await;
    assert!(matches!(
        hive.try_send("alice", "*", "1234").await,
        Err(Refusal::Mail(MailError::StorageFull { bytes: 0, max: 10 }))
    ));
    hive.send("alice", "*", "123").await;
    assert_eq!(hive.numbers("alice").await.stored_bytes, 9);
}

#[tokio::test]
async fn a_full_inbox_costs_its_senders_no_rate() {
    let limits = Limits { inbox_depth_max: 1, sends_per_minute_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&["alice", "bob", "carol"], limits).await;
    hive.send("alice", "bob", "one").await;
    for _ in 0..5 {
        assert!(matches!(
            hive.try_send("alice", "bob", "two").await,
            Err(Refusal::Mail(MailError::InboxFull { .. }))
        ));
    }
    hive.send("alice", "carol", "one").await;
}

#[tokio::test]
async fn notices_are_never_refused_and_take_one_anothers_place_past_the_bound() {
    let limits = Limits {
        inbox_depth_max: 2,
        attempts_max: 100,
        park_backoff_base_ms: 1,
        ..Limits::default()
    };
    let hive = Hive::with_limits(&["boss"], limits).await;
    hive.create("kid", Some("boss"), Policy::default()).await;
    hive.send("operator", "boss", "one").await;
    hive.send("operator", "boss", "two").await;
    hive.send("operator", "kid", "poison").await;
    let harness = hive.attach("kid").await;
    let mut turns = Vec::new();
    for _ in 0..4 {
        turns.push(hive.turn(&harness, Outcome::Failed).await.id);
        hive.pass(1000);
    }
    let notices = hive.notices("boss").await;
    assert_eq!(notices.len(), 1, "each took the undelivered one's place");
    assert_eq!(notices[0].message.system_kind, Some(SystemKind::TurnFailed));
    assert!(
        notices[0].message.body.contains(&format!("turn {}", turns[3])),
        "{}",
        notices[0].message.body
    );
    let superseded = hive
        .inbox("boss")
        .await
        .iter()
        .filter(|delivery| delivery.state == State::Superseded)
        .count();
    assert_eq!(superseded, 3);
    assert_eq!(hive.numbers("boss").await.open_count, 3);
}

#[tokio::test]
async fn below_the_bound_each_notice_is_kept() {
    let hive = Hive::new(&["kid"]).await;
    hive.send("operator", "kid", "poison").await;
    let harness = hive.attach("kid").await;
    for _ in 0..3 {
        hive.turn(&harness, Outcome::Failed).await;
        hive.pass(1000);
    }
    assert_eq!(hive.notices("operator").await.len(), 3);
}

#[tokio::test]
async fn a_refused_command_leaves_no_row() {
    let limits = Limits {
        inbox_depth_max: 1,
        sender_stored_bytes_max: 50,
        body_bytes_max: 40,
        ..Limits::default()
    };
    let hive = Hive::with_limits(&["alice", "bob"], limits).await;
    hive.send("alice", "bob", "one").await;
    let before = (
        hive.engine().totals().await.expect("totals"),
        hive.numbers("alice").await,
        hive.events().await.len(),
    );
    for body in ["two".to_owned(), "x".repeat(39), "x".repeat(41)] {
        assert!(hive.try_send("alice", "bob", &body).await.is_err());
    }
    assert!(hive.try_send("alice", "bob", &"x".repeat(49)).await.is_err());
    let after = (
        hive.engine().totals().await.expect("totals"),
        hive.numbers("alice").await,
        hive.events().await.len(),
    );
    assert_eq!(before, after);
}
