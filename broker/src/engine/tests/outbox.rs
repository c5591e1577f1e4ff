//! The operator outbox: an item is reported once, only while it is open, and is not lost.

use std::collections::BTreeSet;

use hive_core::question::{Answer, Wording};

use super::*;
use crate::engine::mail::outbox::{Item, Kind};

/// Long enough for every backoff and park.
const LONG: u64 = 3600;

/// Returns a hive with a notifier for its operator.
async fn with_notifier(agents: &[&str]) -> Hive {
    let hive = Hive::new(agents).await;
    hive.engine().store().use_outbox();
    hive
}

/// Returns the items to report now.
async fn due(hive: &Hive) -> Vec<Item> {
    hive.engine().due_items(&BTreeSet::new(), 100).await.expect("the outbox is read").items
}

/// Returns the kinds, agents and ids of the items to report now.
async fn waiting(hive: &Hive) -> Vec<(Kind, String, u64)> {
    due(hive).await.into_iter().map(|item| (item.kind, item.agent, item.id)).collect()
}

fn item(kind: Kind, agent: &str, id: MessageId) -> (Kind, String, u64) {
    (kind, agent.to_owned(), id.get())
}

/// Returns the number of rows of the outbox, of any kind.
async fn rows(hive: &Hive) -> i64 {
    let count = |conn: &rusqlite::Connection| {
        conn.query_row("SELECT count(*) FROM attention", [], |row| row.get(0))
    };
    hive.engine()
        .store()
        .read(move |conn, _| Ok::<_, Refusal>(count(conn)?))
        .await
        .expect("the outbox is counted")
}

/// Fails the mail that waits until it is a dead letter.
async fn kill(hive: &Hive, harness: &Harness) -> MessageId {
    let mut message = None;
    for _ in 0..hive.limits.attempts_max {
        hive.pass(LONG);
        message = Some(hive.turn(harness, Outcome::Failed).await.message());
    }
    hive.pass(LONG);
    message.expect("at least one attempt")
}

#[tokio::test]
async fn mail_to_the_operator_is_in_the_outbox_once_until_it_is_notified() {
    let hive = with_notifier(&["ada", "bob"]).await;
    hive.send("ada", "bob", "not for the operator").await;
    hive.send("ada", "*", "nor is this").await;
    assert_eq!(rows(&hive).await, 0);
    let sent_at = hive.now().wall;
    let first = hive.send("ada", "operator", "hello").await;
    hive.pass(1);
    let second = hive.send("bob", "<parent>", "hi").await;
    let items = due(&hive).await;
    assert_eq!(
        (items[0].text.as_str(), items[0].create_time, items[0].failures),
        ("hello", sent_at, 0)
    );
    assert_eq!(
        waiting(&hive).await,
        [item(Kind::Mail, "ada", first), item(Kind::Mail, "bob", second)]
    );
    hive.engine().remove_item(&items[0]).await.expect("noted");
    assert_eq!(waiting(&hive).await, [item(Kind::Mail, "bob", second)]);
    hive.engine().remove_item(&items[1]).await.expect("noted");
    assert_eq!(rows(&hive).await, 0);
}

#[tokio::test]
async fn a_question_to_the_operator_waits_and_the_message_that_brings_it_does_not_besides() {
    let hive = with_notifier(&["ada", "bob"]).await;
    let ask = |to: &str| {
        let wording = Wording {
            text: "Deploy?".to_owned(),
            options: vec!["yes".to_owned(), "no".to_owned()],
            multi: false,
        };
        let ask = Ask { to: recipient(to), wording, ttl: None, effect: None, short: None };
        hive.engine().ask(actor("ada"), hive.request("AskQuestion"), ask)
    };
    ask("bob").await.expect("asked");
    assert_eq!(rows(&hive).await, 0);
    let (question, _) = ask("operator").await.expect("asked");
    let items = due(&hive).await;
    assert_eq!((items.len(), items[0].kind, items[0].agent.as_str()), (1, Kind::Question, "ada"));
    assert_eq!((items[0].id, items[0].text.as_str()), (question.id.get(), "Deploy?"));
    assert_eq!(hive.notices("operator").await.len(), 1);
    let answer = Answer { text: "yes, please".to_owned(), choices: Vec::new() };
    hive.engine()
        .answer(actor("operator"), hive.request("AnswerQuestion"), question.id, answer)
        .await
        .expect("answered");
    assert_eq!((waiting(&hive).await, rows(&hive).await), (vec![], 0));
}

