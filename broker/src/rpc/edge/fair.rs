//! Fairness between sockets: a few calls of each socket work at once, and the others of that socket
//! queue.
//!
//! A call takes a permit to work once its request has arrived, and releases it by its class
//! ([`Class`]). Pages of one agent are read one at a time, each to its end even if its caller has
//! gone, and a rest as long as it took. Invariant: no client can release a permit early: neither by
//! disconnecting, nor by sending its request slowly, nor by not reading the answer. A call keeps
//! its slot among the open calls until its answer has been sent or given up.

mod work;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tonic::Status;

use super::answer;
use super::conn::Slots;
use super::later::{Answered, Call};
use super::method::Class;
use crate::engine::Refusal;
use crate::spawn::spawn;
use work::Work;

/// A call that works for longer releases its permit, because it is waiting. Without this limit four
/// sends on a stalled disk would keep the heartbeats of their agent waiting.
pub(in crate::rpc) const WORK_MAX: Duration = Duration::from_millis(20);
/// A refused call keeps its permit for this time, and so does a call whose caller disconnected, and
/// one that asked for mail where there is none. It slows down a program that repeats such calls in
/// a loop; other sockets do not wait.
pub(in crate::rpc) const PAUSE: Duration = Duration::from_millis(16);

/// A list of more settlements than this is long. Chosen by measurement.
const LONG_LIST: usize = 16;
/// A long list keeps the next one waiting for this time for each of its refusals: an agent gets no
/// more refusals in lists than in calls, of which it has four at once.
const LIST_PAUSE: Duration = Duration::from_millis(4);

/// A call whose request is still to come.
pub(in crate::rpc) type Arriving = Pin<Box<dyn Future<Output = Call> + Send>>;

/// Runs a call once its request is there and it gets a permit, and releases the permit when the
/// class of the call says so.
pub(in crate::rpc) fn fairly(
    tasks: TaskTracker,
    slots: &Slots,
    slot: OwnedSemaphorePermit,
    class: Class,
    arriving: Arriving,
) -> Call {
    let at_work = Arc::clone(&slots.at_work);
    if matches!(class, Class::Page | Class::Watch) {
        let pages = Arc::clone(&slots.pages);
        return Box::pin(page(tasks, pages, at_work, slot, class, arriving));
    }
    Box::pin(Work::on(tasks, at_work, class, arriving, slot))
}

/// Reads a page: after the earlier ones of the agent, and to its end.
async fn page(
    tasks: TaskTracker,
    pages: Arc<Semaphore>,
    at_work: Arc<Semaphore>,
    slot: OwnedSemaphorePermit,
    class: Class,
    arriving: Arriving,
) -> Answered {
    let call = arriving.await;
    // The semaphore is never closed; a page without its permit would still be a page.
    let pages = pages.acquire_owned().await;
    let start = Instant::now();
    // A task of its own: the work continues without its caller, and keeps the next page waiting.
    let reading = Work::on(tasks.clone(), at_work, class, Box::pin(std::future::ready(call)), ());
    let read = tasks.spawn(async move { (reading.await, pages) });
    let Ok((answered, pages)) = read.await else {
        return Ok(Status::from(Refusal::Fault("a page could not be read")).into_http());
    };
    let answer = answered?;
    let (gone, until_gone) = oneshot::channel::<()>();
    // Another one: a client that does not read its answer no longer polls the body, and would keep
    // the permit.
    spawn(&tasks, async move {
        drop(tokio::time::timeout(WORK_MAX, until_gone).await);
        tokio::time::sleep(start.elapsed().min(WORK_MAX)).await;
        drop(pages);
    });
    Ok(answer.map(|body| answer::holding((slot, gone), body)))
}

/// Takes a permit and works on one message of a stream with it, as on a call of its own.
pub(in crate::rpc) async fn message<T>(slots: &Slots, work: impl Future<Output = T>) -> T {
    // The semaphore is never closed.
    let permit = Arc::clone(&slots.at_work).acquire_owned().await;
    messages(permit.into_iter().collect(), work).await
}

/// The turn of a list of settlements to be committed.
#[derive(Debug)]
pub(in crate::rpc) struct ListTurn(Option<Permit>);

impl ListTurn {
    /// Waits for the turn. Long lists have it one at a time, because each is one commit, and
    /// several in one batch would hold up the commands of other agents.
    pub(in crate::rpc) async fn wait(tasks: &TaskTracker, slots: &Slots, length: usize) -> Self {
        if length <= LONG_LIST {
            return Self(None);
        }
        let lists = Arc::clone(&slots.lists);
        // If its caller goes away, all may be refused.
        Self(Some(Permit::taken(tasks.clone(), lists, list_pause(length)).await))
    }

