//! A command's view of the database while it runs: the connection, the time, fresh ids and event
//! numbers, and its effects.
//!
//! Invariant: the numbers that a failed command took are released, so committed ids and event
//! numbers have no holes.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use hive_core::id::NUMBER_MAX;
use hive_core::time::Now;
use rusqlite::{Connection, Statement};

use crate::measures::Count;
use crate::store::effect::Effect;
use crate::store::effect::PresenceChange;
use crate::store::file::numbers::Numbers;
use crate::store::key::AgentKey;
use crate::store::row::inbox;
use crate::store::statement::{Sql, Statements};
use crate::store::write::cache::{self, Cache};
use crate::store::write::held::Prepared;
use crate::store::write::new_traces::NewTraces;

/// The counters of ids and event numbers, kept by the writer between commands.
#[derive(Debug, Default)]
pub(in crate::store) struct Counters {
    last_id: Cell<u64>,
    last_event: Cell<u64>,
}

/// The counters and changes of a batch at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::store) struct Mark {
    last_id: u64,
    last_event: u64,
    effects: usize,
    cache: cache::Mark,
}

impl Counters {
    /// Reads the counters, but never goes back below a number that this process has assigned.
    pub(in crate::store) fn load(&self, conn: &Connection) -> rusqlite::Result<()> {
        let numbers = Numbers::read(conn)?;
        self.last_id.set(self.last_id.get().max(numbers.last_id));
        self.last_event.set(self.last_event.get().max(numbers.last_event));
        Ok(())
    }

    pub(in crate::store) fn last_event(&self) -> u64 {
        self.last_event.get()
    }
}

/// Returns the next number of a counter.
fn next(counter: &Cell<u64>) -> u64 {
    let number = counter.get() + 1;
    assert!(number <= NUMBER_MAX, "the database has given out all its numbers");
    counter.set(number);
    number
}

/// A running transaction.
pub struct Tx<'c> {
    conn: &'c Connection,
    statements: &'c dyn Prepared,
    counters: &'c Counters,
    cache: &'c Cache,
    effects: RefCell<Vec<Effect>>,
    /// Rows that memory had, and that were written.
    written_back: Cell<u64>,
    /// Whether rows that memory had could not be written.
    is_torn: Cell<bool>,
    /// The time of the transaction.
    pub now: Now,
    /// Whether a notifier works through the operator outbox (the table `attention`). If not, no row
    /// is written to it.
    pub attention: bool,
    /// The traces that may begin; `None` if none are exported.
    new_traces: Option<&'c NewTraces>,
    /// Whether metrics are offered.
    is_counted: bool,
}

impl std::fmt::Debug for Tx<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tx")
            .field("now", &self.now)
            .field("effects", &self.effects)
            .finish_non_exhaustive()
    }
}

impl<'c> Tx<'c> {
    pub(in crate::store) fn new(
        conn: &'c Connection,
        counters: &'c Counters,
        cache: &'c Cache,
        now: Now,
        attention: bool,
    ) -> Self {
        Self {
            conn,
            statements: conn,
            counters,
            cache,
            effects: RefCell::default(),
            written_back: Cell::default(),
            is_torn: Cell::default(),
            now,
            attention,
            new_traces: None,
            is_counted: false,
        }
    }

    /// Returns it with or without counts.
    pub(super) fn counted(self, is_counted: bool) -> Self {
        Self { is_counted, ..self }
    }

    /// Returns it with the traces that may begin.
    pub(super) fn tracing(self, new_traces: Option<&'c NewTraces>) -> Self {
        Self { new_traces, ..self }
    }

    /// Returns whether work without a trace begins one, and counts it then.
    pub(crate) fn begins_trace(&self) -> bool {
        self.new_traces.is_some_and(NewTraces::take)
    }

    /// Returns it with statements that are held.
    pub(super) fn with_statements(self, statements: &'c dyn Prepared) -> Self {
        Self { statements, ..self }
    }

    /// Returns the rows that the writer has in memory.
    pub(in crate::store) fn cache(&self) -> &Cache {
        self.cache
    }

    /// Writes what changed in memory only into the transaction.
    pub(in crate::store) fn write_back(&self) -> rusqlite::Result<()> {
        let before = self.conn.total_changes();
        let all = self.write_all_back();
        self.is_torn.set(self.is_torn.get() || all.is_err());
        all?;
        let written = self.conn.total_changes() - before;
        self.written_back.set(self.written_back.get() + written);
        Ok(())
    }

    fn write_all_back(&self) -> rusqlite::Result<()> {
        self.cache.write_back(|agent, counts| inbox::write(self, agent, counts))?;
        self.cache.fresh.write_back(self, self.now.wall)
    }

    /// Makes the rows and the memory agree before a statement that may need that.
    fn before(&self, text: &str) -> rusqlite::Result<()> {
        const IN_MEMORY: [&str; 6] =
            ["open_delivery", "settled_delivery", " delivery", "inbox", " event", " message "];
        if !self.cache.is_written() && IN_MEMORY.iter().any(|table| text.contains(table)) {
            self.write_back()?;
        }
        if text.contains("open_delivery") && !text.starts_with("SELECT") {
            self.cache.leases.forget_all();
        }
        Ok(())
    }

