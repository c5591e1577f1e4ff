//! Answers to counted requests that are not in blocks yet: those of the batch, and those in pages.
//!
//! Invariant: a repeat finds an answer in one of these places or in a block, also if it comes in
//! the batch that answered first. What is known of the pages is what the transaction has.

use std::cell::{Cell, RefCell, RefMut};

use hive_core::time::WallTime;
use rusqlite::Result;

use crate::store::row::request::{self, Answers, Entry, Pages, Series};
use crate::store::statement::Statements;

#[derive(Debug, Default)]
pub(in crate::store) struct Requests {
    /// Answers of the batch that are not written.
    fresh: RefCell<Answers>,
    /// What the pages have, once that was read.
    pages: RefCell<Option<Pages>>,
    /// How often the pages have changed.
    changes: Cell<u64>,
}

impl Requests {
    pub(super) fn is_empty(&self) -> bool {
        self.fresh.borrow().is_empty()
    }

    /// Adds an answer of the batch.
    pub(super) fn add(&self, series: Series, entry: Entry) {
        self.fresh.borrow_mut().entry(series).or_default().push(entry);
    }

    fn pages(&self, from: &impl Statements) -> Result<RefMut<'_, Pages>> {
        let mut pages = self.pages.borrow_mut();
        if pages.is_none() {
            *pages = Some(Pages::read(from)?);
        }
        Ok(RefMut::map(pages, Option::get_or_insert_default))
    }

    /// Returns the answer to a request.
    pub(in crate::store) fn find(
        &self,
        from: &impl Statements,
        series: &Series,
        number: u64,
    ) -> Result<Option<Entry>> {
        let is_it = |entry: &&Entry| entry.number == number;
        let fresh = self.fresh.borrow();
        if let Some(entry) = fresh.get(series).and_then(|entries| entries.iter().find(is_it)) {
            return Ok(Some(entry.clone()));
        }
        let pages = self.pages(from)?;
        if let Some(entry) = pages.of(series).iter().find(is_it) {
            return Ok(Some(entry.clone()));
        }
        let found = request::in_blocks(from, series, number)?;
        if found.is_none() {
            pages.all_are_read()?;
        }
        Ok(found)
    }

    /// Returns a number that none of a series exceeds.
    pub(in crate::store) fn highest(&self, from: &impl Statements, series: &Series) -> Result<u64> {
        let fresh = self.fresh.borrow();
        let fresh = fresh.get(series).into_iter().flatten().map(|entry| entry.number).max();
        let in_pages = self.pages(from)?.of(series).iter().map(|entry| entry.number).max();
        let in_blocks = request::highest_in_blocks(from, series)?;
        Ok(in_blocks.max(in_pages.unwrap_or(0)).max(fresh.unwrap_or(0)))
    }

    /// Writes the answers of the batch as a page, and blocks when there are many pages.
    pub(super) fn write_back(&self, to: &impl Statements, time: WallTime) -> Result<()> {
        let answers = self.fresh.take();
        if answers.is_empty() {
            return Ok(());
        }
        self.changes.set(self.changes.get() + 1);
        let mut pages = self.pages(to)?;
        pages.write(to, answers, time.0)?;
        if pages.are_many() {
            pages.make_blocks(to)?;
        }
        Ok(())
    }

    /// Notes that the pages are not what they were.
    pub(in crate::store) fn forget_pages(&self) {
        self.changes.set(self.changes.get() + 1);
        *self.pages.borrow_mut() = None;
    }

    /// Returns a mark of what the pages have.
    pub(super) fn mark(&self) -> u64 {
        self.changes.get()
    }

    /// Forgets what a failed command has answered since a mark. Most have written no page.
    pub(super) fn reset(&self, mark: u64) {
        self.fresh.borrow_mut().clear();
        if self.changes.get() != mark {
            self.forget_pages();
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.fresh.borrow_mut().clear();
        self.forget_pages();
    }
}
