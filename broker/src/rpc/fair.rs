//! Fairness between sockets: a few calls of each are worked on at once, and the others wait in line
//! behind their own kind.
//!
//! A call gets its permit to work once its request is there, and gives it back when it is answered,
//! or waits for something. What reads pages comes one at a time for each agent, and is read to its
//! end also for a caller who has gone. Invariant: nothing that a client does gives a permit back
//! before the time: not going away, not holding back what it has to say, and not reading its
//! answer. A call's place among those under way is kept until its answer has been sent or given up.

use std::sync::Arc;
use std::time::Duration;

use hive_core::reason::Reason;
use hive_proto::status::refusal;
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::task::TaskTracker;
use tonic::Status;
use tonic::body::Body;

use super::answer;
use super::conn::{Bounds, Owner};

/// A call that has not answered by then waits for something, as a harness for its next turn, and
/// keeps nobody else from working.
const WORK_MAX: Duration = Duration::from_millis(20);
/// A refusal keeps its call's permit for so long, and so does a call whose caller went away. A
/// program that runs wild and hears only that it may not is slowed down by it, whatever it calls;
/// nobody else waits.
const PAUSE: Duration = Duration::from_millis(10);

/// What a call is to the others of its socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// One of some at once.
    Any,
    /// One at a time: a page costs the processors as much as many sends.
    Pages,
}

impl Work {
    /// That of a call to `path`.
    pub(super) fn of(owner: &Owner, path: &str) -> Self {
        let method = path.rsplit('/').next().unwrap_or_default();
        let reads = ["List", "Search", "Find", "Watch"].iter().any(|word| method.starts_with(word))
            || method == "GetTurnStats";
        if reads && matches!(owner, Owner::Agent(_)) { Self::Pages } else { Self::Any }
    }
}

type Answered<E> = Result<http::Response<Body>, E>;

/// Begins with a call when there is a permit for it, and lets the next one in when it has given
/// that back.
pub(super) async fn fairly<E: Send + 'static>(
    tasks: TaskTracker,
    bounds: Bounds,
    place: OwnedSemaphorePermit,
    work: Work,
    call: impl Future<Output = Answered<E>> + Send + 'static,
) -> Answered<E> {
    if work == Work::Any {
        return Ok(worked(tasks, bounds.at_work, call)
            .await?
            .map(|body| answer::holding(place, body)));
    }
    // Nobody closes it; a page without its permit would still be a page.
    let pages = bounds.pages.acquire_owned().await;
    // A task of its own: what has been begun goes on without its caller, and keeps the next page
    // waiting.
    let reading = worked(tasks.clone(), bounds.at_work, call);
    let read = tasks.spawn(async move { (reading.await, pages) });
    let Ok((answered, pages)) = read.await else {
        return Ok(
            refusal(Reason::Internal, "the broker failed; its log has more", None).into_http()
        );
    };
    let answer = answered?;
    let (gone, until_gone) = oneshot::channel::<()>();
    // Another one: who does not read an answer is not asked for it again, and would keep the
    // permit.
    tasks.spawn(async move {
        drop(tokio::time::timeout(WORK_MAX, until_gone).await);
        drop(pages);
    });
    Ok(answer.map(|body| answer::holding((place, gone), body)))
}

/// Works on a call with a permit; the beginning of its answer is encoded with it, too.
async fn worked<E>(
    tasks: TaskTracker,
    at_work: Arc<Semaphore>,
    call: impl Future<Output = Answered<E>>,
) -> Answered<E> {
    let permit = Permit::taken(tasks, at_work).await;
    let mut call = std::pin::pin!(call);
    let answer = tokio::select! {
        biased;
        answer = &mut call => answer?,
        () = tokio::time::sleep(WORK_MAX) => {
            permit.give_back();
            return Ok(answer::begun(call.await?).await);
        }
    };
    if is_refusal(&answer) {
        tokio::time::sleep(PAUSE).await;
    }
    let answer = answer::begun(answer).await;
    permit.give_back();
    Ok(answer)
}

/// A call's permit to work. Where it is dropped without a word, its caller has gone, and what was
/// begun may go on: it is given back a little later.
#[derive(Debug)]
struct Permit {
    held: Option<OwnedSemaphorePermit>,
    tasks: TaskTracker,
}

impl Permit {
    async fn taken(tasks: TaskTracker, at_work: Arc<Semaphore>) -> Self {
        // Nobody closes it; a call without a permit would still be a call.
        Self { held: at_work.acquire_owned().await.ok(), tasks }
    }

    fn give_back(mut self) {
        self.held = None;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        if let Some(permit) = self.held.take()
            && let Ok(runtime) = Handle::try_current()
        {
            let pause = async move {
                tokio::time::sleep(PAUSE).await;
                drop(permit);
            };
            self.tasks.spawn_on(pause, &runtime);
        }
    }
}

