//! Waiters that go on after they were ready: what wakes them, and what an aborted batch costs them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::ffi::SQLITE_IOERR;

use super::super::waiter::{Poll, Progress, Waiter, Wake};
use super::super::{AgentKey, Effect, Tx};
use super::{Failed, Rig, aborted, disk, in_time};

const AGENT: AgentKey = AgentKey(2);

/// Queues a standing waiter that takes one of what `ready` counts, and notes whether it repeats.
async fn stand(rig: &Rig, ready: &Arc<AtomicU32>) -> Waiter<(u32, bool), Failed> {
    let ready = Arc::clone(ready);
    rig.stand_after_checks(AGENT, move |_, Wake { is_repeat, .. }| {
        let one = |count: u32| count.checked_sub(1);
        let is_ready = ready.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one).is_ok();
        let so_far = (u32::from(is_ready), is_repeat);
        Ok(if is_ready { Poll::Ready(so_far) } else { Poll::Pending { so_far, next_due: None } })
    })
    .await
}

/// Waits until it is ready; the notes that it waits are left out.
async fn ready(waiter: &mut Waiter<(u32, bool), Failed>) -> (u32, bool) {
    loop {
        match in_time(waiter.next()).await {
            Progress::Done(result) => return result.expect("no error"),
            Progress::Waiting { .. } => {}
        }
    }
}

async fn wake(rig: &Rig, ready: &Arc<AtomicU32>) {
    ready.fetch_add(1, Ordering::SeqCst);
    rig.queue(|tx| {
        tx.after_commit(Effect::Hint(AGENT));
        Ok(())
    })
    .await
    .committed()
    .await;
}

#[tokio::test]
async fn it_is_ready_again_and_again_without_a_new_item() {
    let (rig, count) = (Rig::new(), Arc::default());
    let mut waiter = stand(&rig, &count).await;
    assert!(matches!(in_time(waiter.next()).await, Progress::Waiting { so_far: (0, false), .. }));
    for _ in 0..3 {
        let commits = rig.commits.all().len();
        wake(&rig, &count).await;
        assert_eq!(ready(&mut waiter).await, (1, false));
        assert_eq!(
            rig.commits.all().len(),
            commits + 1,
            "it is ready with the commit that woke it"
        );
    }
}

#[tokio::test]
async fn what_comes_in_the_batch_of_a_result_is_found_in_the_next_one() {
    let (rig, count) = (Rig::new(), Arc::new(AtomicU32::new(1)));
    let hold = rig.hold().await;
    // Ready as the first item of the batch, and woken by the second.
    let mut waiter = stand(&rig, &count).await;
    let more = Arc::clone(&count);
    let second = rig.queue(move |tx| {
        more.fetch_add(1, Ordering::SeqCst);
        tx.after_commit(Effect::Hint(AGENT));
        Ok(())
    });
    let second = second.await;
    hold.release().await.expect("committed");
    second.committed().await;
    assert_eq!(ready(&mut waiter).await, (1, false));
    assert_eq!(ready(&mut waiter).await, (1, false), "no other wake was needed");
}

#[tokio::test]
async fn the_note_that_it_waits_outlives_a_wake_in_its_batch() {
    let rig = Rig::new();
    let hold = rig.hold().await;
    // As a stream does it: only what its caller asks for, or what is new, is a note.
    let poll = |_: &Tx<'_>, wake: Wake| {
        let note = Poll::Pending { so_far: (), next_due: None };
        Ok::<_, Failed>(if wake.is_asked { note } else { Poll::Unchanged })
    };
    let mut waiter = rig.stand_after_checks(AGENT, poll).await;
    let wakes = rig.queue(|tx| {
        tx.after_commit(Effect::Hint(AGENT));
        Ok(())
    });
    let wakes = wakes.await;
    hold.release().await.expect("committed");
    wakes.committed().await;
    assert!(matches!(in_time(waiter.next()).await, Progress::Waiting { .. }));
}

#[tokio::test]
async fn the_poll_after_an_aborted_result_is_a_repeat_and_the_next_one_is_not() {
    let (rig, count) = (Rig::new(), Arc::new(AtomicU32::new(1)));
    let mut waiter = stand(&rig, &count).await;
    assert_eq!(ready(&mut waiter).await, (1, false));
    let hold = rig.hold().await;
    // One for the batch that is aborted, and one for the retry of the recovery.
    count.store(2, Ordering::SeqCst);
    waiter.retry().await;
    let fault = rig.queue(|_| Err::<(), _>(disk(SQLITE_IOERR))).await;
    aborted(hold.release().await);
    aborted(fault.result().await);
    rig.recovered().await;
    assert_eq!(ready(&mut waiter).await, (1, true));
    wake(&rig, &count).await;
    assert_eq!(ready(&mut waiter).await, (1, false));
}

#[tokio::test]
async fn an_error_ends_it() {
    let rig = Rig::new();
    let mut waiter: Waiter<u32, Failed> =
        rig.stand_after_checks(AGENT, |_, _| Err(Failed::Refused)).await;
    assert!(matches!(in_time(waiter.next()).await, Progress::Done(Err(Failed::Refused))));
    waiter.retry().await;
    assert!(matches!(in_time(waiter.next()).await, Progress::Done(Err(Failed::Store(_)))));
}
