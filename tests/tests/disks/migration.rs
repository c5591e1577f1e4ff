//! The migration of a database of the first broker: it is done or it is not, whenever it is killed
//! or its disk is full, and the person who waits for it sees that it goes on.

use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};

use hive_tests::rig::failing_disk::Injected;
use hive_tests::rig::old_database::{self, Contents};
use hive_tests::rig::small_disk::SmallDisk;
use hive_tests::rig::{Rig, host};

/// More than the memory of the broker has room for, so that the log is written before the commit.
const MESSAGES: u32 = 30_000;
/// The version that this broker writes.
const VERSION: u32 = hive_broker::store::SCHEMA_VERSION;
const DATABASE: &str = "state/hive.db";
const LOG: &str = "state/hive.db-wal";
const MIB: u64 = 1 << 20;

/// A hive without a configuration of its agents, and with this database.
fn hive(old: &Path) -> Rig {
    let rig = Rig::new("");
    std::fs::create_dir_all(rig.path("state")).expect("a directory");
    std::fs::copy(old, rig.path(DATABASE)).expect("copied");
    rig
}

fn old() -> (tempfile::TempDir, PathBuf, Contents) {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("hive.db");
    let contents = old_database::make(&path, MESSAGES).expect("the database of an older broker");
    (dir, path, contents)
}

/// Returns what a broker that is started now would find in these files. They stay as they are.
fn left(files: &[PathBuf]) -> Contents {
    let copy = tempfile::tempdir().expect("a directory");
    for file in files.iter().filter(|file| file.exists()) {
        let to = copy.path().join(file.file_name().expect("it has a name"));
        std::fs::copy(file, to).expect("copied");
    }
    old_database::read(&copy.path().join("hive.db")).expect("it can be read")
}

/// The broker has migrated everything, and takes mail.
async fn works(rig: &mut Rig, before: Contents) {
    let id = rig.operator().await.send("a0", "hello").await;
    assert_eq!(id, u64::from(before.messages) + 1, "ids go on");
    rig.stop_broker().await;
    let now = old_database::read(&rig.path(DATABASE)).expect("it can be read");
    let expected = Contents {
        version: VERSION,
        messages: before.messages + 1,
        body_bytes: before.body_bytes + 5,
        unsettled: before.unsettled + 1,
        events: before.events + 1,
        requests: before.requests + 1,
        ..before
    };
    assert_eq!(now, expected);
}

#[tokio::test]
async fn a_migration_that_is_killed_is_begun_again_from_the_old_database() {
    let (_dir, old, before) = old();
    let mut half = 0;
    for power in 0.. {
        let mut rig = hive(&old);
        let files = [rig.path(DATABASE), rig.path(LOG)];
        let kill = Injected::at("pwrite64", "signal=KILL", 4_usize.pow(power));
        let command = kill.around(&files, &rig.broker_command());
        match rig.try_start_broker_by(command).await {
            Err(status) if status.signal() == Some(9) => {}
            Err(status) => {
                assert!(!host::allows("strace", false), "hived ended with {status}");
                return;
            }
            Ok(()) => {
                rig.kill_broker().await;
                break;
            }
        }
        let log = std::fs::metadata(rig.path(LOG)).map_or(0, |file| file.len());
        let found = left(&files);
        if found.version == 1 {
            assert_eq!(found, before, "the old database is whole");
            half += u32::from(log > MIB);
        } else {
            assert_eq!(found, Contents { version: VERSION, ..before }, "the new one is");
        }
        rig.start_broker().await;
        works(&mut rig, before).await;
    }
    assert!(half > 0, "no kill was in the middle of the migration");
}

/// The copy before the migration is whole or has no name, and a killed broker begins again.
#[tokio::test]
async fn a_broker_that_is_killed_while_it_copies_copies_again() {
    let (_dir, old, before) = old();
    for (call, file, is_named) in [
        ("copy_file_range", "migration.tmp", false),
        ("fsync", "migration.tmp", false),
        ("rename", "migration.tmp", false),
        ("fsync", "", true),
    ] {
        let mut rig = hive(&old);
        let (state, kept) = (rig.path("state"), rig.path("state/hive.version-1.db"));
        let kill = Injected::at(call, "signal=KILL", 1);
        let command = kill.around(&[state.join(file)], &rig.broker_command());
        let ended = rig.try_start_broker_by(command).await;
        let Err(status) = ended else { panic!("{call} of {file} was not reached") };
        if status.signal() != Some(9) {
            assert!(!host::allows("strace", false), "hived ended with {status}");
            return;
        }
        assert_eq!(left(&[rig.path(DATABASE), rig.path(LOG)]), before, "{call} of {file}");
        assert_eq!(kept.exists(), is_named, "{call} of {file}");

        rig.start_broker().await;
        assert!(!state.join("migration.tmp").exists(), "{call} of {file}");
        works(&mut rig, before).await;
        let copy = tempfile::tempdir().expect("a directory");
        let copied = copy.path().join("hive.db");
        std::fs::copy(&kept, &copied).expect("the copy is kept");
        assert_eq!(left(&[copied]), before, "{call} of {file}");
    }
}

#[tokio::test]
async fn a_migration_says_how_far_it_is_and_asks_the_service_manager_for_time() {
    let (_dir, old, before) = old();
    let mut rig = hive(&old);
    rig.start_broker().await;
    let said = rig.said_before_ready().join("");
    let text =
        format!("MiB from schema version 1 to {VERSION}: at version 2, 0 MiB written, 0 s\n");
    assert!(said.contains("STATUS=migrating a database of ") && said.contains(&text), "{said}");
    assert!(said.contains("EXTEND_TIMEOUT_USEC=60000000\n"), "{said}");
    let log = rig.broker().log();
    assert!(log.contains("migrating a database of "), "{log}");
    works(&mut rig, before).await;
    // There is nothing to say of a database of this version.
    rig.start_broker().await;
    assert_eq!(rig.said_before_ready(), [""; 0]);
}