/// Whether it was answered with a status and nothing else.
fn is_refusal(answer: &http::Response<Body>) -> bool {
    answer.headers().get(Status::GRPC_STATUS).is_some_and(|code| code != "0")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;
    use std::future::{pending, ready};

    use hive_core::name::AgentName;
    use tokio::time::{Instant, timeout};

    const HARDLY: Duration = Duration::from_millis(1);

    fn bounds() -> Bounds {
        let places = |count| Arc::new(Semaphore::new(count));
        Bounds {
            connections: places(9),
            calls: places(9),
            calls_max: 9,
            at_work: places(1),
            pages: places(1),
        }
    }

    /// A call that ends so.
    async fn call(
        bounds: &Bounds,
        work: Work,
        answer: impl Future<Output = Answered<Infallible>> + Send + 'static,
    ) -> http::Response<Body> {
        let place = Arc::clone(&bounds.calls).acquire_owned().await.expect("open");
        fairly(TaskTracker::new(), bounds.clone(), place, work, answer)
            .await
            .expect("it cannot fail")
    }

    fn served() -> Answered<Infallible> {
        Ok(http::Response::new(Body::new("a page".to_owned())))
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_comes_later_and_keeps_its_permit_until_then() {
        let (bounds, start) = (bounds(), Instant::now());
        drop(call(&bounds, Work::Any, ready(Ok(Status::not_found("no").into_http()))).await);
        assert_eq!(start.elapsed(), PAUSE);
        drop(call(&bounds, Work::Any, ready(served())).await);
        assert_eq!(start.elapsed(), PAUSE, "and an answer at once");
    }

    #[tokio::test(start_paused = true)]
    async fn who_goes_away_leaves_the_permit_behind_for_a_while() {
        let (bounds, start) = (bounds(), Instant::now());
        assert!(timeout(HARDLY, call(&bounds, Work::Any, pending())).await.is_err());
        drop(call(&bounds, Work::Any, ready(served())).await);
        assert_eq!(start.elapsed(), HARDLY + PAUSE);
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_lets_the_next_one_in() {
        let (bounds, start) = (bounds(), Instant::now());
        let waiting = tokio::spawn({
            let bounds = bounds.clone();
            async move { call(&bounds, Work::Any, pending()).await }
        });
        tokio::task::yield_now().await;
        drop(call(&bounds, Work::Any, ready(served())).await);
        assert_eq!(start.elapsed(), WORK_MAX);
        waiting.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_is_read_to_its_end_before_the_next_whether_its_caller_is_there_or_not() {
        let (bounds, start, long) = (bounds(), Instant::now(), Duration::from_secs(1));
        let slow = async move {
            tokio::time::sleep(long).await;
            served()
        };
        assert!(timeout(HARDLY, call(&bounds, Work::Pages, slow)).await.is_err());
        drop(call(&bounds, Work::Any, ready(served())).await);
        assert!(start.elapsed() <= WORK_MAX + HARDLY, "others do not wait for it");
        let unread = call(&bounds, Work::Pages, ready(served())).await;
        assert_eq!(start.elapsed(), long);
        drop(call(&bounds, Work::Pages, ready(served())).await);
        assert_eq!(
            start.elapsed(),
            long + WORK_MAX,
            "one that is not read is not waited for longer"
        );
        drop(unread);
    }

    #[tokio::test(start_paused = true)]
    async fn a_page_that_is_read_without_its_caller_is_waited_for() {
        let (tasks, bounds, start) = (TaskTracker::new(), bounds(), Instant::now());
        let long = Duration::from_secs(1);
        let slow = async move {
            tokio::time::sleep(long).await;
            served()
        };
        let place = Arc::clone(&bounds.calls).acquire_owned().await.expect("open");
        let call = fairly(tasks.clone(), bounds, place, Work::Pages, slow);
        assert!(timeout(HARDLY, call).await.is_err(), "its caller has gone");
        tasks.close();
        tasks.wait().await;
        assert!(start.elapsed() >= long, "the store is closed after that");
    }

    #[test]
    fn pages_are_told_by_their_names_and_only_agents_are_bounded() {
        let agent = Owner::Agent(AgentName::parse("bob").expect("a name"));
        for path in
            ["/hive.v1.MessageService/ListMessages", "/hive.v1.TurnHistoryService/GetTurnStats"]
        {
            assert_eq!(
                (Work::of(&agent, path), Work::of(&Owner::Operator, path)),
                (Work::Pages, Work::Any)
            );
        }
        assert_eq!(Work::of(&agent, "/hive.v1.MessageService/SendMessage"), Work::Any);
    }
}