#[tokio::test]
async fn a_dead_letter_is_in_the_outbox_for_any_parent_and_its_notice_is_not() {
    let hive = with_notifier(&["root"]).await;
    hive.create("kid", Some("root"), Policy::default()).await;
    for agent in ["root", "kid"] {
        let harness = hive.attach(agent).await;
        hive.send("operator", agent, "poison").await;
        let dead = kill(&hive, &harness).await;
        let items = due(&hive).await;
        let letters: Vec<&Item> =
            items.iter().filter(|item| item.kind == Kind::DeadLetter).collect();
        assert_eq!(letters.len(), 1, "{items:?}");
        assert_eq!((letters[0].agent.as_str(), letters[0].id), (agent, dead.get()));
        assert!(
            letters[0].text.contains("is a dead letter after 5 failed attempts"),
            "{}",
            letters[0].text
        );
        let notices = hive.notices("operator").await;
        let of_death: Vec<u64> = notices
            .iter()
            .filter(|notice| notice.message.in_reply_to == Some(dead))
            .map(|n| n.message.id.get())
            .collect();
        assert_eq!(of_death.len(), usize::from(agent == "root"), "a root's parent is the operator");
        assert!(!items.iter().any(|item| of_death.contains(&item.id)), "{items:?}");
        for item in items {
            hive.engine().remove_item(&item).await.expect("noted");
        }
    }
}

