//! The content of one file that the disk surely holds, and the changes to the file since: a power
//! cut may lose the difference.
//!
//! Invariant: `durable` with all of `pending` applied in order is the content of the file, except
//! for what a sync has forgotten.

use rand::{Rng, SeedableRng as _};
use rand_xorshift::XorShiftRng;

use crate::cut;

/// An unsynced change of a file.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Write { offset: u64, data: Vec<u8> },
    Truncate { len: u64 },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Model {
    /// The content surely on disk; `None` until the name is synced.
    pub(crate) durable: Option<Vec<u8>>,
    /// Changes since then, in order.
    pub(crate) pending: Vec<Change>,
    /// The content of an earlier file of this name, if its deletion is not synced.
    pub(crate) ghost: Option<Vec<u8>>,
    /// Whether the file exists for a running process.
    pub(crate) there: bool,
    /// The length for a running process.
    pub(crate) len: u64,
    /// Whether a sync has forgotten some of it.
    pub(crate) forgotten: bool,
}

impl Model {
    /// Returns a file that existed before, and is on disk.
    pub(crate) fn found(content: Vec<u8>) -> Self {
        Self { len: content.len() as u64, durable: Some(content), there: true, ..Self::default() }
    }

    /// Opens the file: creates it if it did not exist.
    pub(crate) fn opened(&mut self) {
        if !self.there {
            *self = Self { ghost: self.ghost.take(), there: true, ..Self::default() };
        }
    }

    pub(crate) fn wrote(&mut self, offset: u64, data: &[u8]) {
        self.len = self.len.max(offset + data.len() as u64);
        self.pending.push(Change::Write { offset, data: data.to_vec() });
    }

    pub(crate) fn truncated(&mut self, len: u64) {
        self.len = len;
        self.forgotten &= len > 0;
        self.pending.push(Change::Truncate { len });
    }

    pub(crate) fn synced(&mut self) {
        let mut image = self.durable.take().unwrap_or_default();
        for change in self.pending.drain(..) {
            change.apply(&mut image);
        }
        self.durable = Some(image);
        self.ghost = None;
    }

    /// Forgets the unsynced changes; some may have reached the disk.
    pub(crate) fn lost(&mut self, seed: Option<u64>) {
        if let Some(seed) = seed {
            let mut rng = XorShiftRng::seed_from_u64(seed);
            self.durable = Some(cut::image(self, &mut rng));
        }
        self.pending.clear();
        self.forgotten = true;
    }

    /// Removes the name; the removal is not on disk yet.
    pub(crate) fn deleted(&mut self) {
        let ghost = self.durable.take().or_else(|| self.ghost.take());
        *self = Self { ghost, ..Self::default() };
    }

    /// Syncs the directory.
    pub(crate) fn named(&mut self) {
        self.ghost = None;
        if self.there {
            self.durable.get_or_insert_default();
        }
    }

    /// Returns what is left of it after a power cut now.
    pub(crate) fn survivor(&self, rng: &mut dyn Rng) -> Option<Vec<u8>> {
        let named = self.durable.is_some() || (self.there && cut::coin(rng));
        if named {
            return Some(cut::image(self, rng));
        }
        self.ghost.clone().filter(|_| cut::coin(rng))
    }
}

impl Change {
    pub(crate) fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { offset, data } => {
                let offset = usize::try_from(*offset).expect("files of tests fit into memory");
                let end = offset + data.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[offset..end].copy_from_slice(data);
            }
            Self::Truncate { len } => {
                image.resize(usize::try_from(*len).expect("files of tests fit into memory"), 0);
            }
        }
    }
}
