//! Aging of mail. The retention of a hive counts days and a soak lasts minutes, so older rows are
//! made days older while the broker is down. The broker finds them at its start, as after a long
//! night, and its own retention prunes them.
//!
//! Invariant: only times of closed rows are moved, all by the same amount, so that their order
//! stays.

use std::path::Path;

use rusqlite::Connection;

/// The columns with the time at which a row was closed.
const TIMES: [(&str, &str); 10] = [
    ("message", "accept_time"),
    ("open_delivery", "state_time"),
    ("settled_delivery", "state_time"),
    ("turn", "start_time"),
    ("turn", "end_time"),
    ("event_page", "time"),
    ("request", "time"),
    ("command", "close_time"),
    ("reminder", "close_time"),
    ("question", "close_time"),
];

/// Makes rows closed before `before_ms` older by `by_ms`. The broker must not run.
pub(super) fn age(database: &Path, before_ms: i64, by_ms: i64) -> rusqlite::Result<()> {
    let mut conn = Connection::open(database)?;
    let all = conn.transaction()?;
    for (table, column) in TIMES {
        // An open row has no such time.
        all.execute(
            &format!("UPDATE {table} SET {column} = {column} - ?1 WHERE {column} < ?2"),
            (by_ms, before_ms),
        )?;
    }
    all.commit()
}