#[tokio::test]
async fn a_migration_on_a_disk_that_fills_up_says_what_to_do_and_leaves_the_old_database() {
    let (_dir, old, before) = old();
    let bytes = std::fs::metadata(&old).expect("it is there").len();
    let mut rig = Rig::new("");
    let Some(disk) = SmallDisk::mount(&rig.path("state"), 4 * bytes).await else { return };
    std::fs::copy(&old, disk.path("hive.db")).expect("there is room");
    disk.fill();
    disk.leave(2 * MIB);
    let room = bytes.div_ceil(MIB);
    let said = rig.refused_broker_by(disk.inside(&rig.broker_command())).await;
    let advice = format!(
        "could not be copied before its migration, and is as it was; the copy needs {room} MiB"
    );
    assert!(said.contains(&advice) && said.contains("No space left"), "{said}");
    assert!(!disk.has("migration.tmp") && !disk.has("hive.version-1.db"), "nothing of it is left");

    let mut command = rig.broker_command();
    command.arg("--migrate-without-copy");
    let said = rig.refused_broker_by(disk.inside(&command)).await;
    let from = format!(
        "state/hive.db could not be migrated from schema version 1 to {VERSION}, which ended at version "
    );
    let advice = format!(
        "it is as it was before: the disk is full; free some space and start hived again; it needs up to about as much as the \
         database has, {room} MiB"
    );
    assert!(said.contains(&from) && said.contains(&advice), "{said}");
    assert!(!disk.has("hive.db-wal"), "its log takes no more room");
    let database = [disk.path("hive.db")];
    assert_eq!(left(&database), before, "the old database is whole");
    disk.free();
    rig.start_broker_by(disk.inside(&rig.broker_command())).await;
    rig.operator().await.send("a0", "hello").await;
    rig.stop_broker().await;
    let now = left(&database);
    assert_eq!((now.version, now.messages), (VERSION, before.messages + 1));
    let copy = tempfile::tempdir().expect("a directory");
    let kept = copy.path().join("hive.db");
    std::fs::copy(disk.path("hive.version-1.db"), &kept).expect("copied");
    assert_eq!(left(&[kept]), before, "an older broker can be started on the copy");
}

/// Runs `hived migrate`; returns its exit code and what it printed.
async fn migrate(rig: &Rig, options: &[&str]) -> (Option<i32>, String) {
    let mut command = rig.broker_command();
    let ran = command.arg("migrate").args(options).output().await.expect("it runs");
    let printed = [ran.stdout, ran.stderr].concat();
    (ran.status.code(), String::from_utf8_lossy(&printed).into_owned())
}

#[tokio::test]
async fn what_a_migration_would_do_is_printed_before_it_is_done() {
    let (_dir, old, before) = old();
    let mut rig = hive(&old);
    let (code, said) = migrate(&rig, &["--check"]).await;
    assert_eq!(code, Some(0), "{said}");
    let text = format!("migrates it from schema version 1 to {VERSION}.");
    assert!(said.contains(&text) && said.contains("A copy is kept as hive.version-1.db"), "{said}");
    assert_eq!(left(&[rig.path(DATABASE)]), before, "nothing was changed");

    let (code, said) = migrate(&rig, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    let text = format!("nothing to migrate, it has schema version {VERSION}");
    assert!(said.contains(&text), "{said}");
    let kept = old_database::read(&rig.path("state/hive.version-1.db")).expect("it can be read");
    assert_eq!(kept, before);
    rig.start_broker().await;
    let (code, said) = migrate(&rig, &["--check"]).await;
    assert!(code == Some(0) && said.contains(&text), "it may be asked while a broker runs: {said}");
    works(&mut rig, before).await;

    // A newer one is refused as at a start.
    let newer = rusqlite::Connection::open(rig.path(DATABASE)).expect("a database");
    newer.pragma_update(None, "user_version", 99).expect("written");
    drop(newer);
    let (code, said) = migrate(&rig, &["--check"]).await;
    assert!(code == Some(1) && said.contains("a newer hived wrote it"), "{said}");
}

/// Another program that opens and closes a database in use does not take its log away, as it would
/// do if the broker had lost its locks.
#[tokio::test]
async fn a_broker_that_has_migrated_still_holds_the_locks_of_its_database() {
    let (_dir, old, before) = old();
    let mut rig = hive(&old);
    // As a broker leaves it: with a log, a connection holds its lock from its first read on.
    let wal = rusqlite::Connection::open(rig.path(DATABASE)).expect("a database");
    wal.pragma_update(None, "journal_mode", "wal").expect("set");
    wal.close().expect("closed");
    rig.start_broker().await;
    rig.operator().await.send("a0", "before").await;
    // Another program, and another build of SQLite.
    let other = "import sqlite3, sys\nother = sqlite3.connect(sys.argv[1])\n\
        print(other.execute('SELECT count(*) FROM message').fetchone()[0])\nother.close()";
    let mut python = tokio::process::Command::new("python3");
    let read = python.args(["-c", other]).arg(rig.path(DATABASE)).output().await;
    let read = read.expect("python3 runs");
    let count = String::from_utf8_lossy(&read.stdout).trim().to_owned();
    assert_eq!(count, (before.messages + 1).to_string(), "{read:?}");
    assert!(rig.path(LOG).exists(), "the log is the broker's");
    rig.operator().await.send("a0", "after").await;
    rig.kill_broker().await;
    assert_eq!(left(&[rig.path(DATABASE), rig.path(LOG)]).messages, before.messages + 2);
}
