//! What all watches have in common: waiting for a change, and sending a watcher its position.
//!
//! A watch reads what changed after its own position, and sends it before it reads again. So a slow
//! watcher delays only itself, and costs the memory of a few steps. Invariant: a position is sent
//! only after everything up to it that matches.

use std::time::Duration;

use hive_proto::v1;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tonic::Status;

use crate::engine::{Engine, Refusal};
use crate::sync::watch;

/// Steps that wait for a slow watcher; further ones are not read.
pub(super) const STEPS: usize = 4;
/// The time after which a watcher gets its position, if the log moved and nothing matched.
const PROGRESS: Duration = Duration::from_secs(60);

/// The least time from one read to the next. A change after a rest is read at once, and those of a
/// burst together: otherwise each of a hundred watchers would read the log for each commit, and
/// take the processor from the next message.
const REST: Duration = Duration::from_millis(5);

/// The sending end of a watch.
pub(super) type Out<T> = mpsc::Sender<Result<T, Status>>;

/// Why a watch goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Woken {
    /// Something may have changed.
    Changed,
    /// The watcher is to get its position.
    Progress,
    /// The watcher has disconnected, or the broker has ended.
    Gone,
}

/// The last position that a watcher got.
#[derive(Clone, Copy, Debug)]
pub(super) struct Told {
    sequence: u64,
    since: Instant,
}

impl Told {
    pub(super) fn new(sequence: u64) -> Self {
        Self { sequence, since: Instant::now() }
    }

    /// Returns the position.
    pub(super) fn sequence(self) -> u64 {
        self.sequence
    }

    /// Returns whether a newer position is to be sent now.
    pub(super) fn is_overdue(self, position: u64) -> bool {
        position > self.sequence && self.since.elapsed() >= PROGRESS
    }

    /// Waits until a newer position is to be sent; forever if there is none.
    pub(super) async fn is_due(self, position: u64) {
        if position > self.sequence {
            tokio::time::sleep_until(self.since + PROGRESS).await;
        } else {
            std::future::pending::<()>().await;
        }
    }
}

/// Returns the step with a position.
pub(super) fn progress(engine: &Engine, sequence: u64) -> v1::WatchProgress {
    v1::WatchProgress { log_id: engine.log_id().to_owned(), sequence }
}

/// Waits for the next reason to go on. `position` is how far the watcher has everything.
pub(super) async fn wait<T, M>(
    engine: &Engine,
    changes: &mut watch::Receiver<M>,
    out: &Out<T>,
    told: Told,
    position: u64,
) -> Result<Woken, Refusal> {
    tokio::select! {
        changed = rested_change(changes) => Ok(if changed { Woken::Changed } else { Woken::Gone }),
        () = out.closed() => Ok(Woken::Gone),
        () = engine.draining().cancelled() => Err(Refusal::Draining),
        () = told.is_due(position) => Ok(Woken::Progress),
    }
}

/// Waits for a change, and until it may be read, after a read; returns whether there can be more.
async fn rested_change<M>(changes: &mut watch::Receiver<M>) -> bool {
    let rested = Instant::now() + REST;
    let changed = changes.changed().await.is_ok();
    if changed {
        tokio::time::sleep_until(rested).await;
    }
    changed
}

/// Cuts items into parts that each stay well under one reply's bytes; an empty list is one part.
pub(super) fn parts<T>(items: Vec<T>, bytes_of: impl Fn(&T) -> usize) -> Vec<Vec<T>> {
    let (mut parts, mut bytes) = (vec![Vec::new()], 0);
    for item in items {
        let size = bytes_of(&item);
        bytes += size;
        if bytes > hive_core::limits::PAGE_BYTES_MAX {
            parts.push(Vec::new());
            bytes = size;
        }
        if let Some(part) = parts.last_mut() {
            part.push(item);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_under_the_limit_and_keep_the_order() {
        let million = 1024 * 1024;
        let sizes = vec![million, million, million, 1, 5 * million, 1];
        let cut = parts(sizes.clone(), |size| *size);
        assert_eq!(cut.concat(), sizes);
        let lengths: Vec<usize> = cut.iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 1, 1, 1], "{cut:?}");
        assert_eq!(parts(Vec::<usize>::new(), |size| *size), [Vec::<usize>::new()]);
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_a_burst_are_read_together_and_one_after_a_rest_at_once() {
        let (log, mut changes) = watch::channel(1);
        let begun = Instant::now();
        log.send_replace(2);
        let follows = async {
            tokio::time::sleep(REST / 2).await;
            log.send_replace(3);
        };
        let (changed, ()) = tokio::join!(rested_change(&mut changes), follows);
        assert!(changed);
        assert_eq!((begun.elapsed(), *changes.borrow_and_update()), (REST, 3));

        let begun = Instant::now();
        let later = async {
            tokio::time::sleep(3 * REST).await;
            log.send_replace(4);
        };
        let (changed, ()) = tokio::join!(rested_change(&mut changes), later);
        assert!(changed);
        assert_eq!(begun.elapsed(), 3 * REST);

        drop(log);
        let begun = Instant::now();
        assert!(!rested_change(&mut changes).await);
        assert_eq!(begun.elapsed(), Duration::ZERO, "an end does not rest");
    }

    #[tokio::test(start_paused = true)]
    async fn a_position_is_told_after_a_minute_and_only_if_it_is_newer() {
        let told = Told::new(7);
        let begun = Instant::now();
        let none = tokio::time::timeout(10 * PROGRESS, told.is_due(7)).await;
        assert!(none.is_err(), "there is nothing to tell");
        let told = Told::new(7);
        told.is_due(8).await;
        assert_eq!(begun.elapsed(), 11 * PROGRESS);
    }
}
