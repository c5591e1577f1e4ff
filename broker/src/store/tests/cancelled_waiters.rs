//! Waiters that are cancelled while the database fails: their callers are notified, whatever
//! happens to the batch.

use rusqlite::ffi::SQLITE_IOERR;

use super::super::AgentKey;
use super::super::waiter::{Poll, Progress};
use super::{Failed, Rig, aborted, disk, in_time};

fn nothing(so_far: u32) -> Result<Poll<u32>, Failed> {
    Ok(Poll::Pending { so_far, next_due: None })
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_while_the_database_is_gone_ends_at_once() {
    let rig = Rig::new();
    let mut waiter = rig.wait(AgentKey(2), |_| nothing(0)).await;
    assert!(matches!(waiter.next().await, Progress::Waiting { so_far: 0, .. }));
    let lost = rig.lose(SQLITE_IOERR).await;
    // Its result in the aborted batch is not known before the database has recovered.
    aborted(in_time(waiter.cancel()).await.expect("a result"));
    lost.put_back();
    rig.recovered().await;
    rig.send("after").await;
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_in_an_aborted_batch_ends_without_a_result() {
    let rig = Rig::new();
    let mut polls = 0;
    let waiter = rig.wait(AgentKey(2), move |_| {
        polls += 1;
        if polls == 2 { Ok(Poll::Ready(1)) } else { nothing(2) }
    });
    let mut waiter = waiter.await;
    assert!(matches!(waiter.next().await, Progress::Waiting { .. }));
    let hold = rig.hold().await;
    waiter.retry().await;
    let cancelled = tokio::spawn(waiter.cancel());
    // One poll puts it into the queue.
    tokio::task::yield_now().await;
    let fault = rig.queue(|_| Err::<(), _>(disk(SQLITE_IOERR))).await;
    aborted(hold.release().await);
    aborted(fault.result().await);
    let cancelled = in_time(cancelled).await.expect("no panic");
    assert!(cancelled.is_none(), "{cancelled:?}");
    rig.recovered().await;
}

#[tokio::test]
async fn a_waiter_that_is_cancelled_after_an_aborted_batch_gets_what_that_may_have_left() {
    let rig = Rig::new();
    let mut polls = 0;
    let waiter = rig.wait(AgentKey(2), move |_| {
        polls += 1;
        if polls == 1 { nothing(0) } else { Ok(Poll::Ready(1)) }
    });
    let mut waiter = waiter.await;
    assert!(matches!(waiter.next().await, Progress::Waiting { .. }));
    let hold = rig.hold().await;
    waiter.retry().await;
    let fault = rig.queue(|_| Err::<(), _>(disk(SQLITE_IOERR))).await;
    // The batch ends with the fault, so this is the first item after the recovery.
    let cancelled = tokio::spawn(waiter.cancel());
    tokio::task::yield_now().await;
    aborted(hold.release().await);
    aborted(fault.result().await);
    let cancelled = in_time(cancelled).await.expect("no panic");
    assert!(matches!(cancelled, Some(Ok(1))), "{cancelled:?}");
    rig.recovered().await;
}

#[tokio::test]
async fn a_new_waiter_is_refused_with_its_batch() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    let mut waiter = rig.wait(AgentKey(2), |_| nothing(0)).await;
    let fault = rig.queue(|_| Err::<(), _>(disk(SQLITE_IOERR))).await;
    aborted(hold.release().await);
    aborted(fault.result().await);
    match in_time(waiter.next()).await {
        Progress::Done(result) => aborted(result),
        Progress::Waiting { .. } => panic!("it is refused"),
    }
    rig.recovered().await;
}
