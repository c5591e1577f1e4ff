//! Starting a tracked task. Invariant: the runtime sees all of them as one type, so that its code
//! for a task is compiled once and not for each future.

use std::pin::Pin;

use tokio_util::task::TaskTracker;

/// Starts a task that `tasks` waits for.
pub(crate) fn spawn(tasks: &TaskTracker, task: impl Future<Output = ()> + Send + 'static) {
    let task: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(task);
    tasks.spawn(task);
}
