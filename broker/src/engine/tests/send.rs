//! Accepting: a receipt is always true, a repeated request gets its first answer, and a rejected
//! request leaves nothing behind.

use crate::engine::error::{AgentError, MailError};
use hive_core::message::Origin;

use super::*;

#[tokio::test]
async fn a_receipt_is_on_disk_before_it_is_given() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    hive.crash().await;
    let delivery = hive.delivery("bob", sent).await;
    assert_eq!((delivery.state, delivery.message.body.as_str()), (State::Ready, "hello"));
    assert_eq!(delivery.message.origin, Origin::Agent(name("alice")));
    assert_eq!(ids(&hive.receive("bob", 1).await), [sent]);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer_and_the_work_is_not_done_twice() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let key = request("SendMessage", "r1", 7);
    let first = hive.send_with("alice", key.clone(), "bob", "hello").await.expect("accepted");
    hive.pass(5);
    let second =
        hive.send_with("alice", key.clone(), "bob", "hello").await.expect("answered again");
    assert_eq!(first, second);
    hive.crash().await;
    let third = hive
        .send_with("alice", key, "bob", "hello")
        .await
        .expect("answered by the next broker too");
    assert_eq!(first, third);
    assert_eq!(hive.inbox("bob").await.len(), 1);
}

#[tokio::test]
async fn a_request_id_does_not_serve_two_contents() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let first = hive.send_with("alice", request("SendMessage", "r1", 1), "bob", "hello").await;
    first.expect("accepted");
    let other = hive.send_with("alice", request("SendMessage", "r1", 2), "bob", "good bye").await;
    assert_eq!(reason(other), Reason::RequestIdReused);
    assert_eq!(hive.inbox("bob").await.len(), 1);
}

#[tokio::test]
async fn request_ids_belong_to_a_caller_and_an_rpc() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let from_alice = hive.send_with("alice", request("SendMessage", "r1", 1), "bob", "hello").await;
    let from_bob = hive.send_with("bob", request("SendMessage", "r1", 2), "alice", "hi").await;
    let by_operator =
        hive.send_with("operator", request("SendMessage", "r1", 3), "bob", "you").await;
    let status = hive
        .engine()
        .set_status_text(actor("alice"), request("SetStatusText", "r1", 4), "busy".to_owned())
        .await;
    assert!(from_alice.is_ok() && from_bob.is_ok() && by_operator.is_ok() && status.is_ok());
    assert_eq!(hive.inbox("bob").await.len(), 2);
}

#[tokio::test]
async fn a_refusal_is_not_remembered() {
    let hive = Hive::new(&["alice"]).await;
    let key = request("SendMessage", "r1", 1);
    let refused = hive.send_with("alice", key.clone(), "bob", "hello").await;
    assert_eq!(reason(refused), Reason::AgentNotFound);
    hive.create("bob", None, Policy::default()).await;
    hive.send_with("alice", key, "bob", "hello").await.expect("bob is there now");
}

#[tokio::test]
async fn request_ids_are_kept_seven_days_and_no_longer() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let key = request("SendMessage", "r1", 1);
    let first = hive.send_with("alice", key.clone(), "bob", "hello").await.expect("accepted");
    let (month, day) = (Duration::from_secs(30 * 86_400), 86_400);
    hive.pass(7 * day);
    while hive.engine().sweep_retention(month).await.expect("swept") {}
    let again = hive.send_with("alice", key.clone(), "bob", "hello").await.expect("answered");
    assert_eq!(first, again);
    hive.pass(1);
    while hive.engine().sweep_retention(month).await.expect("swept") {}
    let new = hive.send_with("alice", key, "bob", "hello").await.expect("accepted as a new one");
    assert_ne!(first.message, new.message);
}

#[tokio::test]
async fn an_unknown_recipient_offers_the_nearest_names_and_makes_no_phantom_inbox() {
    let hive = Hive::new(&["alice", "bob", "bobby"]).await;
    let before = hive.engine().totals().await.expect("totals");
    let refusal = hive.try_send("alice", "bobb", "hello").await.expect_err("nobody of that name");
    let Refusal::Agent(AgentError::NotFound { name, mut nearest }) = refusal else {
        panic!("{refusal:?}")
    };
    nearest.sort();
    assert_eq!((name.as_str(), nearest), ("bobb", vec!["bob".to_owned(), "bobby".to_owned()]));
    assert_eq!(hive.engine().totals().await.expect("totals"), before);
    let refusal = hive.try_send("alice", "zzz", "hello").await.expect_err("nobody of that name");
    assert!(
        matches!(refusal, Refusal::Agent(AgentError::NotFound { nearest, .. }) if nearest.is_empty())
    );
}

