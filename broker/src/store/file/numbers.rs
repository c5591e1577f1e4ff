//! The highest id and the highest event number of a database.
//!
//! Each number is the key of the row that it was assigned to, so the highest keys of the tables
//! give the counters, and a commit does not have to write these separately. Pruning stores the
//! numbers that it may delete in `meta`. Invariant: no number of a database is above these.

use hive_core::id::NUMBER_MAX;
use rusqlite::{Connection, Result};

use crate::store::codec::integer;
use crate::store::file::mark;

/// The first schema version with questions, reminders and loose ends.
const QUESTIONS_FROM: u32 = 2;
/// The first schema version with pages of events.
const EVENT_PAGES_FROM: u32 = 12;
/// The first schema version with schedules.
const SCHEDULES_FROM: u32 = 19;

/// The numbers that were assigned last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::store) struct Numbers {
    pub(in crate::store) last_id: u64,
    pub(in crate::store) last_event: u64,
}

impl Numbers {
    /// Reads them. If no broker has begun on this backup yet, and it replaced a database whose
    /// numbers are not known, they are so far ahead that none of those is used again.
    pub(in crate::store) fn read(conn: &Connection) -> Result<Self> {
        // A database that a restored one replaces may be of an older version.
        let version: u32 = conn.pragma_query_value(None, "user_version", |row| row.get(0))?;
        // One statement for all ids and one for all events, because a start waits for them.
        let ids = [
            "SELECT value FROM meta WHERE key = 'last_id'",
            "SELECT max(id) FROM message",
            "SELECT max(id) FROM turn",
            "SELECT max(id) FROM command",
            "SELECT max(id) FROM question",
            "SELECT max(id) FROM reminder",
            "SELECT max(id) FROM published_loose_end",
            "SELECT max(id) FROM schedule",
        ];
        let known = match version {
            SCHEDULES_FROM.. => ids.len(),
            QUESTIONS_FROM.. => 7,
            0.. => 4,
        };
        let ids = &ids[..known];
        let newest_event = if version >= EVENT_PAGES_FROM {
            "SELECT max(last) FROM event_page"
        } else {
            "SELECT max(sequence) FROM event"
        };
        let events = ["SELECT value FROM meta WHERE key = 'last_event'", newest_event];
        let numbers = Self { last_id: highest(conn, ids)?, last_event: highest(conn, &events)? };
        Ok(if mark::numbers_are_behind(conn)? { numbers.far_ahead() } else { numbers })
    }

    /// Writes them into `meta`, but no smaller numbers than it holds.
    pub(in crate::store) fn store(self, conn: &Connection) -> Result<()> {
        let mut put = conn.prepare_cached(
            "INSERT INTO meta (key, value) VALUES (?1, ?2) \
             ON CONFLICT (key) DO UPDATE SET value = max(value, excluded.value)",
        )?;
        put.execute(("last_id", integer(self.last_id)))?;
        put.execute(("last_event", integer(self.last_event)))?;
        Ok(())
    }

    /// Returns numbers that are above those of any database that this one may have replaced.
    fn far_ahead(self) -> Self {
        Self { last_id: next_million(self.last_id), last_event: next_million(self.last_event) }
    }
}

/// Returns the first full million that is at least a million ahead.
fn next_million(number: u64) -> u64 {
    (number / 1_000_000 + 2) * 1_000_000
}

/// Returns the highest number that these statements find. One that no client could hold is refused:
/// at a million numbers a second, the last one is given out after 285 years.
fn highest(conn: &Connection, selects: &[&str]) -> Result<u64> {
    let sql = format!(
        "SELECT max(number) FROM (SELECT NULL AS number UNION ALL {})",
        selects.join(" UNION ALL ")
    );
    let value = conn.query_row(&sql, [], |row| row.get::<_, Option<i64>>(0))?.unwrap_or(0);
    match u64::try_from(value) {
        Ok(number) if number > NUMBER_MAX => {
            Err(rusqlite::Error::IntegralValueOutOfRange(0, value))
        }
        number => Ok(number.unwrap_or(0)),
    }
}
