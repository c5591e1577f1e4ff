//! Faults: a full or failing disk aborts the whole batch with the error "unknown, retry", and no
//! call is answered until the database is sound again.

use std::sync::Arc;

use rusqlite::ffi::SQLITE_FULL;

use super::super::{Health, StoreError};
use super::{Failed, Rig, aborted, disk, in_time, read, send, write};

#[tokio::test]
async fn nothing_is_written_before_its_commit() {
    let rig = Rig::new();
    let spills = rig.write(|tx| {
        let spill = tx.connection().pragma_query_value(None, "cache_spill", |row| row.get(0))?;
        Ok::<i64, Failed>(spill)
    });
    assert_eq!(spills.await.expect("read"), 0);
}

#[tokio::test]
async fn a_full_disk_aborts_the_batch_and_the_store_recovers() {
    let rig = Rig::new();
    rig.send("before").await;
    let full = rig.write(|tx| {
        let pages: i64 =
            tx.connection().pragma_query_value(None, "page_count", |row| row.get(0))?;
        Ok::<_, Failed>(tx.connection().pragma_update_and_check(
            None,
            "max_page_count",
            pages,
            |_| Ok(()),
        )?)
    });
    full.await.expect("from now on there is no room for another page");
    let before = rig.commits.all().len();

    let hold = rig.hold().await;
    let innocent = rig.queue_send("small, and first").await;
    let large = rig.queue_send("large ".repeat(100_000)).await;
    let late = rig.queue_send("small, and last").await;
    aborted(hold.release().await);
    aborted(innocent.result().await);
    aborted(large.result().await);
    rig.recovered().await;
    // The limit was the connection's own; on the new one there is room again. No caller got the
    // numbers of the aborted batch.
    assert_eq!(
        late.committed().await,
        2,
        "it was behind the fault, and is first in the next batch"
    );
    assert_eq!(rig.send("after").await, 3);
    rig.holds(&["before", "small, and last", "after"]).await;
    assert_eq!(rig.commits.all().len(), before + 2, "an aborted batch has no effects");
}

#[tokio::test]
async fn the_store_recovers_from_each_fault() {
    let rig = Rig::new();
    for number in 1..=5 {
        let faulty = rig.write(|tx| {
            write(tx, "aborted")?;
            Err::<(), _>(disk(SQLITE_FULL))
        });
        aborted(faulty.await);
        rig.recovered().await;
        assert_eq!(rig.send("hello").await, number);
    }
}

#[tokio::test]
async fn while_the_database_is_gone_nothing_is_accepted_or_answered() {
    let rig = Rig::new();
    rig.send("before").await;
    rig.holds(&["before"]).await;
    let lost = rig.lose(SQLITE_FULL).await;
    // A caller that got "unknown" finds the store already faulted.
    assert!(
        matches!(&*rig.health().borrow(), Health::Faulted(problem) if problem.contains("full"))
    );
    aborted(read(&rig).await);
    aborted(send(&rig, "while it is gone").await);
    assert_eq!(rig.commits.all().len(), 1);
    lost.put_back();
    rig.recovered().await;
    assert_eq!(rig.send("after").await, 2);
    rig.holds(&["before", "after"]).await;
}

#[tokio::test]
async fn a_query_during_a_fault_is_not_answered() {
    let rig = Rig::new();
    rig.send("before").await;
    let (begun, begins) = tokio::sync::oneshot::channel();
    let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
    let reader = Arc::clone(&rig.store);
    let query = tokio::spawn(async move {
        let read = reader.read(move |_, _| {
            begun.send(()).expect("the test waits");
            goes_on.recv().expect("the test goes on");
            Ok::<_, Failed>(())
        });
        read.await
    });
    begins.await.expect("it reads");
    let lost = rig.lose(SQLITE_FULL).await;
    go_on.send(()).expect("it waits");
    aborted(query.await.expect("no panic"));
    lost.put_back();
    rig.recovered().await;
}

#[tokio::test]
async fn a_faulted_store_can_be_closed() {
    let rig = Rig::new();
    rig.lose(SQLITE_FULL).await;
    in_time(tokio::task::spawn_blocking(move || drop(rig))).await.expect("no panic");
}

#[tokio::test]
async fn an_ordinary_mistake_of_a_command_is_no_fault() {
    let rig = Rig::new();
    let health = rig.health();
    let wrong = rig
        .write(|tx| Ok::<_, Failed>(tx.connection().execute("SELECT * FROM nowhere", [])?))
        .await;
    assert!(matches!(wrong, Err(Failed::Store(StoreError::Sql(_)))));
    assert!(!health.has_changed().expect("the store is open"));
}