#[tokio::test]
async fn a_retired_agent_takes_no_more_mail_but_keeps_its_own() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    assert_eq!(hive.retire("bob").await, 1);
    assert_eq!(reason(hive.try_send("alice", "bob", "more").await), Reason::AgentRetired);
    assert_eq!(reason(hive.try_send("bob", "alice", "still here").await), Reason::AgentRetired);
    assert_eq!(hive.state("bob", sent).await, (State::Ready, 0));
}

#[tokio::test]
async fn a_broadcast_reaches_the_active_agents_without_the_sender() {
    let hive = Hive::new(&["alice", "bob", "carol", "dave"]).await;
    hive.retire("dave").await;
    let receipt = hive.try_send("alice", "*", "all hands").await.expect("accepted");
    assert_eq!((receipt.recipients, receipt.skipped), (2, vec![]));
    for (who, expected) in [("alice", 0), ("bob", 1), ("carol", 1), ("dave", 0), ("operator", 0)] {
        assert_eq!(hive.inbox(who).await.len(), expected, "{who}");
    }
    let message =
        hive.engine().get_message(caller("bob"), receipt.message).await.expect("bob received it");
    assert!(message.broadcast);
    assert_eq!((message.recipients.len(), message.recipient_count), (0, 2));
    assert_eq!(recipients(&hive, "bob", receipt.message).await, ["bob", "carol"]);
    let from_operator = hive.try_send("operator", "*", "hear me").await.expect("accepted");
    assert_eq!(from_operator.recipients, 3);
    assert_eq!(hive.inbox("operator").await.len(), 0);
}

/// Returns the recipients of a message that a caller lists, in pages of one.
async fn recipients(hive: &Hive, who: &str, message: MessageId) -> Vec<String> {
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = hive.engine().list_recipients(caller(who), message, after, 1);
        let (names, next) = page.await.expect("listed");
        assert!(names.len() <= 1, "{names:?}");
        found.extend(names);
        let Some(next) = next else { return found };
        after = next;
    }
}

#[tokio::test]
async fn the_sender_a_recipient_and_the_operator_list_recipients() {
    let hive = Hive::new(&["alice", "bob", "carol", "dave"]).await;
    let to_all = hive.send("alice", "*", "all hands").await;
    let to_one = hive.send("alice", "bob", "hello").await;
    hive.create("erin", None, Policy::default()).await;
    hive.retire("carol").await;
    for who in ["alice", "bob", "dave", "operator"] {
        assert_eq!(recipients(&hive, who, to_all).await, ["bob", "carol", "dave"], "{who}");
    }
    for who in ["alice", "bob", "operator"] {
        assert_eq!(recipients(&hive, who, to_one).await, ["bob"], "{who}");
    }
    for (who, message) in [("erin", to_all), ("dave", to_one)] {
        let listed = hive.engine().list_recipients(caller(who), message, String::new(), 10);
        assert_eq!(reason(listed.await), Reason::MessageNotFound, "{who}");
    }
}

#[tokio::test]
async fn a_page_of_recipients_reads_a_bounded_number_of_agents() {
    let hive = Hive::new(&["alice", "zoe"]).await;
    let to_all = hive.send("alice", "*", "all hands").await;
    for number in 0..1001 {
        hive.create(&format!("later-{number:04}"), None, Policy::default()).await;
    }
    let page = hive.engine().list_recipients(caller("alice"), to_all, String::new(), 10);
    let (names, next) = page.await.expect("listed");
    assert!(names.is_empty() && next.is_some(), "{names:?} {next:?}");
    assert_eq!(recipients(&hive, "alice", to_all).await, ["zoe"]);
}

#[tokio::test]
async fn a_broadcast_without_other_agents_is_refused_with_the_cause() {
    let hive = Hive::new(&["alice"]).await;
    let receipt = hive.try_send("alice", "*", "anybody?").await.expect("accepted");
    assert_eq!(receipt.recipients, 0);
    assert_eq!(recipients(&hive, "alice", receipt.message).await, Vec::<String>::new());
    hive.engine().get_message(caller("alice"), receipt.message).await.expect("it is kept");
}

#[tokio::test]
async fn the_parent_of_a_root_is_the_operator() {
    let hive = Hive::new(&["root"]).await;
    hive.create("kid", Some("root"), Policy::default()).await;
    hive.send("kid", "<parent>", "to root").await;
    hive.send("root", "<parent>", "to you").await;
    hive.send("kid", "operator", "to you too").await;
    let bodies = |deliveries: Vec<hive_core::delivery::Delivery>| -> Vec<String> {
        deliveries.into_iter().map(|delivery| delivery.message.body).collect()
    };
    assert_eq!(bodies(hive.inbox("root").await), ["to root"]);
    assert_eq!(bodies(hive.inbox("operator").await), ["to you", "to you too"]);
}

