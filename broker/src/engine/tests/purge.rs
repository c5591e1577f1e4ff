//! Purged agents: their unsettled mail is dropped, their name is free, and nothing of theirs
//! reaches a later agent of that name.

use super::*;
use crate::engine::operator::purge::Purged;
use crate::store::request::RequestKey;

async fn try_purge(hive: &Hive, agent: &str, request: RequestKey) -> Result<Purged, Refusal> {
    hive.engine().purge_agent(caller("operator"), request, name(agent)).await
}

async fn purge(hive: &Hive, agent: &str) -> Purged {
    try_purge(hive, agent, hive.request("RetireAgent")).await.expect("purged")
}

async fn finish(hive: &Hive) {
    for row in hive.engine().list_purges(0, 100).await.expect("listed").0 {
        hive.engine()
            .finish_purge(caller("operator"), hive.request("FinishPurge"), row.id)
            .await
            .expect("finished");
    }
}

#[tokio::test]
async fn unsettled_mail_of_every_state_is_dropped_by_the_operator() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let held = hive.send("alice", "bob", "held").await;
    hive.turn(&harness, Outcome::Cancelled).await;
    let acked = hive.send("alice", "bob", "acked").await;
    hive.turn(&harness, Outcome::Ok).await;
    let leased = hive.send("alice", "bob", "leased").await;
    hive.begin(&harness).await;
    let ready = hive.send("alice", "bob", "ready").await;
    drop(harness);
    let key = hive.row("bob").await.key;
    assert_eq!(purge(&hive, "bob").await.dropped, 3);
    for (message, wanted) in [
        (held, State::Dropped),
        (leased, State::Dropped),
        (ready, State::Dropped),
        (acked, State::Acked),
    ] {
        let row = hive.engine().store().read(move |conn, _| {
            Ok::<_, Refusal>(crate::store::delivery::get(conn, key, message)?)
        });
        let row = row.await.expect("read").expect("there");
        assert_eq!(
            (row.progress.state, row.settled_by.is_empty()),
            (wanted, wanted == State::Acked),
            "{message}"
        );
    }
}

#[tokio::test]
async fn dead_letters_and_large_inboxes_are_dropped_too() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "poison").await;
    let leased = hive.receive("bob", 1).await.remove(0);
    assert_eq!(hive.nack("bob", &leased, true).await.expect("nacked"), State::Dead);
    for number in 0..250 {
        hive.send("alice", "bob", &number.to_string()).await;
    }
    assert_eq!(purge(&hive, "bob").await.dropped, 251);
    assert_eq!(hive.engine().totals().await.expect("totals").dead, 0);
    assert_eq!(
        hive.numbers("alice").await.stored_bytes,
        0,
        "nothing of its senders' is unsettled any more"
    );
}

#[tokio::test]
async fn a_later_agent_of_the_name_inherits_nothing_and_sent_mail_stays() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    let request = hive.request("SendMessage");
    let sent = hive
        .send_with("bob", request.clone(), "alice", "from the first bob")
        .await
        .expect("sent")
        .message;
    hive.send("alice", "bob", "for the first bob").await;
    let old = hive.attach("bob").await;
    purge(&hive, "bob").await;
    assert_eq!(reason(hive.try_send("alice", "bob", "x").await), Reason::AgentNotFound);
    finish(&hive).await;
    hive.create("bob", None, Policy::default()).await;
    hive.crash().await;
    let row = hive.row("bob").await;
    assert_eq!((row.session_epoch, row.session_token, row.retired), (0, None, false));
    assert!(hive.inbox("bob").await.is_empty());
    assert_eq!(
        hive.try_attach("bob", &old.token, false).await.expect("attached").attachment().epoch(),
        1
    );
    // The id of a request of the first one is no id of the second one's.
    let again = hive.send_with("bob", request, "alice", "from the second bob").await;
    assert!(
        again.is_err_and(|refusal| refusal.reason() == Reason::HarnessAttached),
        "its harness is attached, and no request is replayed"
    );
    let kept = hive.delivery("alice", sent).await;
    assert_eq!(
        (kept.message.origin.to_string().as_str(), kept.message.body.as_str()),
        ("bob", "from the first bob")
    );
}

#[tokio::test]
async fn no_harness_attaches_before_the_directories_are_deleted() {
    let hive = Hive::new(&["bob"]).await;
    let purged = purge(&hive, "bob").await;
    let (listed, _) = hive.engine().list_purges(0, 100).await.expect("listed");
    assert_eq!(
        (listed.len(), Some(listed[0].id), listed[0].name.as_str()),
        (1, purged.directories, "bob")
    );
    hive.create("bob", None, Policy::default()).await;
    let refusal = hive.try_attach("bob", "", false).await.map(|_| ()).expect_err("not yet");
    assert_eq!((refusal.reason(), refusal.retry_after().is_some()), (Reason::AgentPurging, true));
    finish(&hive).await;
    finish(&hive).await;
    hive.attach("bob").await;
    assert_eq!(hive.count_events(EventKind::PurgeFinished).await, 1);
}

#[tokio::test]
async fn a_repeated_purge_does_not_touch_the_next_agent_of_the_name() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let request = hive.request("RetireAgent");
    let first = try_purge(&hive, "bob", request.clone()).await.expect("purged");
    finish(&hive).await;
    hive.create("bob", None, Policy::default()).await;
    hive.send("alice", "bob", "for the second bob").await;
    assert_eq!(try_purge(&hive, "bob", request).await.expect("answered again"), first);
    assert_eq!(hive.inbox("bob").await.len(), 1);
}

#[tokio::test]
async fn a_retired_agent_is_purged_and_its_name_no_longer_listed() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "kept").await;
    assert_eq!(hive.retire("bob").await, 1);
    assert_eq!(purge(&hive, "bob").await.dropped, 1);
    let (listed, _) = hive.engine().list_agents(String::new(), true, 10).await.expect("listed");
    assert_eq!(listed.len(), 1);
    assert_eq!(
        reason(try_purge(&hive, "bob", hive.request("RetireAgent")).await),
        Reason::AgentNotFound
    );
    // Its events are still listed under its name.
    assert!(
        hive.events()
            .await
            .iter()
            .any(|event| event.kind() == EventKind::AgentPurged && event.agent == "bob")
    );
}

#[tokio::test]
async fn a_call_of_an_agent_after_a_purge_is_that_of_the_new_one() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    purge(&hive, "bob").await;
    assert!(done(waiting).await.is_err());
    finish(&hive).await;
    hive.create("bob", None, Policy::default()).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    hive.send("alice", "bob", "hello").await;
    assert_eq!(done(waiting).await.expect("woken").delivery().message.body, "hello");
}
