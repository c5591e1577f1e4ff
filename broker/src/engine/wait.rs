//! Waiting for a look: until it finds something, its time is up, or the broker ends.

use tokio::time::Instant;

use hive_core::time::BootTime;

use super::{Engine, Refusal, permit};
use crate::store::look::{Answer, Looking};

impl Engine {
    /// Waits for a look until `deadline`, or for ever, as long as what it saw so far makes that
    /// worth while.
    pub(crate) async fn wait_for<T>(
        &self,
        mut looking: Looking<T, Refusal>,
        deadline: Option<Instant>,
        worth_waiting: impl Fn(&T) -> bool,
    ) -> Result<T, Refusal> {
        let (mut last, mut due) = (None, None);
        let refusal = loop {
            tokio::select! {
                biased;
                answer = looking.next() => match answer {
                    Answer::Done(result) => return result,
                    Answer::Waiting { so_far, next_due } => {
                        due = next_due;
                        let last = last.insert(so_far);
                        if !worth_waiting(last) {
                            break None;
                        }
                        permit::release();
                    }
                },
                () = self.draining().cancelled() => break Some(Refusal::Draining),
                () = self.until(due) => {
                    due = None;
                    looking.again().await;
                }
                () = until(deadline), if last.is_some() => break None,
            }
        };
        // What was found in the same moment is not lost: it is leased already.
        if let Some(result) = looking.stop().await {
            return result;
        }
        match (refusal, last) {
            (None, Some(last)) => Ok(last),
            (refusal, _) => Err(refusal.unwrap_or(Refusal::Draining)),
        }
    }

    /// Waits until the boot clock shows `due`; for ever without one.
    async fn until(&self, due: Option<BootTime>) {
        match due {
            Some(due) => tokio::time::sleep(due.since(self.clock().now().boot)).await,
            None => std::future::pending().await,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
