//! Background tasks of the harness: the one place that spawns them.
//!
//! Invariant: each task has a name, which its log lines carry. Its panic is logged with it, even if
//! no caller awaits the task; a panic of other code is not.

use std::future::poll_fn;
use std::pin::pin;

use tokio::task::JoinHandle;
use tracing::Instrument as _;

/// Spawns a task. Its owner keeps the handle and awaits or aborts it, or ends the task by closing
/// the channel from which the task reads.
#[expect(clippy::disallowed_methods, reason = "the one place where the harness spawns")]
pub(crate) fn spawn<T: Send + 'static>(
    name: &'static str,
    task: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<T> {
    tokio::spawn(named(name, task).instrument(tracing::error_span!("task", name)))
}

/// Returns the task, which logs its own panic under this name.
async fn named<T>(name: &'static str, task: impl Future<Output = T>) -> T {
    let mut task = pin!(task);
    poll_fn(|context| {
        // Lives for one poll only: a task that is dropped while other code panics has none.
        let _named = Named(name);
        task.as_mut().poll(context)
    })
    .await
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Waker};

    use super::*;

    /// The lines of a log.
    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().expect("whole").write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Returns what is logged while `work` panics.
    fn logged(work: impl FnOnce()) -> String {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let unwound =
            tracing::subscriber::with_default(subscriber, || catch_unwind(AssertUnwindSafe(work)));
        unwound.expect_err("it panics");
        let bytes = log.0.lock().expect("whole").clone();
        String::from_utf8(bytes).expect("a log is text")
    }

    #[test]
    fn a_task_logs_its_own_panic_and_no_other() {
        let context = &mut Context::from_waker(Waker::noop());
        let mut own = Box::pin(named("own", async { panic!("a fault") }));
        let log = logged(|| assert!(own.as_mut().poll(context).is_ready()));
        assert!(log.contains("panicked") && log.contains("own"), "{log:?}");

        let mut other = Box::pin(named("other", std::future::pending::<()>()));
        assert!(other.as_mut().poll(context).is_pending());
        let log = logged(move || {
            let _dropped = other;
            panic!("a fault of other code");
        });
        assert_eq!(log, "");
    }
}