    /// Returns the connection, for SQL of tests. The transaction has all that memory has.
    #[cfg(any(test, feature = "faults"))]
    #[must_use]
    pub fn connection(&self) -> &Connection {
        self.write_back().expect("it can be written");
        self.cache.leases.forget_all();
        self.cache.fresh.requests.forget_pages();
        self.conn
    }

    /// Returns whether rows of any command could not be written. Then the batch is aborted,
    /// whichever command met the error.
    pub(super) fn is_torn(&self) -> bool {
        self.is_torn.get()
    }

    /// Returns the number of changes that commands have made so far, of rows and in memory.
    pub(super) fn changes(&self) -> u64 {
        self.conn.total_changes() - self.written_back.get() + self.cache.fresh.changes()
    }

    /// Returns the key of the last row that was added to a table with a key of one number.
    pub(in crate::store) fn inserted_key(&self) -> i64 {
        self.conn.last_insert_rowid()
    }

    /// Returns the next number of the hive's one sequence.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        next(&self.counters.last_id)
    }

    /// Returns the number of the next event.
    #[must_use]
    pub fn next_event(&self) -> u64 {
        next(&self.counters.last_event)
    }

    /// Returns the number of the newest event.
    #[must_use]
    pub fn last_event(&self) -> u64 {
        self.counters.last_event.get()
    }

    /// Adds an effect, applied once the transaction is on disk.
    pub fn after_commit(&self, effect: Effect) {
        if hive_fault::planted!(LostWake) && matches!(effect, Effect::Hint(_)) {
            return;
        }
        let mut effects = self.effects.borrow_mut();
        if effects.last() != Some(&effect) {
            effects.push(effect);
        }
    }

    /// Counts something once the transaction is on disk, if metrics are offered.
    pub fn count(&self, count: impl FnOnce() -> Count) {
        if self.is_counted {
            // Two that are equal are two.
            self.effects.borrow_mut().push(Effect::Count(count()));
        }
    }

    /// Returns the agents for which this transaction has hints so far.
    pub(in crate::store) fn hinted(&self) -> BTreeSet<AgentKey> {
        let hinted = |effect: &Effect| match *effect {
            Effect::Hint(agent) | Effect::Session(agent) | Effect::Changed(agent) => Some(agent),
            Effect::Shown(_)
            | Effect::Due(_)
            | Effect::WallDue
            | Effect::Outbox
            | Effect::Action
            | Effect::Presence(..)
            | Effect::Count(_)
            | Effect::NameFreed(_) => None,
        };
        self.effects.borrow().iter().filter_map(hinted).collect()
    }

    /// Returns the changes of an agent's presence that this transaction has made so far, oldest
    /// first. Memory does not have them yet.
    pub fn presence_changes(&self, agent: AgentKey) -> Vec<PresenceChange> {
        let effects = self.effects.borrow();
        let changes = effects.iter().filter_map(|effect| {
            let Effect::Presence(whose, change) = effect else { return None };
            (*whose == agent).then(|| change.clone())
        });
        changes.collect()
    }

    pub(in crate::store) fn mark(&self) -> Mark {
        let Counters { last_id, last_event } = self.counters;
        Mark {
            last_id: last_id.get(),
            last_event: last_event.get(),
            effects: self.effects.borrow().len(),
            cache: self.cache.mark(),
        }
    }

    pub(in crate::store) fn reset(&self, mark: Mark) {
        self.counters.last_id.set(mark.last_id);
        self.counters.last_event.set(mark.last_event);
        self.effects.borrow_mut().truncate(mark.effects);
        self.cache.reset(mark.cache);
    }

    /// Stores the counters apart from the rows; to be called before rows that carry the newest
    /// numbers may be deleted.
    pub(in crate::store) fn keep_counters(&self) -> rusqlite::Result<()> {
        let Counters { last_id, last_event } = self.counters;
        Numbers { last_id: last_id.get(), last_event: last_event.get() }.store(self.conn)
    }

    pub(in crate::store) fn into_effects(self) -> Vec<Effect> {
        self.effects.into_inner()
    }
}

impl Statements for Tx<'_> {
    fn prepared<T>(
        &self,
        sql: Sql<'_>,
        work: impl FnOnce(&mut Statement<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        let text = match sql {
            Sql::Direct(text) => text,
            Sql::Fixed(text) => {
                self.before(text)?;
                text
            }
            Sql::Made(text) => {
                self.before(text)?;
                return self.conn.prepared(sql, work);
            }
        };
        let (mut work, mut done) = (Some(work), None);
        self.statements
            .run(text, &mut |statement| done = work.take().map(|work| work(statement)))?;
        done.unwrap_or(Err(rusqlite::Error::InvalidQuery))
    }
}
