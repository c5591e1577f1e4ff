//! Many waiters that one command wakes: they are polled in several batches, oldest first, with
//! other commands in between.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use rusqlite::ffi::SQLITE_IOERR;

use super::super::waiter::{Poll, Progress, Waiter};
use super::super::{AgentKey, Effect};
use super::{Failed, Rig, aborted, disk, in_time};

const AGENT: AgentKey = AgentKey(2);
const WAITERS: usize = 300;
/// One that is polled in the second batch, where the writer is held.
const HELD: usize = 200;

/// What the waiters share.
struct Shared {
    is_ready: AtomicBool,
    /// The numbers of the waiters in the order of their polls, once they may be ready.
    polled: Mutex<Vec<usize>>,
    /// Tells that the poll of [`HELD`] runs, and waits until it may go on; once.
    hold: Mutex<Option<(std::sync::mpsc::Sender<()>, std::sync::mpsc::Receiver<()>)>>,
}

impl Shared {
    fn polled(&self) -> Vec<usize> {
        self.polled.lock().expect("no poll panics").clone()
    }

    fn poll(&self, number: usize) -> Poll<usize> {
        if !self.is_ready.load(Ordering::SeqCst) {
            return Poll::Pending { so_far: number, next_due: None };
        }
        self.polled.lock().expect("no poll panics").push(number);
        if number == HELD
            && let Some((begun, go)) = self.hold.lock().expect("no poll panics").take()
        {
            begun.send(()).expect("the test waits");
            go.recv().expect("the test lets go");
        }
        Poll::Ready(number)
    }
}

/// Waiters that were woken by one command, and the writer in the second batch of their polls.
struct Woken {
    rig: Rig,
    shared: Arc<Shared>,
    waiters: Vec<Waiter<usize, Failed>>,
    go: std::sync::mpsc::Sender<()>,
}

impl Woken {
    async fn new() -> Self {
        let rig = Rig::new();
        let (begun, is_held) = std::sync::mpsc::channel();
        let (go, may_go) = std::sync::mpsc::channel();
        let shared = Arc::new(Shared {
            is_ready: AtomicBool::new(false),
            polled: Mutex::default(),
            hold: Mutex::new(Some((begun, may_go))),
        });
        let mut waiters = Vec::new();
        for number in 0..WAITERS {
            let shared = Arc::clone(&shared);
            let mut waiter: Waiter<usize, Failed> =
                rig.wait(AGENT, move |_| Ok(shared.poll(number))).await;
            assert!(matches!(in_time(waiter.next()).await, Progress::Waiting { .. }));
            waiters.push(waiter);
        }
        let is_ready = Arc::clone(&shared);
        let wake = rig.queue(move |tx| {
            is_ready.is_ready.store(true, Ordering::SeqCst);
            tx.after_commit(Effect::Hint(AGENT));
            Ok(())
        });
        wake.await.committed().await;
        let held = tokio::task::spawn_blocking(move || is_held.recv());
        in_time(held).await.expect("no panic").expect("the second batch runs");
        Self { rig, shared, waiters, go }
    }

    /// Checks that each waiter is ready once.
    async fn all_are_ready(mut self) {
        for (number, waiter) in self.waiters.iter_mut().enumerate() {
            loop {
                match in_time(waiter.next()).await {
                    Progress::Done(done) => break assert_eq!(done.expect("no error"), number),
                    Progress::Waiting { .. } => {}
                }
            }
        }
    }
}

#[tokio::test]
async fn a_command_runs_between_the_polls_of_many_waiters() {
    let woken = Woken::new().await;
    let shared = Arc::clone(&woken.shared);
    let other = woken.rig.queue(move |_| Ok(shared.polled().len())).await;
    woken.go.send(()).expect("the writer is held");
    let polled_before = other.committed().await;
    assert!(polled_before < WAITERS, "it waited for all of them");
    let shared = Arc::clone(&woken.shared);
    woken.all_are_ready().await;
    assert_eq!(shared.polled(), (0..WAITERS).collect::<Vec<_>>(), "oldest first, each once");
}

#[tokio::test]
async fn waiters_that_are_still_to_be_polled_survive_an_aborted_batch() {
    let woken = Woken::new().await;
    let fault = woken.rig.queue(|_| Err::<(), _>(disk(SQLITE_IOERR))).await;
    woken.go.send(()).expect("the writer is held");
    aborted(fault.result().await);
    woken.rig.recovered().await;
    woken.all_are_ready().await;
}

#[tokio::test]
async fn a_woken_waiter_whose_caller_is_gone_is_not_polled() {
    let mut woken = Woken::new().await;
    let gone = woken.waiters.pop().expect("there are some");
    drop(gone);
    woken.go.send(()).expect("the writer is held");
    let shared = Arc::clone(&woken.shared);
    woken.all_are_ready().await;
    assert_eq!(shared.polled(), (0..WAITERS - 1).collect::<Vec<_>>());
}
