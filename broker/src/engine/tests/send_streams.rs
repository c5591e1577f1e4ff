//! Streams of messages: order, and what ends them.

use super::*;
use crate::engine::mail::send_stream::SendStream;
use crate::store::request::RequestKey;

/// Returns the requests to send these bodies.
fn group(hive: &Hive, bodies: &[&str]) -> Vec<(RequestKey, Send)> {
    bodies.iter().map(|body| (hive.request("SendMessage"), mail("bob", body))).collect()
}

fn stream(hive: &Hive) -> SendStream {
    SendStream::new(Arc::clone(hive.engine()), actor("alice"))
}

#[tokio::test]
async fn a_group_is_one_commit_in_order_with_a_receipt_for_each() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.idle().await;
    let before = hive.commits();
    let (answers, end) = stream(&hive).send(group(&hive, &["0", "1", "2"])).await;
    assert_eq!(hive.commits(), before + 1);
    let ids: Vec<_> = answers.into_iter().map(|answer| answer.expect("accepted").message).collect();
    assert_eq!((ids, end.is_none()), (vec![message(1), message(2), message(3)], true));
}

#[tokio::test]
async fn a_final_refusal_ends_nothing() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut sends = group(&hive, &["0", "1", "2"]);
    sends[1].1 = mail("nobody", "1");
    let mut stream = stream(&hive);
    let (answers, end) = stream.send(sends).await;
    let reasons: Vec<_> =
        answers.into_iter().map(|one| one.err().map(|refusal| refusal.reason())).collect();
    assert_eq!(reasons, [None, Some(Reason::AgentNotFound), None]);
    assert!(end.is_none());
    assert!(stream.send(group(&hive, &["3"])).await.1.is_none());
    assert_eq!(hive.inbox("bob").await.len(), 3);
}

#[tokio::test]
async fn a_refusal_worth_a_retry_ends_it_and_nothing_behind_it_is_accepted() {
    let limits = Limits { inbox_depth_max: 2, ..Limits::default() };
    let hive = Hive::with_limits(&["alice", "bob", "carol"], limits).await;
    let mut sends = group(&hive, &["0", "1", "2", "3"]);
    sends[3].1 = mail("carol", "3");
    let mut stream = stream(&hive);
    let (answers, end) = stream.send(sends.clone()).await;
    assert_eq!(answers.into_iter().filter(Result::is_ok).count(), 2);
    assert_eq!(end.map(|refusal| refusal.reason()), Some(Reason::InboxFull));
    assert_eq!(hive.inbox("carol").await, []);
    // The stream is over, whatever comes on it.
    let (answers, end) = stream.send(group(&hive, &["4"])).await;
    assert!(answers.is_empty() && end.is_some());
    // A repeat of all that has no answer keeps the order.
    let taken = hive.receive("bob", 1).await;
    hive.ack("bob", &taken[0]).await.expect("acked");
    let (answers, end) = self::stream(&hive).send(sends.split_off(2)).await;
    assert!(answers.iter().all(Result::is_ok) && answers.len() == 2 && end.is_none());
}

#[tokio::test]
async fn an_unknown_outcome_ends_it() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut stream = stream(&hive);
    let sends = group(&hive, &["0", "1"]);
    let (answers, end) =
        hive.voided(async move { Ok(stream.send(sends).await) }).await.expect("it");
    assert!(answers.is_empty());
    assert_eq!(end.map(|refusal| refusal.reason()), Some(Reason::StorageUnavailable));
}

#[tokio::test]
async fn the_end_of_its_turn_ends_it() {
    let (hive, _harness, run) = in_mid_turn().await;
    let mut stream = SendStream::new(Arc::clone(hive.engine()), run.actor());
    let to = |body| vec![(hive.request("SendMessage"), mail("alice", body))];
    assert!(stream.send(to("in the turn")).await.1.is_none());
    hive.end(&run, Outcome::Ok).await;
    let (answers, end) = stream.send(to("after it")).await;
    assert!(answers.is_empty());
    assert_eq!(end.map(|refusal| refusal.reason()), Some(Reason::TurnEnded));
}

#[tokio::test]
async fn a_repeated_message_has_its_first_receipt() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sends = group(&hive, &["0", "1"]);
    let (first, _) = stream(&hive).send(sends.clone()).await;
    let (again, _) = stream(&hive).send(sends).await;
    let ids = |answers: Vec<Result<crate::engine::mail::send::Receipt, Refusal>>| -> Vec<_> {
        answers.into_iter().map(|answer| answer.expect("accepted").message).collect()
    };
    assert_eq!(ids(first), ids(again));
    assert_eq!(hive.inbox("bob").await.len(), 2);
}
