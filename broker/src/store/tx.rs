//! A command's view of the database while it runs: the connection, the time, fresh ids and event numbers, and the effects to come.
//!
//! Invariant: what a command that fails took here is given back, so ids and event numbers have no holes that anybody could see.

use std::cell::{Cell, RefCell};
use std::ops::Deref;

use hive_core::time::Now;
use rusqlite::{Connection, OptionalExtension as _};

use super::Effect;
use super::codec::integer;

/// The counters behind ids and event numbers, kept by the writer between commands.
#[derive(Debug, Default)]
pub(super) struct Counters {
    last_id: Cell<u64>,
    last_event: Cell<u64>,
}

/// Where the counters stood at some moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    last_id: u64,
    last_event: u64,
    effects: usize,
}

impl Counters {
    /// Reads the counters, never going back behind what this process already gave out.
    pub(super) fn load(&self, conn: &Connection) -> rusqlite::Result<()> {
        self.last_id.set(self.last_id.get().max(read(conn, "last_id")?));
        self.last_event.set(self.last_event.get().max(read(conn, "last_event")?));
        Ok(())
    }

    pub(super) fn last_event(&self) -> u64 {
        self.last_event.get()
    }
}

fn read(conn: &Connection, key: &str) -> rusqlite::Result<u64> {
    let mut select = conn.prepare_cached("SELECT value FROM meta WHERE key = ?1")?;
    let value: Option<i64> = select.query_row([key], |row| row.get(0)).optional()?;
    Ok(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(0))
}

/// A running transaction.
#[derive(Debug)]
pub struct Tx<'c> {
    conn: &'c Connection,
    counters: &'c Counters,
    effects: RefCell<Vec<Effect>>,
    /// The time of the transaction.
    pub now: Now,
}

impl<'c> Tx<'c> {
    pub(super) fn new(conn: &'c Connection, counters: &'c Counters, now: Now) -> Self {
        Self { conn, counters, effects: RefCell::new(Vec::new()), now }
    }

    /// The next number of the hive's one sequence.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        let id = self.counters.last_id.get() + 1;
        self.counters.last_id.set(id);
        id
    }

    /// The number of the next event.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        let sequence = self.counters.last_event.get() + 1;
        self.counters.last_event.set(sequence);
        sequence
    }

    /// Has this done once the transaction is on disk.
    pub fn after_commit(&self, effect: Effect) {
        let mut effects = self.effects.borrow_mut();
        if effects.last() != Some(&effect) {
            effects.push(effect);
        }
    }

    pub(super) fn mark(&self) -> Mark {
        let Counters { last_id, last_event } = self.counters;
        Mark { last_id: last_id.get(), last_event: last_event.get(), effects: self.effects.borrow().len() }
    }

    pub(super) fn reset(&self, mark: Mark) {
        self.counters.last_id.set(mark.last_id);
        self.counters.last_event.set(mark.last_event);
        self.effects.borrow_mut().truncate(mark.effects);
    }

    /// Writes the counters, if they moved since `mark`.
    pub(super) fn save_counters(&self, mark: Mark) -> rusqlite::Result<()> {
        let now = self.mark();
        for (key, before, after) in [("last_id", mark.last_id, now.last_id), ("last_event", mark.last_event, now.last_event)] {
            if before != after {
                let mut put = self.conn.prepare_cached("INSERT OR REPLACE INTO meta (key, value) VALUES (?1, ?2)")?;
                put.execute((key, integer(after)))?;
            }
        }
        Ok(())
    }

    pub(super) fn into_effects(self) -> Vec<Effect> {
        self.effects.into_inner()
    }
}

impl Deref for Tx<'_> {
    type Target = Connection;
    fn deref(&self) -> &Connection {
        self.conn
    }
}