    /// Ends the turn; at once if no settlement was refused.
    pub(in crate::rpc) fn end<T, E>(self, results: &[Result<T, E>]) {
        let Some(mut permit) = self.0 else { return };
        match results.iter().filter(|result| result.is_err()).count() {
            0 => permit.release(),
            refused => permit.pause = list_pause(refused),
        }
    }
}

fn list_pause(refused: usize) -> Duration {
    LIST_PAUSE * u32::try_from(refused).unwrap_or(u32::MAX)
}

/// Works on several messages of a stream, with a permit for each.
pub(in crate::rpc) async fn messages<T>(
    permits: Vec<OwnedSemaphorePermit>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(WORK_MAX, &mut work).await {
        return done;
    }
    drop(permits);
    work.await
}

/// A call's permit. If it is dropped and not released, it is released after a pause: the caller has
/// disconnected and the work may continue, or there was much of it.
#[derive(Debug)]
pub(in crate::rpc) struct Permit {
    held: Option<OwnedSemaphorePermit>,
    pause: Duration,
    tasks: TaskTracker,
}

impl Permit {
    async fn taken(tasks: TaskTracker, of: Arc<Semaphore>, pause: Duration) -> Self {
        // The semaphore is never closed; a call without a permit would still be a call.
        Self { held: of.acquire_owned().await.ok(), pause, tasks }
    }

    /// Takes a permit if there is one and no other call waits for it.
    fn try_taken(tasks: &TaskTracker, of: &Arc<Semaphore>, pause: Duration) -> Option<Self> {
        let held = Arc::clone(of).try_acquire_owned().ok()?;
        Some(Self { held: Some(held), pause, tasks: tasks.clone() })
    }

