//! The disk itself: without faults it changes nothing, with faults it fails as set, and a power cut
//! loses unsynced data only, and sometimes all of it.

use std::path::Path;
use std::sync::mpsc;

use hive_disk::{Action, Disk, Error, Fault, Kind, Verdict};
use rand::SeedableRng as _;
use rand_xorshift::XorShiftRng;
use rusqlite::{Connection, ErrorCode};

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn open(dir: &Path, synchronous: &str) -> Connection {
    let conn = Connection::open(dir.join("test.db")).expect("it opens");
    conn.pragma_update(None, "journal_mode", "wal").expect("a log");
    conn.pragma_update(None, "synchronous", synchronous).expect("a level");
    conn
}

fn with_table(dir: &Path, synchronous: &str) -> Connection {
    let conn = open(dir, synchronous);
    conn.execute_batch("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, body TEXT)")
        .expect("a table");
    conn
}

fn insert(conn: &Connection, id: u32) -> rusqlite::Result<()> {
    conn.execute("INSERT INTO t VALUES (?1, ?2)", (id, format!("row {id} {}", "x".repeat(1000))))
        .map(|_| ())
}

fn ids(conn: &Connection) -> Vec<u32> {
    let mut all = conn.prepare("SELECT id FROM t ORDER BY id").expect("a statement");
    all.query_map([], |row| row.get(0)).expect("rows").map(|id| id.expect("a number")).collect()
}

fn sound(conn: &Connection) {
    let word: String =
        conn.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it is checked");
    assert_eq!(word, "ok");
}

fn code(result: rusqlite::Result<()>) -> (ErrorCode, i32) {
    let error = result.expect_err("it fails");
    let error = error.sqlite_error().expect("of SQLite");
    (error.code, error.extended_code)
}

fn checkpoint(conn: &Connection) -> (i64, i64, i64) {
    let row = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], row)
        .expect("a checkpoint says how it went")
}

#[test]
fn without_a_fault_it_changes_nothing_and_counts() {
    let (dir, aside) = (directory(), directory());
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), "full");
    let other = with_table(aside.path(), "full");
    for id in 0..50 {
        insert(&conn, id).expect("written");
        insert(&other, id).expect("written");
    }
    assert_eq!(ids(&conn), ids(&other));
    assert!(disk.count(Kind::Log, Action::Sync) >= 50, "FULL syncs the log at each commit");
    assert!(disk.count(Kind::Log, Action::Write) >= 100);
    assert_eq!(disk.unsynced(), 0, "and leaves nothing");
    let asked = disk.asked();
    insert(&other, 50).expect("written");
    assert_eq!(disk.asked(), asked, "files on no disk do not concern it");
    assert_eq!(checkpoint(&conn), (0, 0, 0));
    sound(&conn);
    drop(conn);
    assert_eq!(disk.count(Kind::Log, Action::Delete), 1);
    assert_eq!(ids(&open(dir.path(), "full")).len(), 50);
}

