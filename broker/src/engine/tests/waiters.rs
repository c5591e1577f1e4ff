//! Waiters: a call that waits for mail gets it in the commit that accepts it.

use super::*;

fn patient() -> Receive {
    Receive { wait: Duration::from_secs(60), ..up_to(1) }
}

#[tokio::test]
async fn a_message_and_the_turn_of_a_harness_that_waited_for_it_are_one_commit() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let harness = hive.attach("bob").await;
    let waiting = hive.begin_waits(&harness).await;
    let commits = hive.commits();
    hive.send("alice", "bob", "hello").await;
    assert_eq!(done(waiting).await.expect("a turn").delivery().message.body, "hello");
    assert_eq!(hive.commits() - commits, 1);
}

#[tokio::test]
async fn one_message_goes_to_one_waiter_and_the_others_stay_pending() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let wait = || {
        let (engine, request) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
        hive.waits(async move { receive(&engine, actor("bob"), request, patient()).await })
    };
    let (first, second) = (wait().await, wait().await);
    hive.send("alice", "bob", "one").await;
    assert_eq!(bodies(&done(first).await.expect("taken").deliveries), ["one"]);
    hive.still_waits(&second).await;
    hive.send("alice", "bob", "two").await;
    assert_eq!(bodies(&done(second).await.expect("taken").deliveries), ["two"]);
}

#[tokio::test]
async fn mail_is_not_leased_to_a_cancelled_waiter() {
    let hive = Hive::new(&["alice", "bob"]).await;
    let (engine, request) = (Arc::clone(hive.engine()), hive.request("ReceiveMessages"));
    let gone =
        hive.waits(async move { receive(&engine, actor("bob"), request, patient()).await }).await;
    stop(gone).await;
    hive.send("alice", "bob", "hello").await;
    assert_eq!(bodies(&hive.receive("bob", 1).await), ["hello"]);
}
