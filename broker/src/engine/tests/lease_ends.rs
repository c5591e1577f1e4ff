//! The ends of leases: each expires in time, whatever the writer has in memory.

use hive_core::settlement::{Action, Entry};

use super::*;

/// More agents than one step of the sweep reads.
const MANY: u64 = 205;

/// Sweeps until nothing is due.
async fn sweep_all(hive: &Hive) {
    while hive.sweep().await.is_some_and(|next| next <= hive.now().boot) {}
}

#[tokio::test]
async fn a_lease_that_begins_before_another_has_ended_expires_in_its_own_time() {
    let hive = Hive::new(&["alice", "bob"]).await;
    for body in ["one", "two"] {
        hive.send("alice", "bob", body).await;
    }
    let first = hive.receive("bob", 1).await;
    hive.pass_and_sweep(30).await;
    hive.receive("bob", 1).await;
    hive.ack("bob", &first[0]).await.expect("acked");
    hive.pass(30);
    sweep_all(&hive).await;
    assert_eq!(hive.state("bob", message(2)).await, (State::Leased, 1));
    let next = hive.sweep().await.expect("it is known when the lease ends");
    assert_eq!(next.since(hive.now().boot).as_secs(), 30);
    hive.pass(30);
    sweep_all(&hive).await;
    assert_eq!(hive.state("bob", message(2)).await.0, State::Ready);
    assert_eq!(hive.sweep().await, None, "nothing is leased");
}

#[tokio::test]
async fn a_lease_whose_ack_was_void_still_expires() {
    let hive = Hive::new(&["alice", "bob"]).await;
    hive.send("alice", "bob", "hello").await;
    let taken = hive.receive("bob", 1).await;
    let engine = Arc::clone(hive.engine());
    let token = taken[0].token.clone().expect("a consumer's lease");
    let entry = Entry::of_lease(token, Action::Ack);
    let ack = async move { engine.settle_one(actor("bob"), entry).await };
    hive.voided(ack).await.expect_err("its batch was aborted");
    hive.pass(60);
    sweep_all(&hive).await;
    assert_eq!(hive.state("bob", message(1)).await.0, State::Ready);
}

#[tokio::test]
async fn leases_of_many_agents_expire_after_a_restart() {
    let names: Vec<String> = (0..MANY).map(|number| format!("agent-{number}")).collect();
    let mut hive = Hive::new(&["alice"]).await;
    for name in &names {
        hive.create(name, None, Policy::default()).await;
        hive.send("alice", name, "hello").await;
        assert_eq!(hive.receive(name, 1).await.len(), 1);
    }
    hive.crash().await;
    hive.pass(59);
    sweep_all(&hive).await;
    assert_eq!(hive.numbers(&names[0]).await.leased_count, 1);
    hive.pass(1);
    sweep_all(&hive).await;
    for name in &names {
        let numbers = hive.numbers(name).await;
        assert_eq!((numbers.leased_count, numbers.ready_count), (0, 1), "{name}");
    }
}
