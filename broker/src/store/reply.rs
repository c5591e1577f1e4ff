//! The answer of another thread, as one type to the channel, so that its code is compiled once and
//! not for each type of answer.
//!
//! Invariant: who waits gets the answer that was sent, or `None` once it cannot come any more.

use std::any::Any;
use std::marker::PhantomData;

use crate::sync::oneshot;

/// The end that answers.
pub(super) struct Reply<T>(oneshot::Sender<Box<dyn Any + Send>>, PhantomData<fn(T)>);

impl<T: Send + 'static> Reply<T> {
    /// Answers. A caller that is gone is none of the writer's business.
    pub(super) fn send(self, answer: T) {
        drop(self.0.send(Box::new(answer)));
    }
}

/// An answer to wait for.
pub(super) fn reply<T: Send + 'static>() -> (Reply<T>, impl Future<Output = Option<T>> + Send) {
    let (sender, receiver) = oneshot::channel::<Box<dyn Any + Send>>();
    let answer = async {
        let answer: Box<T> = receiver.await.ok()?.downcast().expect("a `Reply<T>` sends a `T`");
        Some(*answer)
    };
    (Reply(sender, PhantomData), answer)
}
