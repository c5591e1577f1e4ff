//! Opening: one broker at a time, private files, and a clear error for any other file.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use super::super::before::Migration;
use super::super::{MigrateError, OpenError, SCHEMA_VERSION, Store, Tx};
use super::{Commits, Failed, Rig, clock, directory, open, send};

fn refused(dir: &Path) -> OpenError {
    Store::open(dir, clock(), Arc::new(Commits::default())).expect_err("it is refused")
}

/// Returns the error with its causes, as the daemon prints it.
fn printed(error: OpenError) -> String {
    format!("{:#}", anyhow::Error::from(error))
}

#[tokio::test]
async fn the_directory_and_its_files_are_made_and_private() {
    let root = directory();
    let dir = root.path().join("state/hive");
    let (store, _) = open(&dir);
    send(&store, "hello").await.expect("written");
    let mode =
        |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(&dir), 0o700);
    for file in ["hive.db", "hive.db-wal", "hive.db-shm", "hived.lock"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
    assert_eq!(store.path(), dir.join("hive.db"));
}

#[tokio::test]
async fn a_second_broker_is_refused_while_the_first_runs() {
    let rig = Rig::new();
    rig.send("hello").await;
    let error = refused(rig.dir.path());
    assert!(matches!(&error, OpenError::InUse { path } if path == rig.dir.path()));
    assert!(printed(error).contains("another hived is running"));
    rig.send("undisturbed").await;
    rig.reopen().holds(&["hello", "undisturbed"]).await;
}

