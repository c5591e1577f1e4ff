//! A batch that is measured, because metrics are offered.
//!
//! Invariant: it counts once, when the batch is on disk.

use std::sync::Arc;
use std::time::Instant;

use crate::measures::{Commit, Measures};
use crate::store::effect::Effect;
use crate::store::file::timing;

/// A batch that is measured.
pub(super) struct Measured {
    measures: Arc<Measures>,
    began: Instant,
}

impl Measured {
    /// Begins to measure, on the thread that runs the batch.
    pub(super) fn begin(measures: &Arc<Measures>) -> Self {
        timing::begin();
        Self { measures: Arc::clone(measures), began: Instant::now() }
    }

    /// Counts the batch, which is on disk. One that had nothing to write was not synced.
    pub(super) fn end(self, items: usize, effects: &[Effect]) {
        if let Some(sync) = timing::end() {
            self.measures.committed(Commit { took: self.began.elapsed(), sync, items });
        }
        for effect in effects {
            if let Effect::Count(count) = effect {
                self.measures.count(count);
            }
        }
    }
}
