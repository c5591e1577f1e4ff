//! Waiting for a waiter of the store: until it is ready, its deadline has passed, or the broker
//! ends.
//!
//! A call may wait for hours, and its future has room for each step that it may come to. Invariant:
//! steps that most calls do not come to while they wait are behind pointers.

use tokio::time::Instant;

use hive_core::time::BootTime;

use super::{Engine, Refusal, permit};
use crate::store::waiter::{Progress, Waiter};

impl Engine {
    /// Waits for a waiter until `deadline`, or without one until it is ready, as long as
    /// `worth_waiting` holds for the answer so far.
    pub(crate) async fn wait_for<T>(
        &self,
        mut waiter: Waiter<T, Refusal>,
        deadline: Option<Instant>,
        mut worth_waiting: impl FnMut(&T) -> bool,
    ) -> Result<T, Refusal> {
        let (mut last, mut due) = (None, None);
        let refusal = loop {
            tokio::select! {
                biased;
                answer = waiter.next() => match answer {
                    Progress::Done(result) => return result,
                    Progress::Waiting { so_far, next_due } => {
                        due = next_due;
                        let last = last.insert(so_far);
                        if !worth_waiting(last) {
                            break None;
                        }
                        permit::release();
                    }
                },
                () = self.draining().cancelled(), if last.is_some() => break Some(Refusal::Draining),
                () = self.until(due) => {
                    due = None;
                    Box::pin(waiter.retry()).await;
                }
                () = until(deadline), if last.is_some() => break None,
            }
        };
        // A result that arrives at the same time is not lost: its mail is leased already.
        if let Some(result) = Box::pin(waiter.cancel()).await {
            return result;
        }
        match (refusal, last) {
            (None, Some(last)) => Ok(last),
            (refusal, _) => Err(refusal.unwrap_or(Refusal::Draining)),
        }
    }

    /// Waits until the boot clock shows `due`; forever without one.
    pub(crate) async fn until(&self, due: Option<BootTime>) {
        match due {
            Some(due) => Box::pin(tokio::time::sleep(due.since(self.clock().now().boot))).await,
            None => std::future::pending().await,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => Box::pin(tokio::time::sleep_until(deadline)).await,
        None => std::future::pending().await,
    }
}
