//! Databases that this broker cannot work with: each is left as it was found.

use std::fs;

use hive_tests::rig::Rig;
use hive_tests::rig::small_disk::SmallDisk;
use rusqlite::Connection;

/// A hive that has run, with a message in it.
async fn used() -> (Rig, u64) {
    let mut rig = Rig::new("[agents.ada]\n");
    rig.start_broker().await;
    let id = rig.agent("ada").await.send("operator", "before").await;
    rig.stop_broker().await;
    (rig, id)
}

#[tokio::test]
async fn a_database_from_the_future_is_refused_and_left_alone() {
    let (mut rig, id) = used().await;
    // Sets the version, and gives the one before.
    let set = |rig: &Rig, version: u32| -> u32 {
        let database = Connection::open(rig.path("state/hive.db")).expect("it opens");
        let before =
            database.pragma_query_value(None, "user_version", |row| row.get(0)).expect("a pragma");
        database.pragma_update(None, "user_version", version).expect("a pragma");
        database.close().expect("it closes");
        before
    };
    let present = set(&rig, 999);
    let before = fs::read(rig.path("state/hive.db")).expect("it is there");
    let error = rig.refused_broker().await;
    assert!(
        error.contains("schema version 999") && error.contains("a newer hived wrote it"),
        "{error}"
    );
    assert!(error.contains("nothing was changed"), "{error}");
    assert_eq!(
        fs::read(rig.path("state/hive.db")).expect("it is there"),
        before,
        "not a byte of it"
    );
    assert!(!rig.operator_socket().exists());
    set(&rig, present);
    rig.start_broker().await;
    assert_eq!(rig.operator().await.messages().await[0].id, id);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused_and_left_alone() {
    let (rig, _) = used().await;
    let path = rig.path("state/hive.db");
    let text = "these are the notes of somebody who took the wrong directory\n".repeat(100);
    for (content, words) in [
        (text.into_bytes(), "not a database of Hive"),
        (b"SQLite format 3\0 and then nothing".repeat(50), "database"),
    ] {
        fs::write(&path, &content).expect("it is ours");
        let error = rig.refused_broker().await;
        assert!(error.contains(words) && error.contains("hive.db"), "{error}");
        assert_eq!(fs::read(&path).expect("it is there"), content, "not a byte of it");
    }
    fs::remove_file(&path).expect("it is ours");
    fs::create_dir(&path).expect("a directory");
    let error = rig.refused_broker().await;
    assert!(error.contains("hive.db") || error.contains("state directory"), "{error}");
    assert!(path.is_dir());
}

#[tokio::test]
async fn a_database_of_something_else_is_refused_and_left_alone() {
    let (rig, _) = used().await;
    let path = rig.path("state/hive.db");
    fs::remove_file(&path).expect("it is ours");
    let other = Connection::open(&path).expect("it opens");
    other
        .execute_batch("CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES ('precious'); PRAGMA user_version = 1")
        .expect("made");
    other.close().expect("it closes");
    let error = rig.refused_broker().await;
    assert!(error.contains("hive.db"), "{error}");
    let other = Connection::open(&path).expect("it opens");
    let kept: String =
        other.query_row("SELECT text FROM notes", [], |row| row.get(0)).expect("it is there");
    assert_eq!(kept, "precious");
}

#[tokio::test]
async fn a_state_directory_that_is_a_file_is_reported() {
    let rig = Rig::new("[agents.ada]\n");
    fs::write(rig.path("state"), "a file").expect("a file");
    let error = rig.refused_broker().await;
    assert!(
        error.contains("the state directory")
            && error.contains("hived needs a directory that it may write"),
        "{error}"
    );
    assert_eq!(fs::read_to_string(rig.path("state")).expect("it is there"), "a file");
}

#[tokio::test]
async fn a_read_only_disk_is_reported_and_nothing_on_it_is_lost() {
    let mut rig = Rig::new("[agents.ada]\n");
    let Some(disk) = SmallDisk::mount(&rig.path("state"), 16 << 20).await else { return };
    // Empty, and read-only from the first start on.
    disk.set_read_only(true).await;
    let error = rig.refused_broker_by(disk.inside(&rig.broker_command())).await;
    assert!(
        error.contains("the state directory") && error.contains("Read-only file system"),
        "{error}"
    );

    disk.set_read_only(false).await;
    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    let id = rig.agent("ada").await.send("operator", "before").await;
    rig.kill_broker().await;
    disk.set_read_only(true).await;
    let before = fs::read(disk.path("hive.db-wal")).expect("a killed broker leaves it");
    let error = rig.refused_broker_by(disk.inside(&rig.broker_command())).await;
    assert!(error.contains("Read-only file system"), "{error}");
    assert_eq!(fs::read(disk.path("hive.db-wal")).expect("it is there"), before);

    disk.set_read_only(false).await;
    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    assert_eq!(rig.operator().await.messages().await[0].id, id);
}
