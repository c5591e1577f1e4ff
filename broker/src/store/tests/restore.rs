//! Restoring: nothing that is no backup takes the place of the database, and a program that is
//! killed leaves the old database or the new one.

use std::path::{Path, PathBuf};

use hive_core::time::WallTime;
use rusqlite::Connection;

use super::super::content::Content;
use super::super::file::migrate;
use super::super::restore::{RestoreError, Restored, restore};
use super::super::{MigrateError, SCHEMA_VERSION};
use super::{Rig, directory, open, send};

fn put_back(dir: &Path, backup: &Path) -> Result<Restored, RestoreError> {
    restore(dir, backup, WallTime(1))
}

/// Writes a closed database with these messages.
async fn database(path: &Path, bodies: &[&str]) {
    let dir = directory();
    let (store, _) = open(dir.path());
    for body in bodies {
        send(&store, body).await.expect("written");
    }
    drop(store);
    std::fs::copy(dir.path().join("hive.db"), path).expect("copied");
}

/// A state directory with a database, and another database to restore.
async fn two() -> (tempfile::TempDir, PathBuf) {
    let dir = directory();
    database(&dir.path().join("hive.db"), &["old", "older"]).await;
    let backup = dir.path().join("copy.db");
    database(&backup, &["new"]).await;
    (dir, backup)
}

#[tokio::test]
async fn a_restored_database_replaces_the_old_one_which_is_kept() {
    let (dir, backup) = two().await;
    let done = put_back(dir.path(), &backup).expect("restored");
    let kept = dir.path().join("hive.replaced-1.db");
    let database = dir.path().join("hive.db");
    let has =
        |messages| Some(Content { agents: 0, messages, unsettled: 0, questions: 0, reminders: 0 });
    let replaced = Some(kept.clone());
    let (content, replaced_content) = (has(1), has(2));
    let wanted = Restored { database, replaced, numbers_known: true, content, replaced_content };
    assert_eq!(done, wanted);
    let old = Connection::open(kept).expect("opened");
    let count: u32 =
        old.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).expect("counted");
    assert_eq!(count, 2);
    let rig = Rig::open(dir);
    rig.holds(&["new"]).await;
    assert_eq!(rig.send("after").await, 3, "above those of the replaced database");
}

#[tokio::test]
async fn the_numbers_of_a_replaced_database_of_each_older_version_are_known() {
    let (backups, backup) = two().await;
    for version in 1..SCHEMA_VERSION {
        let dir = directory();
        let mut conn = Connection::open(dir.path().join("hive.db")).expect("a database");
        conn.pragma_update(None, "journal_mode", "wal").expect("a log");
        migrate::make(&mut conn, version, |conn, version| {
            let rows = "INSERT INTO message (id, origin_kind, origin_name, to_id, body, accept_time) \
                 VALUES (70, 3, '', 1, 'hello', 0); \
                 INSERT INTO event (sequence, kind, time) VALUES (90, 1, 0)";
            if version == 1 {
                conn.execute_batch(rows).expect("rows");
            }
        });
        drop(conn);
        let done = put_back(dir.path(), &backup).expect("restored");
        assert!(done.numbers_known, "of version {version}");
        let rig = Rig::open(dir);
        assert_eq!(rig.send("after").await, 71, "above those of version {version}");
        let newest = rig.commits.all().last().map(|commit| commit.last_event);
        assert_eq!(newest, Some(91), "above those of version {version}");
    }
    drop(backups);
}

#[tokio::test]
async fn a_log_beside_the_old_database_is_not_applied_to_the_new_one() {
    let (dir, backup) = two().await;
    let rig = Rig::open(dir);
    rig.send("in the log").await;
    let copy = directory();
    for file in ["hive.db", "hive.db-wal"] {
        std::fs::copy(rig.dir.path().join(file), copy.path().join(file)).expect("copied");
    }
    put_back(copy.path(), &backup).expect("restored");
    let other = Rig::open(copy);
    other.holds(&["new"]).await;
    assert_eq!(other.send("after").await, 4, "the log of the old database counts");
}

#[tokio::test]
async fn nothing_is_replaced_while_a_broker_runs() {
    let (dir, backup) = two().await;
    let rig = Rig::open(dir);
    let error = put_back(rig.dir.path(), &backup).expect_err("it runs");
    assert!(matches!(error, RestoreError::InUse { .. }), "{error}");
    rig.reopen().holds(&["old", "older"]).await;
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_the_database_stays() {
    let (dir, backup) = two().await;
    let (text, empty) = (dir.path().join("text"), dir.path().join("empty"));
    std::fs::write(&text, "my shopping list, which is long enough\n".repeat(100)).expect("written");
    std::fs::write(&empty, "").expect("written");
    let newer = dir.path().join("newer");
    std::fs::copy(&backup, &newer).expect("copied");
    Connection::open(&newer)
        .expect("opened")
        .pragma_update(None, "user_version", 99)
        .expect("written");
    let damaged = dir.path().join("damaged");
    let mut bytes = std::fs::read(&backup).expect("read");
    let (middle, end) = (bytes.len() / 4, bytes.len());
    bytes[middle..end].fill(7);
    std::fs::write(&damaged, bytes).expect("written");
    let not = |path: &Path| {
        let error = put_back(dir.path(), path).expect_err("refused");
        let RestoreError::NotABackup { problem, .. } = error else { panic!("{error:?}") };
        problem
    };
    assert!(not(&text).contains("decompress"), "{}", not(&text));
    assert!(not(&empty).contains("`hivectl backup`"));
    assert!(not(&dir.path().join("nothing")).contains("does not exist"));
    assert!(not(&damaged).contains("use another backup"), "{}", not(&damaged));
    let error = put_back(dir.path(), &newer).expect_err("too new");
    assert!(
        matches!(error, RestoreError::Version(MigrateError::FromTheFuture { found: 99 })),
        "{error}"
    );
    assert!(!dir.path().join("hive.replaced-1.db").exists());
    assert!(!dir.path().join("restore.tmp").exists());
    Rig::open(dir).holds(&["old", "older"]).await;
}

#[tokio::test]
async fn a_directory_without_a_database_gets_one() {
    let (dir, backup) = two().await;
    let new = directory();
    let done = put_back(new.path(), &backup).expect("restored");
    assert_eq!((done.replaced, done.numbers_known), (None, false));
    let rig = Rig::open(new);
    rig.holds(&["new"]).await;
    assert_eq!(rig.send("after").await, 2_000_001, "nobody knows which numbers were used");
    drop(dir);
}

#[tokio::test]
async fn a_restore_that_is_repeated_uses_no_number_again() {
    let (dir, backup) = two().await;
    let database = dir.path().join("hive.db");
    std::fs::remove_file(&database).expect("it is gone");
    for _ in 0..3 {
        put_back(dir.path(), &backup).expect("restored");
    }
    let rig = Rig::open(dir);
    assert!(rig.send("after").await > 2_000_000, "nobody knows which numbers were used");
}
