//! Migrations: an append-only list over `PRAGMA user_version`.
//!
//! Invariant: a database is brought to this broker's version in one transaction, or is left as it
//! was; one from the future is left untouched.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use rusqlite::{Connection, TransactionBehavior};

/// The migrations; entry N brings a database from version N to N + 1. Never edit an entry that was
/// released.
const MIGRATIONS: &[&str] = &[
    include_str!("sql/0001_init.sql"),
    include_str!("sql/0002_conversation.sql"),
    include_str!("sql/0003_turn_loop.sql"),
    include_str!("sql/0004_stop_and_purge.sql"),
    include_str!("sql/0005_tree.sql"),
    include_str!("sql/0006_retire_agent.sql"),
    include_str!("sql/0007_recipient_count.sql"),
    include_str!("sql/0008_settling.sql"),
    include_str!("sql/0009_event_facts.sql"),
    include_str!("sql/0010_open_deliveries.sql"),
    include_str!("sql/0011_lease_ends.sql"),
    include_str!("sql/0012_event_pages.sql"),
    include_str!("sql/0013_leased_first.sql"),
    include_str!("sql/0014_counted_requests.sql"),
    include_str!("sql/0015_traces.sql"),
    include_str!("sql/0016_launcher.sql"),
    include_str!("sql/0017_approvals.sql"),
    include_str!("sql/0018_actions.sql"),
    include_str!("sql/0019_schedules.sql"),
];

/// The schema of a new database. To run all migrations would take longer than all else of a first
/// boot, because each change of a table reads the whole schema again.
const SCHEMA: &str = include_str!("sql/schema.sql");

/// The version that this broker writes.
pub const SCHEMA_VERSION: u32 = 19;

/// Where a database file has its `user_version` (SQLite's file format, the database header).
const VERSION_AT: u64 = 60;

/// Why a database could not be brought to this broker's version.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A newer broker wrote it.
    #[error(
        "the database has schema version {found}, and this hived knows only up to {SCHEMA_VERSION}: a newer hived wrote it. \
         Install that version again; nothing was changed"
    )]
    FromTheFuture {
        /// The version of the database.
        found: u32,
    },
    /// SQLite returned an error.
    #[error("schema version {version} could not be created")]
    Sql {
        /// The version that the failed migration makes.
        version: u32,
        /// The error of SQLite.
        #[source]
        source: rusqlite::Error,
    },
}

/// Brings the database to [`SCHEMA_VERSION`], in one transaction: whatever ends it early, the older
/// broker can still use the file. `at` gets each version when its script begins.
pub(crate) fn migrate(conn: &mut Connection, at: &AtomicU32) -> Result<(), MigrateError> {
    match check(conn)? {
        SCHEMA_VERSION => Ok(()),
        0 => apply(conn, std::iter::once((SCHEMA_VERSION, SCHEMA)), at),
        found => apply(conn, scripts(found, SCHEMA_VERSION), at),
    }
}

/// Returns the scripts that bring a database from one version to another.
fn scripts(found: u32, wanted: u32) -> impl Iterator<Item = (u32, &'static str)> {
    (1..=wanted).zip(MIGRATIONS.iter().copied()).skip(found as usize)
}

/// Returns whether the file itself has this broker's version. A log beside it can only have a newer
/// one, so such a database is not migrated.
pub(crate) fn is_current(database: &Path) -> bool {
    let mut version = [0; 4];
    let read = File::open(database).and_then(|file| file.read_exact_at(&mut version, VERSION_AT));
    read.is_ok() && u32::from_be_bytes(version) == SCHEMA_VERSION
}

/// Returns the version of the database, if this broker knows it. Only reads, so that one from the
/// future is not changed.
pub(crate) fn check(conn: &Connection) -> Result<u32, MigrateError> {
    let read = conn.pragma_query_value(None, "user_version", |row| row.get(0));
    let found: u32 = read.map_err(|source| MigrateError::Sql { version: 0, source })?;
    if found > SCHEMA_VERSION { Err(MigrateError::FromTheFuture { found }) } else { Ok(found) }
}

fn apply(
    conn: &mut Connection,
    scripts: impl Iterator<Item = (u32, &'static str)>,
    at: &AtomicU32,
) -> Result<(), MigrateError> {
    let failed = |source| MigrateError::Sql { version: at.load(Ordering::Relaxed), source };
    // A backup that reads it does not matter; another writer would.
    let tx = conn.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed)?;
    for (version, script) in scripts {
        at.store(version, Ordering::Relaxed);
        tx.execute_batch(script).map_err(failed)?;
    }
    let made = at.load(Ordering::Relaxed);
    tx.pragma_update(None, "user_version", made).map_err(failed)?;
    tx.commit().map_err(failed)?;
    hive_fault::point("broker.open.migrated");
    Ok(())
}

/// Makes a database of an earlier version, with the rows that the caller adds on the way: after
/// each version, those that a broker of that version may have.
#[cfg(test)]
pub(in crate::store) fn make(
    conn: &mut Connection,
    wanted: u32,
    mut fill: impl FnMut(&Connection, u32),
) {
    for version in 1..=wanted {
        let script = scripts(version - 1, version);
        apply(conn, script, &AtomicU32::new(version)).expect("the script of that version");
        fill(conn, version);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_matches_the_version() {
        assert_eq!(MIGRATIONS.len(), SCHEMA_VERSION as usize);
    }

    #[test]
    fn a_database_from_the_future_is_refused_and_left_alone() {
        let mut conn = Connection::open_in_memory().expect("an in-memory database");
        conn.pragma_update(None, "user_version", 99).expect("a pragma");
        let error = migrate(&mut conn, &AtomicU32::new(0)).expect_err("too new");
        assert!(matches!(error, MigrateError::FromTheFuture { found: 99 }));
        let tables: i64 = conn
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .expect("a count");
        assert_eq!(tables, 0);
    }

    /// Returns the schema without its spaces and line ends.
    fn whole(conn: &Connection) -> Vec<(String, String)> {
        let sql = "SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY type, name";
        let mut select = conn.prepare(sql).expect("a statement");
        let rows = select.query_map([], |row| {
            let text: String = row.get(1)?;
            Ok((row.get(0)?, text.split_whitespace().collect()))
        });
        rows.expect("rows").collect::<Result<_, _>>().expect("text")
    }

    #[test]
    fn a_new_database_is_what_all_migrations_make() {
        let mut new = Connection::open_in_memory().expect("an in-memory database");
        migrate(&mut new, &AtomicU32::new(0)).expect("created");
        let mut old = Connection::open_in_memory().expect("an in-memory database");
        make(&mut old, SCHEMA_VERSION, |_, _| {});
        assert_eq!(whole(&new), whole(&old));
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let mut select = old.prepare(tables).expect("a statement");
        let names = select.query_map([], |row| row.get::<_, String>(0)).expect("names");
        for name in names.map(|name| name.expect("text")) {
            let count = format!("SELECT count(*) FROM {name}");
            let rows: i64 = old.query_row(&count, [], |row| row.get(0)).expect("a count");
            assert_eq!(rows, 0, "{name}: the schema would have to insert what a migration does");
        }
    }

    #[test]
    fn migrating_twice_changes_nothing() {
        let mut conn = Connection::open_in_memory().expect("an in-memory database");
        migrate(&mut conn, &AtomicU32::new(0)).expect("first");
        migrate(&mut conn, &AtomicU32::new(0)).expect("second");
    }
}