#[test]
fn connections_share_the_log_and_its_locks() {
    let dir = directory();
    let _disk = Disk::over(dir.path());
    let one = with_table(dir.path(), "full");
    let two = with_table(dir.path(), "full");
    two.busy_timeout(std::time::Duration::ZERO).expect("set");
    insert(&one, 1).expect("written");
    two.execute_batch("BEGIN").expect("a snapshot");
    assert_eq!(ids(&two), [1]);
    insert(&one, 2).expect("a reader is in nobody's way");
    assert_eq!(ids(&two), [1], "the snapshot holds");
    two.execute_batch("COMMIT").expect("its end");
    assert_eq!(ids(&two), [1, 2]);
    one.execute_batch("BEGIN IMMEDIATE").expect("the writer's lock");
    assert_eq!(code(insert(&two, 3)).0, ErrorCode::DatabaseBusy);
    one.execute_batch("COMMIT").expect("its end");
    let threads: Vec<_> = (0..4u32)
        .map(|thread| {
            let path = dir.path().to_owned();
            std::thread::spawn(move || {
                let conn = open(&path, "full");
                conn.busy_timeout(std::time::Duration::from_secs(60)).expect("set");
                (0..25).for_each(|id| insert(&conn, 100 * (thread + 1) + id).expect("written"));
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    assert_eq!(ids(&one).len(), 102);
    sound(&one);
}

#[test]
fn each_fault_strikes_at_its_place_and_ends_with_it() {
    for (fault, expected, extended) in [
        (Fault::at(Action::Write).of(Kind::Log), ErrorCode::SystemIoFailure, 778),
        (Fault::at(Action::Write).of(Kind::Log).after(1), ErrorCode::SystemIoFailure, 778),
        (Fault::at(Action::Write).with(Verdict::Fail(Error::Full)), ErrorCode::DiskFull, 13),
        (
            Fault::at(Action::Write).with(Verdict::Torn(100, Error::Io)),
            ErrorCode::SystemIoFailure,
            778,
        ),
        (Fault::at(Action::Write).with(Verdict::Torn(100, Error::Full)), ErrorCode::DiskFull, 13),
        (Fault::at(Action::Sync).of(Kind::Log), ErrorCode::SystemIoFailure, 1034),
        (Fault::at(Action::Sync).with(Verdict::Lose), ErrorCode::SystemIoFailure, 1034),
        (Fault::at(Action::Sync).with(Verdict::LoseSome(7)), ErrorCode::SystemIoFailure, 1034),
    ] {
        let dir = directory();
        let disk = Disk::over(dir.path());
        let conn = with_table(dir.path(), "full");
        insert(&conn, 1).expect("written");
        let told = format!("{fault:?}");
        disk.fail([fault.times(1)]);
        assert_eq!(code(insert(&conn, 2)), (expected, extended), "{told}");
        drop(conn);
        let conn = open(dir.path(), "full");
        insert(&conn, 3).expect("the fault is over");
        let there = ids(&conn);
        assert!(there == [1, 3] || there == [1, 2, 3], "{told}: {there:?}");
        sound(&conn);
    }
}

#[test]
fn opening_reading_truncating_deleting_and_sharing_fail_too() {
    let dir = directory();
    let disk = Disk::over(dir.path());
    drop(with_table(dir.path(), "full"));
    let opening = || {
        let conn = Connection::open(dir.path().join("test.db"))?;
        conn.query_row("SELECT count(*) FROM t", [], |_| Ok(()))
    };
    disk.fail([Fault::at(Action::Open).of(Kind::Database)]);
    assert_eq!(code(opening()).0, ErrorCode::CannotOpen);
    disk.fail([Fault::at(Action::Open).of(Kind::Log)]);
    assert_eq!(code(opening()).0, ErrorCode::CannotOpen);
    disk.fail([Fault::at(Action::Read).with(Verdict::Fail(Error::NoMemory))]);
    assert_eq!(code(opening()).0, ErrorCode::OutOfMemory);
    disk.fail([Fault::at(Action::Share)]);
    assert_eq!(code(opening()).0, ErrorCode::SystemIoFailure);
    disk.heal();
    opening().expect("it was not the file");
    let conn = with_table(dir.path(), "full");
    insert(&conn, 1).expect("written");
    disk.fail([Fault::at(Action::Truncate).of(Kind::Log)]);
    let cut = conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    assert_eq!(code(cut).0, ErrorCode::SystemIoFailure);
    disk.fail([Fault::at(Action::Delete)]);
    drop(conn);
    assert!(dir.path().join("test.db-wal").exists(), "its deletion failed");
    disk.heal();
    assert_eq!(ids(&open(dir.path(), "full")), [1]);
}

#[test]
fn a_bounded_disk_fills_up_and_has_room_again() {
    let dir = directory();
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), "full");
    disk.set_room(Some(40_000));
    let full = (0..)
        .find_map(|id| insert(&conn, id).err().map(|error| (id, error)))
        .expect("it does not end otherwise");
    assert_eq!(full.1.sqlite_error_code(), Some(ErrorCode::DiskFull));
    assert_eq!(ids(&conn), (0..full.0).collect::<Vec<_>>());
    disk.heal();
    insert(&conn, full.0).expect("there is room");
    sound(&conn);
}

#[test]
fn a_slow_sync_holds_up_its_caller_and_no_reader() {
    let dir = directory();
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), "full");
    let reader = open(dir.path(), "full");
    let (begun, begins) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = std::sync::Mutex::new(goes_on);
    disk.on(move |op| {
        if op.action == Action::Sync {
            begun.send(()).expect("the test listens");
            goes_on.lock().expect("one at a time").recv().expect("the test goes on");
        }
        Verdict::Proceed
    });
    let writer = std::thread::spawn(move || insert(&conn, 1));
    begins.recv().expect("it syncs");
    assert_eq!(ids(&reader), [], "what is not committed is not there");
    assert!(!writer.is_finished());
    go_on.send(()).expect("it waits");
    writer.join().expect("no panic").expect("written");
    assert_eq!(ids(&reader), [1]);
}

