//! A stepped store: a simulation decides when a batch is committed, and how large it is.
//!
//! Invariant: it does the same as the writer's thread, with the same committer.

use super::committer::Committer;
use super::queue::{Item, Most};
use crate::sync::mpsc;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Nothing was queued.
    Idle,
    /// A batch was run; it is committed, or the database has failed.
    Batch {
        /// Whether it is committed, and the log folded if that was due.
        committed: bool,
    },
    /// The database cannot be used: one attempt was made to open it again, and queued items were
    /// refused.
    Recovery {
        /// Whether it can be used again.
        recovered: bool,
    },
}

/// The receiving end of the queue. Dropping it leaves the files as a killed process would, apart
/// from what closing a connection does.
#[derive(Debug)]
pub struct SteppedStore {
    committer: Committer,
    items: mpsc::Receiver<Item>,
}

impl SteppedStore {
    pub(super) fn new(committer: Committer, items: mpsc::Receiver<Item>) -> Self {
        Self { committer, items }
    }

    /// Returns how many items are queued, and how many waiters may have to be polled beside them.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.committer.woken_count() + self.items.len()
    }

    /// Returns whether the database can be used.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.committer.is_open()
    }

    /// Runs one batch of at most `most` items and as many polls of woken waiters, or one attempt to
    /// recover.
    pub fn step(&mut self, most: usize) -> Step {
        if !self.committer.is_open() {
            let recovered = self.committer.recover();
            while let Some(item) = (!recovered).then(|| self.items.try_recv().ok()).flatten() {
                self.committer.refuse(item);
            }
            return Step::Recovery { recovered };
        }
        let first = self.items.try_recv().ok();
        if first.is_none() && self.committer.woken_count() == 0 {
            return Step::Idle;
        }
        let most = Most { items: most, changes: u64::MAX, polls: most };
        let Some(conn) = self.committer.lend() else { return Step::Idle };
        self.committer.batch(&conn, &conn, first, &mut self.items, most);
        drop(self.committer.announce());
        self.committer.fold_if_long(&conn);
        self.committer.take_back(conn);
        Step::Batch { committed: self.committer.is_open() }
    }

    /// Checkpoints and closes the database, as a broker that ends cleanly does.
    pub fn close(self) {
        self.committer.close();
    }
}
