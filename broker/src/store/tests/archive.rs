//! Backups of the schedule: checked, named by their time, and never fewer than before a failure.

use std::os::unix::fs::PermissionsExt as _;

use rusqlite::Connection;
use tokio_util::sync::CancellationToken;

use super::super::archive::{ArchiveError, list, prune};
use super::super::backup::CopyError;
use super::Rig;
use super::backup::{names, with_messages};

async fn add(rig: &Rig, keep: u32) -> Result<std::path::PathBuf, ArchiveError> {
    rig.archive(&rig.dir.path().join("backups"), keep, CancellationToken::new()).await
}

#[tokio::test]
async fn the_newest_are_kept_and_other_files_are_left_alone() {
    let rig = with_messages(3).await;
    let dir = rig.dir.path().join("backups");
    std::fs::create_dir(&dir).expect("a directory");
    let old = ["hive-19690101T000000Z.db", "hive-19690102T000000Z.db", "notes.txt"];
    for name in old {
        std::fs::write(dir.join(name), "").expect("a file");
    }
    // What a killed broker left.
    std::fs::write(dir.join("unfinished.tmp"), "half").expect("a file");
    let made = add(&rig, 2).await.expect("it is made");
    let name = made.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
    assert_eq!(names(&dir), [old[1], &name, old[2]]);
    assert_eq!(made.metadata().expect("its metadata").permissions().mode() & 0o777, 0o600);
    assert_eq!(list(&dir).expect("listed").last().map(|(_, path)| path), Some(&made));
    let copy = Connection::open(&made).expect("a database");
    let count: u32 =
        copy.query_row("SELECT count(*) FROM message", [], |row| row.get(0)).expect("counted");
    assert_eq!(count, 3);
}

#[tokio::test]
async fn a_copy_that_is_not_right_takes_the_place_of_no_other() {
    let rig = with_messages(3).await;
    let good = add(&rig, 1).await.expect("it is made");
    let plant = Connection::open(rig.dir.path().join("hive.db")).expect("a database");
    plant.execute_batch("UPDATE inbox SET open_count = 9").expect("planted");
    let error = add(&rig, 1).await.expect_err("it is not right");
    let ArchiveError::NotRight { problem } = &error else { panic!("{error:?}") };
    assert!(problem.contains("9 unsettled deliveries"), "{problem}");
    let name = good.file_name().and_then(|name| name.to_str()).expect("a name");
    assert_eq!(names(&rig.dir.path().join("backups")), [name]);
}

#[tokio::test]
async fn one_that_is_given_up_or_cannot_be_written_leaves_nothing() {
    let rig = with_messages(3).await;
    let stop = CancellationToken::new();
    stop.cancel();
    let dir = rig.dir.path().join("backups");
    let error = rig.archive(&dir, 1, stop).await.expect_err("stopped");
    assert!(matches!(error, ArchiveError::Copy(CopyError::Stopped)), "{error:?}");
    assert_eq!(names(&dir), [] as [&str; 0]);
    std::fs::remove_dir(&dir).expect("removed");
    std::fs::write(&dir, "a file").expect("a file");
    let error = add(&rig, 1).await.expect_err("it is no directory");
    assert!(error.to_string().contains("the user of hived must be able to write there"), "{error}");
}

#[tokio::test]
async fn old_ones_that_cannot_be_removed_are_an_error_and_the_others_are_removed() {
    let rig = with_messages(3).await;
    let dir = rig.dir.path().join("backups");
    // A directory cannot be removed as a file, even by root.
    std::fs::create_dir_all(dir.join("hive-19690101T000000Z.db")).expect("a directory");
    std::fs::write(dir.join("hive-19690102T000000Z.db"), "").expect("a file");
    let error = add(&rig, 1).await.expect_err("one is in the way");
    assert!(matches!(error, ArchiveError::Old { .. }), "{error:?}");
    let left = names(&dir);
    assert_eq!((left.len(), left[0].as_str()), (2, "hive-19690101T000000Z.db"), "{left:?}");
    assert!(prune(&dir, 1, None).is_err(), "until it is gone");
}
