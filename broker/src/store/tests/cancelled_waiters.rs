//! Waiters that are cancelled while the database fails: their callers are notified, whatever
//! happens to the batch.

use std::sync::Arc;

use super::super::waiter::{Poll, Progress};
use super::super::{AgentKey, StoreError};
use super::{Failed, GUARD, Hold, directory, open, queue, recovered, said};

/// What a disk says that fails.
fn disk_fails() -> Failed {
    rusqlite::Error::SqliteFailure(rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR), None)
        .into()
}

fn nothing(so_far: u32) -> Result<Poll<u32>, Failed> {
    Ok(Poll::Pending { so_far, next_due: None })
}

#[tokio::test]
async fn one_that_is_stopped_while_the_database_is_gone_ends_at_once() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let mut waiter = store.wait(AgentKey(2), |_| nothing(0)).await;
    assert!(matches!(waiter.next().await, Progress::Waiting { so_far: 0, .. }));
    let (here, aside) = (dir.path().join("hive.db"), dir.path().join("aside.db"));
    let (from, to) = (here.clone(), aside.clone());
    let fault = store.write(move |_| {
        std::fs::rename(&from, &to).expect("moved");
        Err::<(), _>(disk_fails())
    });
    assert!(fault.await.expect_err("void").is_unavailable());
    // Its result in the aborted batch is not known before the database has recovered.
    let stopped = tokio::time::timeout(GUARD, waiter.cancel())
        .await
        .expect("it ends while the database is gone");
    assert!(
        matches!(stopped, Some(Err(Failed::Store(StoreError::Unavailable { .. })))),
        "{stopped:?}"
    );
    std::fs::rename(&aside, &here).expect("moved back");
    recovered(&store).await;
    said(&store, "after").await.expect("committed");
}

#[tokio::test]
async fn a_waiter_cancelled_in_an_aborted_batch_ends_without_mail() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let store = Arc::new(store);
    let mut runs = 0;
    let look = store.wait(AgentKey(2), move |_| {
        runs += 1;
        if runs == 2 { Ok(Poll::Ready(1)) } else { nothing(2) }
    });
    let mut waiter = look.await;
    assert!(matches!(waiter.next().await, Progress::Waiting { .. }));
    let hold = Hold::on(&store).await;
    waiter.retry().await;
    let stopping = tokio::spawn(waiter.cancel());
    // One poll puts it into the queue.
    tokio::task::yield_now().await;
    let fault = queue(&store, |_| Err::<(), _>(disk_fails())).await;
    assert!(hold.release().await.expect_err("void").is_unavailable());
    assert!(fault.await.expect("no panic").expect_err("void").is_unavailable());
    let stopped = tokio::time::timeout(GUARD, stopping).await.expect("it ends").expect("no panic");
    assert!(stopped.is_none(), "{stopped:?}");
    recovered(&store).await;
}

#[tokio::test]
async fn a_new_one_is_refused_with_its_batch() {
    let dir = directory();
    let (store, _) = open(dir.path());
    let store = Arc::new(store);
    let hold = Hold::on(&store).await;
    let mut waiter = store.wait(AgentKey(2), |_| nothing(0)).await;
    let fault = queue(&store, |_| Err::<(), _>(disk_fails())).await;
    assert!(hold.release().await.expect_err("void").is_unavailable());
    assert!(fault.await.expect("no panic").expect_err("void").is_unavailable());
    let answer = tokio::time::timeout(GUARD, waiter.next()).await.expect("it is answered");
    assert!(
        matches!(answer, Progress::Done(Err(Failed::Store(StoreError::Unavailable { .. })))),
        "{answer:?}"
    );
    recovered(&store).await;
}
