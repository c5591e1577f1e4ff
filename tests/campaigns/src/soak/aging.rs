//! Making mail old: the retention of a hive counts days and a soak lasts minutes, so what has been
//! there for a while is made days older while the broker is down. It finds it at its start, as it
//! would after a long night, and its own retention does the rest.
//!
//! Invariant: only times of what is over are moved, and all of it by the same, so that the order of
//! things stays.

use std::path::Path;

use rusqlite::Connection;

/// The columns with the time at which something was over.
const TIMES: [(&str, &str); 9] = [
    ("message", "accept_time"),
    ("delivery", "state_time"),
    ("turn", "start_time"),
    ("turn", "end_time"),
    ("event", "time"),
    ("request", "time"),
    ("command", "close_time"),
    ("reminder", "close_time"),
    ("question", "close_time"),
];

/// Makes what was so before `before_ms` older by `by_ms`. The broker must not run.
pub(super) fn age(database: &Path, before_ms: i64, by_ms: i64) -> rusqlite::Result<()> {
    let mut conn = Connection::open(database)?;
    let all = conn.transaction()?;
    for (table, column) in TIMES {
        // What is not over has no such time.
        all.execute(
            &format!("UPDATE {table} SET {column} = {column} - ?1 WHERE {column} < ?2"),
            (by_ms, before_ms),
        )?;
    }
    all.commit()
}
