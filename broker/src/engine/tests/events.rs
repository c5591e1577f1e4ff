//! Events and messages: committed facts without a gap, seen only by the agents that they concern.

use hive_core::event::Event;

use super::*;

#[tokio::test]
async fn events_are_numbered_without_gaps_also_where_commands_were_refused() {
    let mut hive = Hive::new(&["alice", "bob"]).await;
    for round in 0..20 {
        hive.send("alice", "bob", "hello").await;
        assert!(hive.try_send("alice", "nobody", "hello").await.is_err());
        assert!(hive.decide("bob", message(9999), Decision::Ack).await.is_err());
        if round % 7 == 0 {
            hive.crash().await;
        }
    }
    let numbers: Vec<u64> = hive.events().await.iter().map(|event| event.sequence).collect();
    assert_eq!(numbers, (1..=22).collect::<Vec<u64>>());
}

#[tokio::test]
async fn commands_committed_together_roll_back_only_failed_ones() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut tasks = Vec::new();
    for number in 0..60 {
        let engine = Arc::clone(hive.engine());
        let key = hive.request("SendMessage");
        let to = if number % 3 == 0 { "nobody" } else { "bob" };
        tasks.push(tokio::spawn(async move {
            engine.send(actor("alice"), key, mail(to, "hello")).await
        }));
    }
    let mut accepted = Vec::new();
    for task in tasks {
        match done(task).await {
            Ok(receipt) => accepted.push(receipt.message),
            Err(refusal) => assert_eq!(refusal.reason(), Reason::AgentNotFound),
        }
    }
    accepted.sort();
    assert_eq!(accepted, (1..=40).map(message).collect::<Vec<MessageId>>());
    let events = hive.events().await;
    assert_eq!(
        events.iter().filter(|event| event.kind() == EventKind::MessageAccepted).count(),
        40
    );
    assert_eq!(events.last().expect("events").sequence, events.len() as u64);
}

#[tokio::test]
async fn a_reader_may_stop_and_go_on() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for _ in 0..10 {
        hive.send("alice", "bob", "hello").await;
    }
    let all = hive.events().await;
    let (mut read, mut after) = (Vec::new(), 0);
    loop {
        let (page, span) = hive.engine().events_after(after, None, 5).await.expect("read");
        assert_eq!((span.first, span.last), (1, 12));
        let Some(last) = page.last() else { break };
        after = last.sequence;
        read.extend(page);
    }
    assert_eq!(read, all);
}

#[tokio::test]
async fn followers_get_a_hint_for_each_commit() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let mut newest = hive.engine().hints().last_event();
    // A caller has its receipt first.
    newest.wait_for(|last| *last == 2).await.expect("the broker runs");
    hive.send("alice", "bob", "hello").await;
    newest.changed().await.expect("the broker runs");
    assert_eq!(*newest.borrow_and_update(), 3);
    assert!(hive.try_send("alice", "nobody", "hello").await.is_err());
    assert!(!newest.has_changed().expect("the broker runs"));
}

#[tokio::test]
async fn agents_see_their_own_events_and_the_operator_everybodys() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let engine = hive.engine();
    let scope = engine.event_scope(caller("bob"), String::new()).await.expect("his own");
    assert_eq!(scope, Some(hive.row("bob").await.key));
    let own = engine.events_after(0, scope, 10).await.expect("read").0;
    let kinds: Vec<EventKind> = own.iter().map(Event::kind).collect();
    assert_eq!(kinds, [EventKind::AgentCreated, EventKind::MessageAccepted]);
    assert_eq!(
        reason(engine.event_scope(caller("bob"), "alice".to_owned()).await),
        Reason::NotYours
    );
    assert_eq!(engine.event_scope(caller("operator"), String::new()).await.expect("all"), None);
    assert_eq!(
        engine.event_scope(caller("operator"), "bob".to_owned()).await.expect("bob's"),
        scope
    );
}

#[tokio::test]
async fn the_story_of_a_message_can_be_read_in_the_log() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let sent = hive.send("alice", "bob", "hello").await;
    let harness = hive.attach("bob").await;
    hive.turn(&harness, Outcome::Drained).await;
    hive.turn(&harness, Outcome::Ok).await;
    let story: Vec<EventKind> = hive
        .events()
        .await
        .iter()
        .filter(|event| event.message_id == Some(sent))
        .map(Event::kind)
        .collect();
    use EventKind::{
        DeliveryAcked, DeliveryLeased, DeliveryReturned, MessageAccepted, TurnBegun, TurnEnded,
    };
    let expected = [
        MessageAccepted,
        TurnBegun,
        DeliveryLeased,
        DeliveryReturned,
        TurnEnded,
        TurnBegun,
        DeliveryLeased,
        DeliveryAcked,
        TurnEnded,
    ];
    assert_eq!(story, expected);
}

#[tokio::test]
async fn messages_are_seen_by_their_sender_and_recipients_only() {
    let hive = Hive::new(&["alice", "bob", "carol"]).await;
    let sent = hive.send("alice", "bob", "between us").await;
    for who in ["alice", "bob", "operator"] {
        assert_eq!(
            hive.engine().get_message(caller(who), sent).await.expect("theirs").body,
            "between us"
        );
    }
    assert_eq!(
        reason(hive.engine().get_message(caller("carol"), sent).await),
        Reason::MessageNotFound
    );
    let list = |who: &str, whose: &str| {
        hive.engine().list_messages(caller(who), whose.to_owned(), None, None, 10)
    };
    assert_eq!(list("alice", "").await.expect("hers").0.len(), 1);
    assert_eq!(list("carol", "").await.expect("hers").0.len(), 0);
    assert_eq!(reason(list("carol", "bob").await), Reason::NotYours);
    assert_eq!(list("operator", "").await.expect("all").0.len(), 1);
    assert_eq!(list("operator", "carol").await.expect("hers").0.len(), 0);
}

#[tokio::test]
async fn a_thread_is_a_message_and_its_replies() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let first = hive.send("alice", "bob", "well?").await;
    let reply = Send { in_reply_to: Some(first), ..mail("alice", "well.") };
    hive.send_as(actor("bob"), reply).await.expect("accepted");
    hive.send("alice", "bob", "something else").await;
    let (thread, more) = hive
        .engine()
        .list_messages(caller("bob"), String::new(), Some(first), None, 10)
        .await
        .expect("listed");
    let bodies: Vec<&str> = thread.iter().map(|message| message.body.as_str()).collect();
    assert_eq!((bodies, more), (vec!["well.", "well?"], false));
}
