//! When the log is folded into the database: when it has grown, or as soon as nothing is written.
//!
//! Invariant: a fold that readers have prevented is tried again after each commit, but they are
//! waited for only when the log has grown further.

use rusqlite::Connection;

use crate::store::file::fold::{self, IDLE_PAGES, LONG_PAGES, PAGES};
use crate::store::file::reader::Readers;

/// What is known of the log.
#[derive(Debug)]
pub(super) struct Folding {
    /// Pages after the last commit.
    pages: u32,
    /// Pages after which it is folded next.
    next: u32,
    /// Pages after which queries are paused for it next.
    pause: u32,
    /// Pages at the last fold.
    folded: u32,
}

impl Default for Folding {
    fn default() -> Self {
        Self { pages: 0, next: PAGES, pause: LONG_PAGES, folded: 0 }
    }
}

impl Folding {
    /// Notes the length of the log after a commit.
    pub(super) fn committed(&mut self, pages: u32) {
        if pages < self.pages {
            // It has begun again.
            *self = Self::default();
        }
        self.pages = pages;
    }

    /// Returns whether it is to be folded before the next batch.
    pub(super) fn is_long(&self) -> bool {
        self.pages >= self.next
    }

    /// Returns whether it is worth to fold it while nothing is written.
    pub(super) fn is_due_when_idle(&self) -> bool {
        self.pages >= self.folded + IDLE_PAGES
    }

    /// Folds the log, as far as readers allow.
    pub(super) fn fold(&mut self, conn: &Connection, readers: &Readers) -> rusqlite::Result<()> {
        let mut pause = None;
        if self.pages >= self.pause {
            self.pause = self.pages + PAGES;
            pause = readers.pause(fold::QUERIES_WAIT);
        }
        let is_whole = fold::fold(conn, pause.is_some())?;
        self.folded(is_whole);
        Ok(())
    }

    fn folded(&mut self, is_whole: bool) {
        self.next = self.pages + if is_whole { PAGES } else { 1 };
        self.folded = self.pages;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn committed(folding: &mut Folding, pages: u32) -> bool {
        folding.committed(pages);
        folding.is_long()
    }

    #[test]
    fn a_log_is_folded_when_it_has_grown_and_again_when_it_has_grown_further() {
        let mut folding = Folding::default();
        assert!(!committed(&mut folding, PAGES - 1));
        assert!(committed(&mut folding, PAGES));
        folding.folded(true);
        // A reader keeps it from beginning again.
        assert!(!committed(&mut folding, PAGES + 1));
        assert!(committed(&mut folding, 2 * PAGES + 1));
        // A reader needs some of its pages.
        folding.folded(false);
        assert!(committed(&mut folding, 2 * PAGES + 2));
    }

    #[test]
    fn a_log_that_has_begun_again_is_as_a_new_one() {
        let mut folding = Folding::default();
        assert!(committed(&mut folding, PAGES + 7));
        folding.folded(true);
        assert!(!folding.is_due_when_idle());
        assert!(!committed(&mut folding, 3));
        assert!(!folding.is_due_when_idle());
        assert!(!committed(&mut folding, PAGES - 1));
        assert!(folding.is_due_when_idle());
        assert!(committed(&mut folding, PAGES));
    }
}
