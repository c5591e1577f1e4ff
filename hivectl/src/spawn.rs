//! Spawns the background tasks of hivectl; no other module does.
//!
//! Invariant: each task has a name; a panic is reported with it, also if nothing awaits the task.

use tokio::task::JoinHandle;

use crate::output::note;

/// Spawns a task. Its owner keeps the handle and awaits or aborts it, or ends the task by closing
/// the channel from which the task reads.
#[expect(clippy::disallowed_methods, reason = "the one place where hivectl spawns")]
pub(crate) fn spawn<T: Send + 'static>(
    name: &'static str,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(async move {
        let _named = Named(name);
        task.await
    })
}

/// Reports the panic that unwinds it.
struct Named(&'static str);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            note(&format!("a background task panicked: {}", self.0));
        }
    }
}