    fn release(mut self) {
        self.held = None;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(permit) = self.held.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let span = self.pause;
            let pause = async move {
                tokio::time::sleep(span).await;
                drop(permit);
            };
            self.tasks.spawn_on(pause, &runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::{pending, ready};

    use tonic::body::Body;

    use crate::engine::permit;

    use tokio::time::timeout;

    const HARDLY: Duration = Duration::from_millis(1);

    fn slots() -> Slots {
        let semaphore = |count| Arc::new(Semaphore::new(count));
        Slots {
            connections: semaphore(9),
            calls: semaphore(9),
            calls_max: 9,
            at_work: semaphore(1),
            pages: semaphore(1),
            lists: semaphore(1),
        }
    }

    /// Returns a call whose request is there.
    fn arrived(answer: impl Future<Output = Answered> + Send + 'static) -> Arriving {
        let call: Call = Box::pin(answer);
        Box::pin(ready(call))
    }

    /// Runs a call that has this answer.
    async fn call(
        slots: &Slots,
        class: Class,
        answer: impl Future<Output = Answered> + Send + 'static,
    ) -> http::Response<Body> {
        let slot = Arc::clone(&slots.calls).acquire_owned().await.expect("open");
        fairly(TaskTracker::new(), slots, slot, class, arrived(answer))
            .await
            .expect("it cannot fail")
    }

    fn served() -> Answered {
        Ok(http::Response::new(Body::new("a page".to_owned())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_comes_later_and_keeps_its_permit_until_then() {
        let (slots, start) = (slots(), Instant::now());
        drop(call(&slots, Class::Short, ready(Ok(Status::not_found("no").into_http()))).await);
        assert_eq!(start.elapsed(), PAUSE);
        drop(call(&slots, Class::Short, ready(served())).await);
        assert_eq!(start.elapsed(), PAUSE, "and an answer at once");
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_disconnects_holds_its_permit_for_a_while() {
        let (slots, start) = (slots(), Instant::now());
        assert!(timeout(HARDLY, call(&slots, Class::Short, pending())).await.is_err());
        drop(call(&slots, Class::Short, ready(served())).await);
        assert_eq!(start.elapsed(), HARDLY + PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pending_long_poll_releases_its_permit() {
        let (slots, start) = (slots(), Instant::now());
        let waiting = tokio::spawn({
            let slots = slots.clone();
            async move { call(&slots, Class::Short, pending()).await }
        });
        tokio::task::yield_now().await;
        drop(call(&slots, Class::Short, ready(served())).await);
        assert_eq!(start.elapsed(), WORK_MAX);
        waiting.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_read_to_its_end_before_the_next_whether_its_caller_is_there_or_not() {
        let (slots, start, long) = (slots(), Instant::now(), Duration::from_secs(1));
        let slow = async move {
            tokio::time::sleep(long).await;
            served()
        };
        assert!(timeout(HARDLY, call(&slots, Class::Page, slow)).await.is_err());
        drop(call(&slots, Class::Short, ready(served())).await);
        assert!(start.elapsed() <= WORK_MAX + HARDLY, "others do not wait for it");
        let unread = call(&slots, Class::Page, ready(served())).await;
        assert_eq!(start.elapsed(), long);
        drop(call(&slots, Class::Page, ready(served())).await);
        assert_eq!(
            start.elapsed(),
            long + WORK_MAX + WORK_MAX,
            "one that is not read is not waited for longer, and each has its rest"
        );
        drop(unread);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_followed_by_a_rest_as_long_as_it_took() {
        let (slots, start) = (slots(), Instant::now());
        let took = WORK_MAX / 2;
        let reading = async move {
            tokio::time::sleep(took).await;
            served()
        };
        drop(call(&slots, Class::Page, reading).await);
        assert_eq!(start.elapsed(), took, "the answer comes at once");
        drop(call(&slots, Class::Short, ready(served())).await);
        assert_eq!(start.elapsed(), took, "and other calls do not wait");
        drop(call(&slots, Class::Page, ready(served())).await);
        assert_eq!(start.elapsed(), 2 * took);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_finds_nothing_is_answered_at_once_and_keeps_its_permit_for_a_while() {
        let (slots, start) = (slots(), Instant::now());
        let nothing = async {
            permit::keep();
            served()
        };
        drop(call(&slots, Class::LongPoll, nothing).await);
        assert_eq!(start.elapsed(), Duration::ZERO);
        drop(call(&slots, Class::Short, ready(served())).await);
        assert_eq!(start.elapsed(), PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_list_keeps_the_next_one_waiting_for_each_of_its_refusals() {
        let (tasks, slots, start) = (TaskTracker::new(), slots(), Instant::now());
        let turn = || ListTurn::wait(&tasks, &slots, LONG_LIST + 1);
        turn().await.end(&[Ok(()), Err(()), Err(())]);
        turn().await.end::<(), ()>(&[Ok(())]);
        assert_eq!(start.elapsed(), 2 * LIST_PAUSE);
        turn().await.end::<(), ()>(&[Ok(())]);
        assert_eq!(start.elapsed(), 2 * LIST_PAUSE, "and not after a list without refusals");
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_read_without_its_caller_is_waited_for() {
        let (tasks, slots, start) = (TaskTracker::new(), slots(), Instant::now());
        let long = Duration::from_secs(1);
        let slow = async move {
            tokio::time::sleep(long).await;
            served()
        };
        let slot = Arc::clone(&slots.calls).acquire_owned().await.expect("open");
        let call = fairly(tasks.clone(), &slots, slot, Class::Page, arrived(slow));
        assert!(timeout(HARDLY, call).await.is_err(), "its caller has gone");
        tasks.close();
        tasks.wait().await;
        assert!(start.elapsed() >= long, "the store is closed after that");
    }

    #[tokio::test(start_paused = true)]
    async fn a_long_poll_that_is_dropped_at_once_costs_as_much_as_a_refusal() {
        let (slots, start) = (slots(), Instant::now());
        let waiting = async {
            permit::release();
            pending().await
        };
        assert!(timeout(HARDLY, call(&slots, Class::LongPoll, waiting)).await.is_err());
        drop(call(&slots, Class::Short, ready(served())).await);
        assert_eq!(start.elapsed(), HARDLY + PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_releases_its_permit_by_its_class() {
        let waiting = || async {
            permit::release();
            pending().await
        };
        for (class, expected) in [
            (Class::Short, WORK_MAX),
            (Class::Stream, WORK_MAX),
            (Class::LongPoll, PAUSE),
            (Class::ClientStream, PAUSE),
            (Class::Job, PAUSE),
        ] {
            let (slots, start) = (slots(), Instant::now());
            let mut first = std::pin::pin!(call(&slots, class, waiting()));
            let second = call(&slots, Class::Short, ready(served()));
            tokio::select! {
                biased;
                _ = &mut first => unreachable!("it is pending"),
                answer = second => drop(answer),
            }
            assert_eq!(start.elapsed(), expected, "{class:?}");
        }
    }
}
