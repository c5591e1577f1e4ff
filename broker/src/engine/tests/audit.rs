//! The audit: what has to be true of a hive's database at any moment, whatever happened before.
//!
//! The rules are those of [`crate::audit`], and one that holds only where no agent is created again
//! under the name of a retired one.

use std::path::{Path, PathBuf};

use hive_core::event::{Facts, Kind};
use rusqlite::{Connection, OpenFlags};

use crate::audit::broken_rules;
use crate::store::event;

/// Counts questions of active askers that ended under no name and do not have exactly one outcome.
const UNCLOSED: &str = "SELECT count(*) FROM question q JOIN agent a ON a.id = q.asker_id WHERE \
     q.state = 4 AND q.closed_by = '' AND a.retired = 0 AND (SELECT count(*) FROM message m WHERE \
     m.question_id = q.id AND m.to_id = q.asker_id AND m.system_kind IN (6, 7, 8)) <> 1";

/// Checks every rule on this database.
pub(super) fn audit(path: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags).expect("the database can be read");
    check(&conn);
    check_facts(&conn);
}

/// Checks that each event has the facts of its kind.
fn check_facts(conn: &Connection) {
    for event in event::after(conn, 0, None, u32::MAX).expect("events are read") {
        let kind: Kind = event.kind();
        assert!(!kind.has_facts() || event.facts != Facts::unknown(kind), "{event:?} has no facts");
    }
}

fn check(conn: &Connection) {
    conn.execute_batch("BEGIN").expect("a snapshot");
    assert_eq!(broken_rules(conn).expect("the rules are checked"), [] as [&str; 0]);
    let unclosed: i64 = conn
        .prepare_cached(UNCLOSED)
        .and_then(|mut select| select.query_row([], |row| row.get(0)))
        .expect("it is counted");
    assert_eq!(unclosed, 0, "questions of active askers are closed by a name");
    conn.execute_batch("COMMIT").expect("the snapshot ends");
}

/// Keeps a connection, for audits after every step.
#[derive(Debug)]
pub(super) struct Auditor(Connection);

impl Auditor {
    pub(super) fn new(path: &Path) -> Self {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        Self(Connection::open_with_flags(path, flags).expect("the database can be read"))
    }

    pub(super) fn check(&self) {
        check(&self.0);
    }
}

/// Audits a database when it goes out of scope.
#[derive(Debug)]
pub(super) struct Books(pub(super) PathBuf);

impl Drop for Books {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            audit(&self.0);
            // The operator's check must have no findings, either.
            let checked =
                crate::store::check::check(&self.0, tokio_util::sync::CancellationToken::new());
            assert_eq!(checked.problems, [] as [&str; 0]);
        }
    }
}