#[tokio::test]
async fn the_rest_of_a_start_begins_early_only_on_a_database_of_this_version() {
    let dir = directory();
    let has_begun = || {
        let begun = Cell::new(false);
        let (begin, rows) = (|| begun.set(true), |_: &Tx<'_>| Ok::<_, Failed>(()));
        let committed = Arc::new(Commits::default());
        let store =
            Store::open_filled(dir.path(), clock(), committed, begin, rows, Migration::SILENT);
        (begun.get(), store)
    };
    let (begun, store) = has_begun();
    assert!(!begun, "there is none yet");
    assert!(!has_begun().0, "another broker has it");
    drop(store);
    assert!(has_begun().0);
    for version in [SCHEMA_VERSION - 1, SCHEMA_VERSION + 1] {
        raw(dir.path()).pragma_update(None, "user_version", version).expect("set");
        assert!(!has_begun().0, "it has version {version}");
    }
}

/// Opens the database file without a store.
fn raw(dir: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(dir.join("hive.db")).expect("opened")
}

/// Copies the files of a store that is open.
fn copied(rig: &Rig) -> tempfile::TempDir {
    let copy = directory();
    for file in ["hive.db", "hive.db-wal"] {
        std::fs::copy(rig.dir.path().join(file), copy.path().join(file)).expect("copied");
    }
    copy
}

fn log_len(dir: &Path) -> u64 {
    std::fs::metadata(dir.join("hive.db-wal")).expect("a log").len()
}

/// Reads everything in a directory but the lock.
fn contents(dir: &Path) -> Vec<(std::ffi::OsString, Vec<u8>)> {
    let files =
        std::fs::read_dir(dir).expect("a directory").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = files
        .filter(|path| !path.ends_with("hived.lock"))
        .map(|path| {
            (path.file_name().expect("a name").to_owned(), std::fs::read(&path).expect("a file"))
        })
        .collect();
    files.sort();
    files
}

#[tokio::test]
async fn a_database_from_the_future_is_refused_and_not_touched() {
    let dir = directory();
    let (store, _) = open(dir.path());
    send(&store, "hello").await.expect("written");
    drop(store);
    let conn = raw(dir.path());
    conn.pragma_update(None, "user_version", SCHEMA_VERSION + 1).expect("written");
    drop(conn);
    let before = contents(dir.path());
    let error = refused(dir.path());
    assert!(
        matches!(error, OpenError::Migrate(MigrateError::FromTheFuture { found }) if found == SCHEMA_VERSION + 1)
    );
    assert!(printed(error).contains("a newer hived wrote it"));
    assert!(contents(dir.path()) == before, "a byte has changed");
}

#[tokio::test]
async fn not_even_the_journal_of_a_database_from_the_future_is_changed() {
    let dir = directory();
    let conn = raw(dir.path());
    conn.execute_batch("CREATE TABLE what_may_come (x); PRAGMA user_version = 1000000")
        .expect("written");
    drop(conn);
    let before = contents(dir.path());
    assert!(matches!(
        refused(dir.path()),
        OpenError::Migrate(MigrateError::FromTheFuture { found: 1_000_000 })
    ));
    assert!(contents(dir.path()) == before, "a byte has changed");
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_not_touched() {
    let dir = directory();
    std::fs::write(
        dir.path().join("hive.db"),
        "my shopping list, which is longer than a header\n".repeat(100),
    )
    .expect("written");
    let before = contents(dir.path());
    let error = refused(dir.path());
    assert!(matches!(error, OpenError::Sqlite { .. }));
    assert!(printed(error).contains("is not a database of Hive"));
    assert!(contents(dir.path()) == before, "a byte has changed");
}

#[tokio::test]
async fn a_database_of_another_program_is_not_changed() {
    let dir = directory();
    let conn = raw(dir.path());
    conn.execute_batch("CREATE TABLE message (x); INSERT INTO message VALUES (1)")
        .expect("written");
    drop(conn);
    assert!(matches!(refused(dir.path()), OpenError::Sqlite { .. }));
    let conn = raw(dir.path());
    let rows: i64 =
        conn.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).expect("still theirs");
    let version: i64 =
        conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("read");
    assert_eq!((rows, version), (1, 0));
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_named() {
    let root = directory();
    let file = root.path().join("file");
    std::fs::write(&file, "x").expect("written");
    for dir in [file.clone(), file.join("below")] {
        let error = refused(&dir);
        assert!(matches!(&error, OpenError::Directory { path, .. } if *path == dir), "{error:?}");
        assert!(printed(error).contains("hived needs a directory that it may write"));
    }
    let dir = root.path().join("odd");
    std::fs::create_dir_all(dir.join("hive.db")).expect("made");
    assert!(matches!(refused(&dir), OpenError::Directory { .. }));
}

#[tokio::test]
async fn an_empty_file_is_a_new_database() {
    let dir = directory();
    std::fs::write(dir.path().join("hive.db"), "").expect("written");
    assert_eq!(Rig::open(dir).send("hello").await, 1);
}

#[tokio::test]
async fn a_commit_is_synced_and_readers_cannot_write() {
    let rig = Rig::new();
    let settings = rig.write(|tx| {
        let journal: String =
            tx.connection().pragma_query_value(None, "journal_mode", |row| row.get(0))?;
        let synchronous: i64 =
            tx.connection().pragma_query_value(None, "synchronous", |row| row.get(0))?;
        Ok::<_, Failed>((journal, synchronous))
    });
    assert_eq!(settings.await.expect("read"), ("wal".to_owned(), 2));
    let written = rig.read(|conn, _| Ok::<_, Failed>(conn.execute("DELETE FROM meta", [])?)).await;
    assert!(written.is_err());
}

#[tokio::test]
async fn what_a_killed_broker_left_in_the_log_is_synced_before_it_is_read() {
    let rig = Rig::new();
    rig.send("hello").await;
    let copy = copied(&rig);
    assert!(log_len(copy.path()) > 0);
    let copy = Rig::open(copy);
    assert_eq!(log_len(copy.dir.path()), 0, "it was folded in and synced");
    copy.holds(&["hello"]).await;
}

#[tokio::test]
async fn a_log_cut_off_in_mid_commit_loses_only_mail_without_a_receipt() {
    let rig = Rig::new();
    rig.send("with a receipt").await;
    let before = log_len(rig.dir.path());
    rig.send("cut off").await;
    let after = log_len(rig.dir.path());
    for length in [before, before + 1, (before + after) / 2, after - 1] {
        let copy = copied(&rig);
        let log = copy.path().join("hive.db-wal");
        let cut = std::fs::OpenOptions::new().write(true).open(log).expect("opened");
        cut.set_len(length).expect("cut");
        let copy = Rig::open(copy);
        copy.holds(&["with a receipt"]).await;
        assert_eq!(copy.send("again").await, 2);
    }
}