#[tokio::test]
async fn the_operator_has_no_parent_and_no_mail_to_themselves() {
    let hive = Hive::new(&["alice"]).await;
    for to in ["operator", "<parent>"] {
        assert_eq!(
            reason(hive.try_send("operator", to, "hello").await),
            Reason::FieldInvalid,
            "{to}"
        );
    }
}

#[tokio::test]
async fn an_agent_writes_only_to_recipients_of_its_policy_and_to_its_parent() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let policy = Policy { allowed_recipients: vec!["bob".to_owned()], ..Policy::default() };
    hive.create("kid", Some("carol"), policy).await;
    hive.send("kid", "bob", "allowed by name").await;
    hive.send("kid", "carol", "my parent").await;
    hive.send("kid", "<parent>", "my parent").await;
    for to in ["alice", "*", "operator"] {
        let refusal = hive.try_send("kid", to, "hello").await.expect_err("not allowed");
        let Refusal::Mail(MailError::RecipientNotAllowed { recipient, allowed }) = refusal else {
            panic!("{refusal:?}")
        };
        assert_eq!(
            (recipient.as_str(), allowed),
            (to, vec!["bob".to_owned(), "<parent>".to_owned()])
        );
    }
    // The operator sees who tried what.
    assert_eq!(hive.count_events(EventKind::Refused).await, 3);
    assert_eq!(hive.inbox("alice").await.len() + hive.inbox("operator").await.len(), 0);
}

#[tokio::test]
async fn a_reply_answers_something_that_its_sender_sent_or_received() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let question = hive.send("alice", "bob", "well?").await;
    let reply = |to: &str| Send { in_reply_to: Some(question), ..mail(to, "well.") };
    let sent = hive.send_as(actor("bob"), reply("alice")).await.expect("accepted");
    assert_eq!(hive.delivery("alice", sent.message).await.message.in_reply_to, Some(question));
    let foreign = hive.send_as(actor("carol"), reply("alice")).await;
    assert_eq!(reason(foreign), Reason::MessageNotFound);
    hive.send_as(actor("operator"), reply("alice")).await.expect("the operator knows all");
    let unknown = Send { in_reply_to: Some(message(9999)), ..mail("alice", "?") };
    let unknown = hive.send_as(actor("operator"), unknown).await;
    assert_eq!(reason(unknown), Reason::MessageNotFound);
}

#[tokio::test]
async fn ids_are_short_numbers_from_one_sequence_and_refusals_use_none() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    assert_eq!(hive.send("alice", "bob", "one").await, message(1));
    assert_eq!(reason(hive.try_send("alice", "nobody", "x").await), Reason::AgentNotFound);
    assert_eq!(reason(hive.try_send("alice", "bob", "").await), Reason::FieldInvalid);
    assert_eq!(hive.send("alice", "bob", "two").await, message(2));
    let harness = hive.attach("bob").await;
    let run = hive.begin(&harness).await;
    assert_eq!(run.id.get(), 3);
    drop(harness);
    hive.crash().await;
    assert_eq!(hive.send("alice", "bob", "four").await, message(4));
}

#[tokio::test]
async fn a_broker_that_drains_takes_no_more_work() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    hive.engine().drain();
    assert_eq!(reason(done(waiting).await), Reason::Draining);
    assert_eq!(reason(hive.try_send("alice", "bob", "hello").await), Reason::Draining);
    assert_eq!(reason(hive.try_begin(&harness).await.map(|_| ())), Reason::Draining);
    assert_eq!(reason(hive.try_attach("alice", "", false).await.map(|_| ())), Reason::Draining);
}

#[tokio::test]
async fn a_receipt_counts_the_unsettled_mail_before_the_message() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for ahead in 0..3 {
        assert_eq!(
            hive.try_send("alice", "bob", "hello").await.expect("accepted").ahead,
            Some(ahead)
        );
    }
    let first = hive.receive("bob", 1).await.remove(0);
    assert_eq!(
        hive.try_send("alice", "bob", "hello").await.expect("accepted").ahead,
        Some(3),
        "a lease settles nothing"
    );
    hive.ack("bob", &first).await.expect("acked");
    assert_eq!(hive.try_send("alice", "bob", "hello").await.expect("accepted").ahead, Some(3));
    assert_eq!(hive.try_send("alice", "operator", "hello").await.expect("accepted").ahead, Some(0));
    assert_eq!(hive.try_send("operator", "*", "hello").await.expect("accepted").ahead, None);
}
