//! The seat of the writer: which thread runs a command, and that no command stays behind.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::super::file::fold;
use super::super::{Committed, Effect, Health, Store, StoreError};
use super::folding::folded;
use super::{Failed, Rig, aborted, clock, directory, disk, in_time, write};
use crate::clock::ManualClock;

/// As many commands by themselves as the thread runs before it leaves the seat to callers. Together
/// with these they write less than the log may have before it is folded.
const LONE: usize = 8;
/// The thread may be preempted before it leaves the seat.
const TRIES: usize = 1000;

const WRITER: &str = "writer";

/// Returns the name of the thread that runs a command.
fn runner() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

/// Writes a message on the thread that a caller of its own chooses; returns the thread's name. The
/// test's own thread serves no other task.
async fn send(store: &Arc<Store>, body: &'static str) -> Result<String, Failed> {
    let store = Arc::clone(store);
    let sent = tokio::spawn(async move {
        let work = move |tx: &super::Tx<'_>| write(tx, body).map(|_| runner());
        store.write(work).await
    });
    sent.await.expect("no panic")
}

/// Sends one message after the other, until a caller has run one.
async fn settle(store: &Arc<Store>) {
    for _ in 0..TRIES {
        if send(store, "alone").await.expect("committed") != WRITER {
            return;
        }
    }
    panic!("no caller has run its command");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_runs_its_command_while_there_is_one_at_a_time() {
    let rig = Rig::new();
    assert_eq!(send(&rig.store, "first").await.expect("committed"), WRITER);
    settle(&rig.store).await;
    for _ in 0..LONE {
        assert_ne!(send(&rig.store, "alone").await.expect("committed"), WRITER);
    }
}

#[tokio::test]
async fn the_only_thread_of_a_runtime_runs_no_command() {
    let rig = Rig::new();
    for _ in 0..3 * LONE {
        assert_eq!(send(&rig.store, "alone").await.expect("committed"), WRITER);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_while_a_caller_runs_its_command_makes_the_thread_run_the_next_one() {
    let rig = Rig::new();
    let sends = async {
        loop {
            settle(&rig.store).await;
            let hold = rig.hold().await;
            let queued = rig.queue_send("behind it").await;
            hold.release().await.expect("committed");
            queued.committed().await;
            // It is not behind if its task ran only now.
            if send(&rig.store, "next").await.expect("committed") == WRITER {
                return;
            }
        }
    };
    in_time(sends).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sockets_are_served_while_a_caller_waits_for_the_disk() {
    for _ in 0..10 {
        let rig = Rig::new();
        settle(&rig.store).await;
        let ((mut calls, mut called), (mut tells, mut told)) = (pair(), pair());
        let (begun, begins) = std::sync::mpsc::channel();
        let (go_on, goes_on) = std::sync::mpsc::channel::<()>();
        let store = Arc::clone(&rig.store);
        // The worker that finds this call on its socket runs the command.
        let caller = tokio::spawn(async move {
            called.read_u8().await.expect("called");
            let work = move |_: &super::Tx<'_>| {
                begun.send(()).expect("the test waits");
                goes_on.recv_timeout(super::GUARD).expect("the other socket was served");
                Ok::<_, Failed>(runner())
            };
            store.write(work).await
        });
        let other = tokio::spawn(async move {
            told.read_u8().await.expect("told");
            go_on.send(()).expect("the command waits");
        });
        calls.write_all(b"c").expect("written");
        begins.recv().expect("the command runs");
        tells.write_all(b"t").expect("written");
        assert_ne!(caller.await.expect("no panic").expect("committed"), WRITER);
        other.await.expect("no panic");
    }
}

/// Returns the ends of a connection, one for this thread and one for a task.
fn pair() -> (UnixStream, tokio::net::UnixStream) {
    let (here, there) = UnixStream::pair().expect("a connection");
    there.set_nonblocking(true).expect("set");
    (here, tokio::net::UnixStream::from_std(there).expect("registered"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_slow_batch_the_thread_runs_the_next_ones() {
    let (dir, clock) = (directory(), clock());
    let commits: Arc<dyn Committed> = Arc::new(Breaks::default());
    let store =
        Store::open(dir.path(), Arc::<ManualClock>::clone(&clock), commits).expect("it opens");
    let store = Arc::new(store);
    settle(&store).await;
    let slow = store.write(move |tx| {
        clock.advance(Duration::from_millis(3));
        write(tx, "slow")
    });
    slow.await.expect("committed");
    assert_eq!(send(&store, "next").await.expect("committed"), WRITER);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fault_in_the_batch_of_a_caller_is_recovered_from() {
    let rig = Rig::new();
    for _ in 0..3 {
        settle(&rig.store).await;
        let store = Arc::clone(&rig.store);
        let faulty = tokio::spawn(async move {
            let work = |tx: &super::Tx<'_>| {
                write(tx, "aborted")?;
                assert_ne!(runner(), WRITER);
                Err::<(), _>(disk(rusqlite::ffi::SQLITE_FULL))
            };
            store.write(work).await
        });
        aborted(faulty.await.expect("no panic"));
        rig.recovered().await;
        assert_eq!(*rig.health().borrow(), Health::Ok);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_callers_is_folded_when_nothing_is_written() {
    let rig = Rig::new();
    settle(&rig.store).await;
    let store = Arc::clone(&rig.store);
    let caller = tokio::spawn(async move {
        let body = "b".repeat(fold::IDLE_PAGES as usize * 4096);
        store.write(move |tx| write(tx, &body).map(|id| (id, runner()))).await
    });
    let (id, ran_by) = caller.await.expect("no panic").expect("committed");
    assert_ne!(ran_by, WRITER);
    let count = u32::try_from(id).expect("few messages");
    let is_folded = async {
        while folded(rig.dir.path()) != Some(count) {
            tokio::task::yield_now().await;
        }
    };
    in_time(is_folded).await;
}

/// Panics after a commit, once it is to.
#[derive(Debug, Default)]
struct Breaks(AtomicBool);

impl Committed for Breaks {
    fn committed(&self, _: &[Effect], _: u64) {
        assert!(!self.0.load(Ordering::SeqCst), "a bug");
    }

    fn answered(&self, _: u64) {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_panic_of_a_caller_in_a_batch_closes_the_store() {
    let (dir, breaks) = (directory(), Arc::new(Breaks::default()));
    let committed: Arc<dyn Committed> = Arc::<Breaks>::clone(&breaks);
    let store = Arc::new(Store::open(dir.path(), clock(), committed).expect("it opens"));
    settle(&store).await;
    breaks.0.store(true, Ordering::SeqCst);
    let broken = Arc::clone(&store);
    let caller = tokio::spawn(async move { broken.write(|tx| write(tx, "committed")).await });
    assert!(in_time(caller).await.expect_err("it panics").is_panic());
    // Every later caller gets an error, and the end waits for nothing.
    for _ in 0..2 {
        let refused = in_time(send(&store, "refused")).await.expect_err("the writer has gone");
        assert!(matches!(refused, Failed::Store(StoreError::Closed)), "{refused:?}");
    }
    let closing = tokio::task::spawn_blocking(move || store.close());
    in_time(closing).await.expect("no panic");
}
