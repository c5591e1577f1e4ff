//! A stream that rests: a future makes its items one by one, and the connection polls that future.
//!
//! A task with a channel costs kilobytes for each stream, and every agent has one that rests for
//! hours. Invariant: the future goes on only once its item was taken, so a client that reads slowly
//! delays it; and it is dropped with the stream, so it need not look whether the client has gone.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio_stream::Stream;
use tonic::Status;

/// An item on its way. It is a pointer, because the place of an item stays as long as its stream.
type Item<T> = Box<Result<T, Status>>;

/// See the module.
pub struct Resting<T> {
    place: Place<T>,
    /// `None` once it has ended.
    work: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// Where the future puts its items.
#[derive(Debug)]
pub(super) struct Out<T>(Place<T>);

/// The place of one item.
#[derive(Debug)]
struct Place<T>(Arc<Mutex<Option<Item<T>>>>);

impl<T> Place<T> {
    fn lock(&self) -> MutexGuard<'_, Option<Item<T>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn same(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Resting<T> {
    /// Returns the stream of a future, which begins when the stream is polled.
    pub(super) fn new<F>(work: impl FnOnce(Out<T>) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let place = Place(Arc::default());
        let work = work(Out(place.same()));
        Self { place, work: Some(Box::pin(work)) }
    }
}

impl<T> Out<T> {
    /// Puts an item, and returns what waits until it was taken.
    pub(super) fn send(&self, item: Result<T, Status>) -> impl Future<Output = ()> + use<T> {
        *self.0.lock() = Some(Box::new(item));
        let place = self.0.same();
        // The stream takes the item right after this poll, and polls again when it is asked for
        // the next one: nothing has to wake it.
        std::future::poll_fn(move |_| match *place.lock() {
            Some(_) => Poll::Pending,
            None => Poll::Ready(()),
        })
    }
}

impl<T> Stream for Resting<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(work) = &mut self.work
            && work.as_mut().poll(cx).is_ready()
        {
            self.work = None;
        }
        let item = self.place.lock().take();
        match item {
            Some(item) => Poll::Ready(Some(*item)),
            None if self.work.is_none() => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl<T> std::fmt::Debug for Resting<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Resting").field("has_ended", &self.work.is_none()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::sync::Notify;
    use tokio_stream::StreamExt as _;

    #[tokio::test]
    async fn items_come_one_by_one_and_the_last_one_is_not_lost() {
        let made = Arc::new(Mutex::new(0));
        let (count, go_on) = (Arc::clone(&made), Arc::new(Notify::new()));
        let went_on = Arc::clone(&go_on);
        let mut stream = Resting::new(move |out| async move {
            for item in 0..3 {
                *count.lock().expect("no panic") += 1;
                if item == 1 {
                    went_on.notified().await;
                }
                out.send(Ok(item)).await;
            }
            drop(out.send(Err(Status::aborted("the end"))));
        });
        assert_eq!(*made.lock().expect("no panic"), 0, "it begins when it is polled");
        assert_eq!(stream.next().await.expect("an item").expect("no error"), 0);
        assert_eq!(*made.lock().expect("no panic"), 1, "the next one is made when it is asked for");
        go_on.notify_one();
        for expected in [1, 2] {
            assert_eq!(stream.next().await.expect("an item").expect("no error"), expected);
        }
        let end = stream.next().await.expect("an item").expect_err("the end");
        assert_eq!(end.message(), "the end");
        assert!(stream.next().await.is_none());
    }

    #[tokio::test]
    async fn what_its_future_holds_is_dropped_with_it() {
        let held = Arc::new(());
        let weak = Arc::downgrade(&held);
        let mut stream = Resting::new(|out: Out<()>| async move {
            out.send(Ok(())).await;
            std::future::pending::<()>().await;
            drop(held);
        });
        assert!(stream.next().await.is_some());
        drop(stream);
        assert!(weak.upgrade().is_none());
    }
}
