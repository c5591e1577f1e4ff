//! A store that is worked by hand: for a simulation, which says itself when a batch is committed
//! and how large it is.
//!
//! Invariant: it does what the writer's thread does, with the same committer; only when is for
//! somebody else to say.

use super::committer::Committer;
use super::writer::Item;
use crate::sync::mpsc;

/// What a step did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stepped {
    /// Nothing was queued.
    Idle,
    /// A batch was run; it is committed, or the database has failed over it.
    Batch {
        /// Whether it is committed.
        committed: bool,
    },
    /// The database cannot be used: it was tried to open it again, and what was queued meanwhile
    /// was refused.
    Recovery {
        /// Whether it can be used again.
        recovered: bool,
    },
}

/// The queue's far end. Dropped, it closes the database as a killed process would leave it, but for
/// what closing does to the files.
#[derive(Debug)]
pub struct Hand {
    committer: Committer,
    items: mpsc::Receiver<Item>,
}

impl Hand {
    pub(super) fn new(committer: Committer, items: mpsc::Receiver<Item>) -> Self {
        Self { committer, items }
    }

    /// How many items are queued.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.items.len()
    }

    /// Whether the database can be used.
    #[must_use]
    pub fn is_open(&self) -> bool {
        self.committer.is_open()
    }

    /// One batch of at most `most` items, or one attempt to recover.
    pub fn step(&mut self, most: usize) -> Stepped {
        if !self.committer.is_open() {
            let recovered = self.committer.recover();
            while let Some(item) = (!recovered).then(|| self.items.try_recv().ok()).flatten() {
                self.committer.refuse(item);
            }
            return Stepped::Recovery { recovered };
        }
        let Some(first) = self.committer.left_over().or_else(|| self.items.try_recv().ok()) else {
            return Stepped::Idle;
        };
        self.committer.batch(first, &mut self.items, most);
        Stepped::Batch { committed: self.committer.is_open() }
    }

    /// Folds the log into the database and closes it, as a broker does that ends in good order.
    pub fn close(self) {
        self.committer.close();
    }
}
