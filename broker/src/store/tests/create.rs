//! Creating: a first boot makes a whole database or none.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use super::super::before::Migration;
use super::super::{OpenError, Store, Tx};
use super::{Commits, Failed, clock, directory, open, read, send, write};

fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

fn filled(
    dir: &std::path::Path,
    rows: impl FnOnce(&Tx<'_>) -> Result<(), Failed>,
) -> (Store, Arc<Commits>) {
    let commits = Arc::new(Commits::default());
    let store = Store::open_filled(
        dir,
        clock(),
        Arc::<Commits>::clone(&commits) as _,
        || {},
        rows,
        Migration::SILENT,
    );
    (store.expect("it opens"), commits)
}

fn hello(tx: &Tx<'_>) -> Result<(), Failed> {
    write(tx, "hello").map(drop)
}

#[tokio::test]
async fn a_new_database_has_its_first_rows_without_a_commit() {
    let dir = directory();
    let (store, commits) = filled(dir.path(), hello);
    assert_eq!(read(&store).await.expect("read"), (vec![(1, "hello".to_owned())], vec![1]));
    assert_eq!(commits.all(), []);
    let log = std::fs::metadata(dir.path().join("hive.db-wal")).expect("a log");
    assert_eq!(log.len(), 0, "nothing was committed since");
    assert_eq!(send(&store, "again").await.expect("written"), 2, "numbers go on");
    drop(store);
    // The rows are for a new database only.
    let (store, _) = filled(dir.path(), |_| panic!("the database is not new"));
    assert_eq!(read(&store).await.expect("read").0.len(), 2);
}

#[tokio::test]
async fn refused_first_rows_leave_a_database_without_them() {
    let dir = directory();
    let (store, _) = filled(dir.path(), |tx| {
        hello(tx)?;
        Err(Failed::Refused)
    });
    assert_eq!(read(&store).await.expect("read"), (vec![], vec![]));
    assert_eq!(send(&store, "first").await.expect("written"), 1, "no number is lost");
}

#[tokio::test]
async fn what_a_killed_first_boot_left_is_removed() {
    let dir = directory();
    for file in ["create.tmp", "create.tmp-journal", "create.tmp-wal", "create.tmp-shm"] {
        std::fs::write(dir.path().join(file), "half of a database").expect("written");
    }
    let (store, _) = open(dir.path());
    send(&store, "hello").await.expect("written");
    assert_eq!(names(dir.path()), ["hive.db", "hive.db-shm", "hive.db-wal", "hived.lock"]);
    drop(store);
    // It is removed by a later start, too, for example after a restore.
    std::fs::write(dir.path().join("create.tmp"), "half of a database").expect("written");
    let (store, _) = open(dir.path());
    assert!(!dir.path().join("create.tmp").exists());
    assert_eq!(read(&store).await.expect("read").0.len(), 1);
}

#[tokio::test]
async fn the_log_of_a_database_that_is_gone_is_not_applied_to_a_new_one() {
    let (before, dir) = (directory(), directory());
    let (store, _) = open(before.path());
    send(&store, "of the old database").await.expect("written");
    let log = std::fs::read(before.path().join("hive.db-wal")).expect("a log");
    assert!(!log.is_empty());
    std::fs::write(dir.path().join("hive.db-wal"), log).expect("written");
    std::fs::write(dir.path().join("hive.db-journal"), "a journal").expect("written");
    let (store, _) = open(dir.path());
    assert_eq!(read(&store).await.expect("read"), (vec![], vec![]));
    assert!(!dir.path().join("hive.db-journal").exists());
}

#[tokio::test]
async fn a_database_that_cannot_get_its_name_leaves_nothing() {
    let dir = directory();
    // A directory is in the way of the log.
    std::fs::create_dir(dir.path().join("hive.db-wal")).expect("made");
    let refused = Store::open(dir.path(), clock(), Arc::new(Commits::default()));
    assert!(matches!(refused, Err(OpenError::Directory { .. })), "{refused:?}");
    assert_eq!(names(dir.path()), ["hive.db-wal", "hived.lock"]);
    std::fs::remove_dir(dir.path().join("hive.db-wal")).expect("it is empty");
    let (store, _) = open(dir.path());
    send(&store, "hello").await.expect("written");
    let mode = std::fs::metadata(store.path()).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}
