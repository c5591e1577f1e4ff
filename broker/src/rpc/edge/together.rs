//! A connection and its calls as one task.
//!
//! hyper gives each call to an executor. With a task for each, a message went through two more of
//! them on its way, and tokio spreads tasks over its threads: these then wait for each other at the
//! locks of the connection, and each part that wakes another one may wake a thread, too. Invariant:
//! a part that was woken is polled, and a panic in a call ends that call alone.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Wake, Waker};

use futures_util::future::{CatchUnwind, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use futures_util::task::AtomicWaker;

use crate::sync;

/// Polls of the connection and its calls in a row, after which other tasks run.
const ROUNDS_MAX: u32 = 16;

type Call = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Calls that hyper has begun while it polled the connection. They are polled after it.
type Begun = Mutex<Vec<Call>>;

/// The executor of a connection. Each call has it, so it does not keep the calls.
#[derive(Clone)]
pub(super) struct Executor(Weak<Begun>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Executor {
    fn execute(&self, call: F) {
        if let Some(begun) = self.0.upgrade() {
            lock(&begun).push(Box::pin(call));
        }
    }
}

fn lock(begun: &Begun) -> MutexGuard<'_, Vec<Call>> {
    begun.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A connection with its calls, which end with it.
pub(super) struct Together<C> {
    conn: Pin<Box<C>>,
    begun: Arc<Begun>,
    calls: FuturesUnordered<CatchUnwind<AssertUnwindSafe<Call>>>,
    bell: Arc<Bell>,
    conn_waker: Waker,
    calls_waker: Waker,
}

impl<C: Future> Together<C> {
    /// Returns the connection that `conn` makes, which gives its calls to an executor.
    pub(super) fn new(conn: impl FnOnce(Executor) -> Pin<Box<C>>) -> Self {
        let (begun, bell) = (Arc::<Begun>::default(), Arc::new(Bell::default()));
        bell.rung.store(CONN, Ordering::SeqCst);
        let waker = |part| Waker::from(Arc::new(Rope { bell: Arc::clone(&bell), part }));
        Self {
            conn: conn(Executor(Arc::downgrade(&begun))),
            begun,
            calls: FuturesUnordered::new(),
            conn_waker: waker(CONN),
            calls_waker: waker(CALLS),
            bell,
        }
    }

    pub(super) fn conn(&mut self) -> Pin<&mut C> {
        // What is done with it may wake no part.
        self.bell.ring(CONN);
        self.conn.as_mut()
    }

    /// Polls the parts that were woken; returns whether the connection has ended.
    fn poll_parts(&mut self, rung: u8) -> bool {
        // First, because a connection that always has something to read may use up what tokio
        // allows a task to do at once.
        if rung & CALLS != 0 {
            self.poll_calls();
        }
        let context = &mut Context::from_waker(&self.conn_waker);
        // Its client sees how it ended.
        let is_over = rung & CONN != 0 && self.conn.as_mut().poll(context).is_ready();
        let begun = std::mem::take(&mut *lock(&self.begun));
        if !begun.is_empty() {
            self.calls.extend(begun.into_iter().map(|call| AssertUnwindSafe(call).catch_unwind()));
            self.poll_calls();
        }
        is_over
    }

    fn poll_calls(&mut self) {
        let context = &mut Context::from_waker(&self.calls_waker);
        let is_alone = self.calls.len() == 1;
        // A panic is logged where it happens.
        let mut poll = || while let Poll::Ready(Some(_)) = self.calls.poll_next_unpin(context) {};
        // A heartbeat does not wait for the disk on which another call waits.
        if is_alone { poll() } else { sync::without_waiting(poll) }
    }
}

impl<C: Future> Future for Together<C> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.bell.task.register(context.waker());
        for _ in 0..ROUNDS_MAX {
            let rung = self.bell.begin();
            if self.poll_parts(rung) {
                return Poll::Ready(());
            }
            if self.bell.rests() {
                return Poll::Pending;
            }
        }
        self.bell.pause();
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

/// The connection was woken, maybe while it was polled.
const CONN: u8 = 1;
/// A call was.
const CALLS: u8 = 2;
/// The parts are being polled.
const POLLING: u8 = 4;

/// What wakes the task, unless that is polling its parts: then those that were woken are polled
/// again.
#[derive(Debug, Default)]
struct Bell {
    rung: AtomicU8,
    task: AtomicWaker,
}

impl Bell {
    fn ring(&self, part: u8) {
        if self.rung.fetch_or(part, Ordering::SeqCst) == 0 {
            self.task.wake();
        }
    }

    /// Begins to poll; returns the parts that were woken.
    fn begin(&self) -> u8 {
        self.rung.swap(POLLING, Ordering::SeqCst)
    }

    /// Ends the polls, unless a part was woken since they began.
    fn rests(&self) -> bool {
        self.rung.compare_exchange(POLLING, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Ends the polls although parts were woken. The caller wakes the task.
    fn pause(&self) {
        self.rung.fetch_and(!POLLING, Ordering::SeqCst);
    }
}

/// The waker of the connection, or of the calls.
struct Rope {
    bell: Arc<Bell>,
    part: u8,
}

impl Wake for Rope {
    fn wake(self: Arc<Self>) {
        self.bell.ring(self.part);
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.bell.ring(self.part);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::atomic::AtomicUsize;

    use hyper::rt::Executor as _;
    use tokio::sync::{mpsc, oneshot};
    use tokio::task::yield_now;

    use super::*;

    /// Counts the wakes of a task, or the polls of a call.
    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// A connection that begins the calls it is given, and ends with the channel of these.
    fn conn(mut calls: mpsc::UnboundedReceiver<Call>) -> Together<impl Future> {
        Together::new(|executor| {
            Box::pin(poll_fn(move |context| {
                loop {
                    match calls.poll_recv(context) {
                        Poll::Ready(Some(call)) => executor.execute(call),
                        Poll::Ready(None) => return Poll::Ready(()),
                        Poll::Pending => return Poll::Pending,
                    }
                }
            }))
        })
    }

    #[test]
    fn a_part_that_is_woken_while_it_is_polled_wakes_no_task() {
        let (begin, calls) = mpsc::unbounded_channel::<Call>();
        let mut together = conn(calls);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let context = &mut Context::from_waker(&waker);
        let (done, mut is_done) = oneshot::channel();
        let mut polls = 0;
        begin
            .send(Box::pin(async move {
                poll_fn(|context| {
                    polls += 1;
                    context.waker().wake_by_ref();
                    if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                done.send(()).expect("it is waited for");
            }))
            .expect("the connection is there");
        assert!(together.poll_unpin(context).is_pending());
        is_done.try_recv().expect("it was polled until it ended");
        assert_eq!(wakes.0.load(Ordering::SeqCst), 0);

        let (answer, answered) = oneshot::channel::<()>();
        begin.send(Box::pin(answered.map(drop))).expect("the connection is there");
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        assert!(together.poll_unpin(context).is_pending());
        std::thread::spawn(move || answer.send(())).join().expect("it ends").expect("a caller");
        assert_eq!(wakes.0.load(Ordering::SeqCst), 2);
        assert!(together.poll_unpin(context).is_pending());
        assert!(together.calls.is_empty());
        drop(begin);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 3);
        assert!(together.poll_unpin(context).is_ready());
    }

    #[test]
    fn a_part_that_wakes_itself_for_ever_lets_other_tasks_run() {
        let (begin, calls) = mpsc::unbounded_channel::<Call>();
        let mut together = conn(calls);
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let restless = poll_fn(|context| {
            context.waker().wake_by_ref();
            Poll::Pending
        });
        begin.send(Box::pin(restless)).expect("the connection is there");
        for count in 1..4 {
            assert!(together.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
            assert_eq!(wakes.0.load(Ordering::SeqCst), count);
        }
    }

    #[test]
    fn a_call_of_the_last_poll_is_polled_once_and_ends_with_the_connection() {
        let polls = Arc::new(Wakes::default());
        let counted = Arc::clone(&polls);
        let mut together = Together::new(|executor| {
            Box::pin(poll_fn(move |_| {
                let (counted, kept) = (Arc::clone(&counted), executor.clone());
                executor.execute(poll_fn(move |_| {
                    // As hyper's calls do.
                    let _kept = &kept;
                    counted.0.fetch_add(1, Ordering::SeqCst);
                    Poll::Pending
                }));
                Poll::Ready(())
            }))
        });
        assert!(together.poll_unpin(&mut Context::from_waker(Waker::noop())).is_ready());
        drop(together);
        assert_eq!(polls.0.load(Ordering::SeqCst), 1);
        assert_eq!(Arc::strong_count(&polls), 1);
    }

    #[tokio::test]
    async fn a_panic_ends_the_call_alone() {
        let (begin, calls) = mpsc::unbounded_channel::<Call>();
        let together = tokio::spawn(conn(calls));
        let (answer, answered) = oneshot::channel();
        begin.send(Box::pin(async { panic!("planned by a test") })).expect("it is there");
        begin
            .send(Box::pin(async move {
                yield_now().await;
                answer.send(7).expect("it is waited for");
            }))
            .expect("it is there");
        assert_eq!(answered.await, Ok(7));
        drop(begin);
        together.await.expect("the connection ends by itself");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_call_may_wait_for_the_disk_only_if_no_other_would_wait_with_it() {
        let (begin, calls) = mpsc::unbounded_channel::<Call>();
        let together = tokio::spawn(conn(calls));
        let may_wait = async || {
            let (tell, told) = oneshot::channel();
            let call = async move { tell.send(sync::Others::here().is_some()) };
            begin.send(Box::pin(call.map(drop))).expect("the connection is there");
            told.await.expect("it was polled")
        };
        assert!(may_wait().await, "it is alone");
        let (end, ends) = oneshot::channel::<()>();
        begin.send(Box::pin(ends.map(drop))).expect("the connection is there");
        assert!(!may_wait().await, "the other one may be a heartbeat");
        drop(end);
        // It ends once the connection is polled.
        while !may_wait().await {
            yield_now().await;
        }
        drop(begin);
        together.await.expect("the connection ends by itself");
    }
}