#[tokio::test]
async fn notices_of_failed_and_impossible_turns_wait_as_mail_about_their_agent() {
    let hive = with_notifier(&["bob"]).await;
    hive.send("operator", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    hive.turn(&harness, Outcome::Failed).await;
    hive.pass(LONG);
    hive.turn(&harness, Outcome::Unavailable).await;
    let notices: Vec<_> = hive
        .notices("operator")
        .await
        .iter()
        .map(|notice| item(Kind::Mail, "bob", notice.message.id))
        .collect();
    assert_eq!(notices.len(), 2);
    assert_eq!(waiting(&hive).await, notices);
}

#[tokio::test]
async fn a_missing_login_waits_once_per_park() {
    let hive = with_notifier(&["bob"]).await;
    hive.send("operator", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    let login = |state| hive.report(&harness, state);
    let first = hive.turn(&harness, Outcome::AuthFailed).await;
    let wanted = (Kind::NeedsLogin, "bob".to_owned(), first.id.get());
    assert_eq!(waiting(&hive).await, [wanted], "its notice does not wait besides");
    assert_eq!(hive.notices("operator").await.len(), 1);
    login(HarnessState::Idle).await.expect("logged in");
    assert_eq!(waiting(&hive).await, [], "nobody has to log in any more");

    let second = hive.turn(&harness, Outcome::AuthFailed).await;
    assert_eq!(
        waiting(&hive).await,
        [(Kind::NeedsLogin, "bob".to_owned(), second.id.get())],
        "the login was no good"
    );
    hive.retire("bob").await;
    assert_eq!(waiting(&hive).await, []);
    assert_eq!(rows(&hive).await, 0);
}

#[tokio::test]
async fn without_a_notifier_the_outbox_stays_empty() {
    let hive = Hive::new(&["bob"]).await;
    hive.send("bob", "operator", "hello").await;
    hive.send("operator", "bob", "poison").await;
    let harness = hive.attach("bob").await;
    kill(&hive, &harness).await;
    hive.send("operator", "bob", "hello").await;
    hive.turn(&harness, Outcome::AuthFailed).await;
    assert_eq!(rows(&hive).await, 0);
}

#[tokio::test]
async fn a_closed_item_is_not_notified() {
    let hive = with_notifier(&["bob"]).await;
    let mail = hive.send("bob", "operator", "hello").await;
    hive.decide("operator", mail, Decision::Ack).await.expect("acked");
    let dropped = hive.send("bob", "operator", "hello again").await;
    hive.decide("operator", dropped, Decision::Drop).await.expect("dropped");
    assert_eq!((rows(&hive).await, waiting(&hive).await), (2, vec![]));
    assert_eq!(rows(&hive).await, 0, "what waits no more is thrown out");

    let harness = hive.attach("bob").await;
    hive.send("operator", "bob", "poison").await;
    let dead = kill(&hive, &harness).await;
    for item in due(&hive).await.into_iter().filter(|item| item.kind == Kind::Mail) {
        hive.engine().remove_item(&item).await.expect("noted");
    }
    hive.decide("bob", dead, Decision::Redrive).await.expect("redriven");
    assert_eq!((waiting(&hive).await, rows(&hive).await), (vec![], 0));
    kill(&hive, &harness).await;
    assert!(
        waiting(&hive).await.contains(&item(Kind::DeadLetter, "bob", dead)),
        "it is dead once more"
    );
}

#[tokio::test]
async fn a_failed_notification_is_retried_with_backoff_while_its_item_is_open() {
    let hive = with_notifier(&["bob"]).await;
    let mail = hive.send("bob", "operator", "hello").await;
    for (failures, pause) in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].into_iter().enumerate() {
        let items = due(&hive).await;
        assert_eq!((items.len(), items[0].failures as usize), (1, failures));
        let put_off = hive.engine().postpone_item(&items[0]).await.expect("noted");
        assert_eq!(put_off, Duration::from_secs(pause));
        hive.pass(pause - 1);
        let later =
            hive.engine().due_items(&BTreeSet::new(), 100).await.expect("the outbox is read");
        assert_eq!((later.items.len(), later.next), (0, Some(Duration::from_secs(1))));
        hive.pass(1);
    }
    hive.decide("operator", mail, Decision::Ack).await.expect("acked");
    assert_eq!((waiting(&hive).await, rows(&hive).await), (vec![], 0));
}

#[tokio::test]
async fn a_clock_that_is_set_back_delays_nothing_longer() {
    let hive = with_notifier(&["bob"]).await;
    let mail = hive.send("bob", "operator", "hello").await;
    hive.engine().postpone_item(&due(&hive).await[0]).await.expect("noted");
    let wall = hive.now().wall;
    hive.clock.set_wall(wall.before(Duration::from_secs(LONG)));
    assert_eq!(waiting(&hive).await, [item(Kind::Mail, "bob", mail)]);
}

#[tokio::test]
async fn an_item_in_progress_is_not_notified_twice_and_the_notifiers_limit_holds() {
    let hive = with_notifier(&["bob"]).await;
    for number in 0..5 {
        hive.send("bob", "operator", &format!("letter {number}")).await;
    }
    let mut telling = BTreeSet::new();
    let mut told = Vec::new();
    for wanted in [2, 2, 1, 0] {
        let due = hive.engine().due_items(&telling, 2).await.expect("the outbox is read");
        assert_eq!((due.items.len(), due.next), (wanted, None));
        telling.extend(due.items.iter().map(|item| item.row));
        told.extend(due.items.into_iter().map(|item| item.text));
    }
    assert_eq!(told, ["letter 0", "letter 1", "letter 2", "letter 3", "letter 4"]);
}

#[tokio::test]
async fn a_long_text_is_cut_where_a_character_ends() {
    let hive = with_notifier(&["bob"]).await;
    let fits = "x".repeat(4096);
    hive.send("bob", "operator", &fits).await;
    hive.send("bob", "operator", &"ä".repeat(2049)).await;
    let texts: Vec<String> = due(&hive).await.into_iter().map(|item| item.text).collect();
    assert_eq!(texts, [fits, format!("{}…", "ä".repeat(2046))]);
}

#[tokio::test]
async fn the_outbox_survives_the_broker_and_a_new_one_tries_at_once() {
    let mut hive = with_notifier(&["bob"]).await;
    let told = hive.send("bob", "operator", "told").await;
    let failed = hive.send("bob", "operator", "failed").await;
    let items = due(&hive).await;
    hive.engine().remove_item(&items[0]).await.expect("noted");
    hive.engine().postpone_item(&items[1]).await.expect("noted");
    hive.crash().await;
    assert_eq!(waiting(&hive).await, []);
    hive.engine().begin_outbox().await.expect("it begins");
    assert_eq!(waiting(&hive).await, [item(Kind::Mail, "bob", failed)]);
    assert_ne!(told, failed);
}

#[tokio::test]
async fn a_new_item_gives_the_notifier_a_hint() {
    let hive = with_notifier(&["bob"]).await;
    let signal = hive.engine().hints().outbox.notified();
    hive.send("bob", "operator", "hello").await;
    tokio::time::timeout(Duration::from_secs(30), signal).await.expect("it is woken");
}
