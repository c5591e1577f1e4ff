//! Held statements: those that the writer has used, found by the address of their text.
//!
//! A connection finds a statement by its text, whose hash costs as much as a small statement.
//! Invariant: a statement that runs is not found; one that is asked for in the meantime is prepared
//! again.

use std::cell::RefCell;

use rusqlite::{CachedStatement, Connection, Result, Statement};

/// What runs prepared statements.
pub(in crate::store) trait Prepared {
    /// Does work with the statement of this text.
    fn run(&self, text: &'static str, work: &mut dyn FnMut(&mut Statement<'_>)) -> Result<()>;
}

impl Prepared for Connection {
    fn run(&self, text: &'static str, work: &mut dyn FnMut(&mut Statement<'_>)) -> Result<()> {
        work(&mut *self.prepare_cached(text)?);
        Ok(())
    }
}

/// The statements of one connection.
pub(super) struct Held<'c> {
    conn: &'c Connection,
    /// Each with its text, and without the statement while that runs.
    statements: RefCell<Vec<(&'static str, Option<CachedStatement<'c>>)>>,
}

impl<'c> Held<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self { conn, statements: RefCell::default() }
    }

    /// Returns the place of a text.
    fn place(&self, text: &'static str) -> usize {
        let mut statements = self.statements.borrow_mut();
        let known = statements.iter().position(|(known, _)| std::ptr::eq(*known, text));
        known.unwrap_or_else(|| {
            statements.push((text, None));
            statements.len() - 1
        })
    }

    /// Puts a statement to its text; returns what was there.
    fn swap(
        &self,
        place: usize,
        statement: Option<CachedStatement<'c>>,
    ) -> Option<CachedStatement<'c>> {
        let mut statements = self.statements.borrow_mut();
        statements.get_mut(place).and_then(|(_, held)| std::mem::replace(held, statement))
    }
}

impl Prepared for Held<'_> {
    fn run(&self, text: &'static str, work: &mut dyn FnMut(&mut Statement<'_>)) -> Result<()> {
        let place = self.place(text);
        let mut statement = match self.swap(place, None) {
            Some(statement) => statement,
            None => self.conn.prepare_cached(text)?,
        };
        work(&mut statement);
        self.swap(place, Some(statement));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "SELECT 1 + ?1";

    fn add(held: &Held<'_>, number: i64, inside: &mut dyn FnMut()) -> i64 {
        let mut sum = 0;
        let mut work = |statement: &mut Statement<'_>| {
            sum = statement
                .query_row([number], |row| {
                    inside();
                    row.get(0)
                })
                .expect("a row");
        };
        held.run(ONE, &mut work).expect("it is prepared");
        sum
    }

    #[test]
    fn a_statement_is_held_and_one_that_runs_is_prepared_again() {
        let conn = Connection::open_in_memory().expect("a database");
        let held = Held::new(&conn);
        assert_eq!(add(&held, 1, &mut || {}), 2);
        assert_eq!(add(&held, 2, &mut || assert_eq!(add(&held, 5, &mut || {}), 6)), 3);
        assert_eq!(held.statements.borrow().len(), 1);
    }

    #[test]
    fn a_statement_whose_work_panicked_is_prepared_again() {
        let conn = Connection::open_in_memory().expect("a database");
        let held = Held::new(&conn);
        let panics = std::panic::AssertUnwindSafe(|| add(&held, 1, &mut || panic!("a bug")));
        std::panic::catch_unwind(panics).expect_err("it panics");
        assert_eq!(add(&held, 1, &mut || {}), 2);
    }
}
