//! Background tasks of the harness: the one place that spawns them.
//!
//! Invariant: each task has a name, which its log lines carry. A panic is logged with it, even if
//! no caller awaits the task.

use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Spawns a task. Its owner keeps the handle and awaits or aborts it, or ends the task by closing
/// the channel from which the task reads.
#[expect(clippy::disallowed_methods, reason = "the one place where the harness spawns")]
pub(crate) fn spawn<T: Send + 'static>(
    name: &'static str,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    let task = async move {
        let _named = Named(name);
        task.await
    };
    tokio::spawn(task.instrument(tracing::error_span!("task", name)))
}

/// A guard that logs the panic which unwinds it.
struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(task = self.0, "a background task of the harness panicked");
        }
    }
}