/// Writes with occasional checkpoints until the power is cut; returns the acknowledged rows and the
/// rows that are there afterwards.
fn cut(seed: u64, synchronous: &str) -> (Vec<u32>, Vec<u32>) {
    let (dir, into) = (directory(), directory());
    let mut rng = XorShiftRng::seed_from_u64(seed);
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), synchronous);
    conn.pragma_update(None, "wal_autocheckpoint", 20).expect("set");
    checkpoint(&conn);
    // The power is cut at a random operation.
    let at = disk.asked() + rand::RngExt::random_range(&mut rng, 1..300);
    let (off, image) = (disk.clone(), into.path().to_owned());
    let after = std::sync::Mutex::new(None);
    let survivor = std::sync::Arc::new(after);
    let kept = std::sync::Arc::clone(&survivor);
    disk.on(move |op| {
        if op.number == at {
            let mut rng = XorShiftRng::seed_from_u64(seed ^ 0xdead);
            *kept.lock().expect("one at a time") =
                Some(off.cut_power(&mut rng, &image).expect("an image"));
        }
        Verdict::Proceed
    });
    let acknowledged: Vec<u32> = (0..).take_while(|id| insert(&conn, *id).is_ok()).collect();
    drop(conn);
    assert!(disk.is_off());
    let _ruled = survivor.lock().expect("one at a time").take().expect("the power went");
    let conn = match synchronous {
        "full" => open(into.path(), "full"),
        _ => match Connection::open(into.path().join("test.db")) {
            Ok(conn) => conn,
            Err(error) => panic!("seed {seed}: {error}"),
        },
    };
    if synchronous == "full" {
        sound(&conn);
        return (acknowledged, ids(&conn));
    }
    // Without syncs the file may hold anything.
    let there = conn
        .prepare("SELECT id FROM t")
        .and_then(|mut all| {
            all.query_map([], |row| row.get(0)).map(|rows| rows.filter_map(Result::ok).collect())
        })
        .unwrap_or_default();
    (acknowledged, there)
}

#[test]
fn synced_data_survives_200_power_cuts() {
    for seed in 0..200 {
        let (acknowledged, there) = cut(seed, "full");
        let kept = &there[..acknowledged.len().min(there.len())];
        assert_eq!(kept, acknowledged, "seed {seed}: every acknowledged row is there");
        assert!(
            there.len() <= acknowledged.len() + 1,
            "seed {seed}: and at most the one that was under way: {there:?}"
        );
    }
}

#[test]
fn unsynced_data_is_lost_in_some_runs() {
    let lost = (0..40).filter(|seed| {
        let (acknowledged, there) = cut(*seed, "off");
        acknowledged.iter().any(|id| !there.contains(id))
    });
    assert!(lost.count() > 10);
}

#[test]
fn a_power_cut_takes_unsynced_data_and_nothing_else() {
    let mut seen = [false; 2];
    for seed in 0..20 {
        let (dir, into) = (directory(), directory());
        let disk = Disk::over(dir.path());
        let conn = with_table(dir.path(), "full");
        insert(&conn, 1).expect("written");
        assert_eq!(checkpoint(&conn), (0, 0, 0));
        insert(&conn, 2).expect("written");
        conn.pragma_update(None, "synchronous", "off").expect("set");
        insert(&conn, 3).expect("written, not synced");
        assert_ne!(disk.unsynced(), 0);
        let mut rng = XorShiftRng::seed_from_u64(seed);
        let _after = disk.cut_power(&mut rng, into.path()).expect("an image");
        assert!(
            conn.query_row("SELECT count(*) FROM t", [], |_| Ok(())).is_err(),
            "a disk that is off answers nothing"
        );
        drop(conn);
        let there = ids(&open(into.path(), "full"));
        assert_eq!(there[..2], [1, 2], "seed {seed}");
        seen[there.len() - 2] = true;
    }
    assert_eq!(seen, [true; 2], "the third is lost in some and kept in some");
}

#[test]
fn a_kill_loses_nothing_and_unsynced_data_stays_unsynced() {
    let (dir, killed, cut) = (directory(), directory(), directory());
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), "off");
    let synced = disk.unsynced();
    assert_ne!(synced, 0);
    insert(&conn, 1).expect("written, not synced");
    let after = disk.kill(killed.path()).expect("an image");
    drop(conn);
    let conn = open(killed.path(), "full");
    assert_eq!(ids(&conn), [1], "it is there to be seen");
    assert_ne!(after.unsynced(), 0);
    assert_eq!(checkpoint(&conn), (0, 0, 0));
    let mut rng = XorShiftRng::seed_from_u64(1);
    let _after = after.cut_power(&mut rng, cut.path()).expect("an image");
    assert_eq!(ids(&open(cut.path(), "full")), [1], "the checkpoint made it durable");
}

/// A commit whose sync failed, the process killed, and its log read again: the row can be seen.
/// Then an acknowledged commit, and a power cut.
fn after_a_sync_that_lost(fold: bool) -> Vec<u32> {
    let (dir, killed, cut) = (directory(), directory(), directory());
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), "full");
    disk.fail([Fault::at(Action::Sync).of(Kind::Log).times(1).with(Verdict::Lose)]);
    assert_eq!(code(insert(&conn, 1)).1, 1034);
    assert_eq!(disk.unsynced(), 0, "it is forgotten that there is something to sync");
    let after = disk.kill(killed.path()).expect("an image");
    drop(conn);
    let conn = open(killed.path(), "full");
    assert_eq!(ids(&conn), [1]);
    if fold {
        assert_eq!(checkpoint(&conn), (0, 0, 0));
    }
    insert(&conn, 2).expect("acknowledged");
    let mut rng = XorShiftRng::seed_from_u64(1);
    let _after = after.cut_power(&mut rng, cut.path()).expect("an image");
    drop(conn);
    ids(&open(cut.path(), "full"))
}

#[test]
fn data_lost_by_a_sync_is_written_by_a_checkpoint_and_not_by_a_later_sync() {
    assert_eq!(
        after_a_sync_that_lost(false),
        [],
        "behind a gap in the log even what was acknowledged is lost"
    );
    assert_eq!(after_a_sync_that_lost(true), [1, 2]);
}

#[test]
fn a_disk_that_lies_loses_acknowledged_writes() {
    let (dir, into) = (directory(), directory());
    let disk = Disk::over(dir.path());
    let conn = with_table(dir.path(), "full");
    disk.fail([Fault::at(Action::Sync).with(Verdict::Pretend)]);
    (0..20).for_each(|id| insert(&conn, id).expect("acknowledged"));
    let mut rng = XorShiftRng::seed_from_u64(4);
    let _after = disk.cut_power(&mut rng, into.path()).expect("an image");
    drop(conn);
    assert!(ids(&open(into.path(), "full")).len() < 20);
}
