//! The store on a failing disk: which callers get an error, which continue, and how it recovers by
//! itself.

#![allow(
    clippy::disallowed_methods,
    reason = "the runtime of a test ends the tasks that it spawned"
)]

mod bed;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bed::{Bed, Failed, Nobody, directory, rows, say};
use hive_broker::clock::ManualClock;
use hive_broker::store::{Health, OpenError, Step, Store};
use hive_disk::{Action, Disk, Error, Fault, Kind, Verdict};
use rusqlite::ErrorCode;

const GUARD: Duration = Duration::from_secs(60);

fn long(number: usize) -> String {
    format!("message {number} {}", "x".repeat(9000))
}

#[test]
fn nothing_is_answered_until_a_recovery_has_succeeded_whatever_fails_in_it() {
    for fault in [
        Fault::at(Action::Sync).of(Kind::Database),
        Fault::at(Action::Sync).of(Kind::Database).with(Verdict::Lose),
        Fault::at(Action::Write).of(Kind::Database),
        Fault::at(Action::Write).of(Kind::Database).with(Verdict::Fail(Error::Full)),
        Fault::at(Action::Sync).of(Kind::Log),
        Fault::at(Action::Truncate).of(Kind::Log),
        Fault::at(Action::Read),
        Fault::at(Action::Open).of(Kind::Database),
        Fault::at(Action::Open).of(Kind::Log),
        Fault::at(Action::Read).with(Verdict::Fail(Error::NoMemory)),
    ] {
        let told = format!("{fault:?}");
        let mut bed = Bed::new();
        let mut health = bed.open().store.health();
        bed.say("before").expect("written");
        bed.read().expect("read");
        bed.disk.fail([Fault::at(Action::Sync).of(Kind::Log).times(1).with(Verdict::Lose), fault]);
        assert!(bed.say("void").expect_err("its sync failed").is_unavailable(), "{told}");
        assert!(matches!(&*health.borrow_and_update(), Health::Faulted(_)), "{told}");
        for _ in 0..3 {
            assert_eq!(bed.step(), Step::Recovery { recovered: false }, "{told}");
            assert!(bed.read().expect_err("nothing is answered").is_unavailable(), "{told}");
            assert!(
                bed.say("meanwhile").expect_err("nothing is accepted").is_unavailable(),
                "{told}"
            );
        }
        bed.disk.heal();
        assert!(bed.recover(), "{told}");
        assert_eq!(*health.borrow_and_update(), Health::Ok, "{told}");
        let there = bed.read().expect("read");
        assert!(there.values().all(|body| body != "meanwhile"), "{told}");
        bed.say("after").expect("written");
        bed.kill();
        bed.audit(&told);
    }
}

#[test]
fn a_commit_is_one_write_and_one_sync_of_the_log() {
    let mut bed = Bed::new();
    bed.say("the statements of the next ones are prepared").expect("written");
    for body in ["short", &long(1)] {
        let ops = [Action::Write, Action::Sync].map(|action| bed.disk.count(Kind::Log, action));
        bed.say(body).expect("written");
        let now = [Action::Write, Action::Sync].map(|action| bed.disk.count(Kind::Log, action));
        assert_eq!(now, ops.map(|count| count + 1), "{body}");
    }
}

#[test]
fn a_batch_is_aborted_as_a_whole_or_not_at_all() {
    for number in 0..40 {
        for verdict in [
            Verdict::Fail(Error::Full),
            Verdict::Torn(300, Error::Io),
            Verdict::Torn(9000, Error::Full),
            Verdict::Torn(usize::MAX, Error::Io),
            Verdict::Lose,
        ] {
            let mut bed = Bed::new();
            // As long as those below, so that the batch finds the pages that it reads in memory: a
            // failed read would keep the rest of it in the queue.
            bed.say(&long(0)).expect("written");
            let from = bed.disk.asked();
            bed.disk
                .on(move |op| if op.number == from + number { verdict } else { Verdict::Proceed });
            let bodies = [long(1), "two".to_owned(), long(3)];
            let answers = bed.say_all(&bodies.each_ref().map(String::as_str));
            let accepted = answers.iter().filter(|answer| answer.is_ok()).count();
            assert!(accepted == 0 || accepted == 3, "{verdict:?} at {number}: {accepted} of 3");
            bed.disk.heal();
            if bed.is_faulted() {
                assert!(bed.recover());
            }
            let there =
                bed.read().expect("read").values().filter(|body| bodies.contains(body)).count();
            assert!(there == 0 || there == 3, "{verdict:?} at {number}: {there} of 3");
            assert!(there >= accepted);
            bed.kill();
            bed.audit(&format!("{verdict:?} at {number}"));
        }
    }
}

#[test]
fn a_full_disk_takes_mail_until_the_log_cannot_grow_and_again_when_there_is_room() {
    let mut bed = Bed::new();
    bed.say("before").expect("written");
    bed.disk.set_room(Some(200_000));
    let mut number = 0;
    let refusal = loop {
        number += 1;
        if let Err(refusal) = bed.say(&long(number)) {
            break refusal;
        }
    };
    assert!(refusal.is_unavailable());
    assert!(number > 5);
    // The log cannot be folded either if the database has to grow for it.
    assert!(!bed.recover());
    assert!(bed.is_faulted());
    bed.disk.heal();
    assert!(bed.recover());
    assert_eq!(bed.read().expect("read").len(), number);
    bed.say("there is room").expect("written");
    bed.kill();
    bed.audit("full");
}

#[test]
fn a_reader_that_stays_makes_the_log_grow_and_blocks_no_caller() {
    let mut bed = Bed::new();
    let reader = rusqlite::Connection::open(bed.path().join("hive.db")).expect("it opens");
    bed.say("before").expect("written");
    reader.execute_batch("BEGIN; SELECT count(*) FROM message").expect("a snapshot");
    let log = bed.path().join("hive.db-wal");
    let len = || std::fs::metadata(&log).expect("the log is there").len();
    let mut number = 0;
    while len() < 2500 * 4096 {
        number += 1;
        bed.say(&long(number)).expect("written");
    }
    assert_eq!(rows(&reader).expect("its snapshot").len(), 1);
    assert_eq!(bed.read().expect("read").len(), number + 1);
    drop(reader);
    // The next commit lets the log be folded completely; then it is written from its beginning
    // again.
    bed.say("the next").expect("written");
    let whole = len();
    for number in 0..100 {
        bed.say(&long(number)).expect("written");
    }
    assert_eq!(len(), whole, "the log does not grow any more");
    bed.kill();
    bed.audit("a long reader");
}

#[test]
fn a_reader_of_an_older_state_keeps_a_store_from_being_opened_and_recovered() {
    let mut bed = Bed::new();
    bed.say("one").expect("written");
    let reader = rusqlite::Connection::open(bed.path().join("hive.db")).expect("it opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM message").expect("a snapshot");
    bed.say("two").expect("written");
    bed.disk.fail([Fault::at(Action::Sync).times(1).with(Verdict::Lose)]);
    assert!(bed.say("void").expect_err("its sync failed").is_unavailable());
    assert!(!bed.recover(), "what the other one has open may be lost");
    drop(reader);
    assert!(bed.recover());
    bed.read().expect("read");
    let reader = rusqlite::Connection::open(bed.path().join("hive.db")).expect("it opens");
    reader.execute_batch("BEGIN; SELECT count(*) FROM message").expect("a snapshot");
    bed.say("three").expect("written");
    let Err(OpenError::Sqlite { source, hint, .. }) = bed.restart() else {
        panic!("it is refused")
    };
    assert_eq!(source.sqlite_error_code(), Some(ErrorCode::DatabaseBusy));
    assert_eq!(hint, "another program holds it open");
    drop(reader);
    bed.audit("a reader");
}

#[tokio::test]
async fn a_slow_sync_holds_up_receipts_and_no_reader() {
    let dir = directory();
    let disk = Disk::over(dir.path());
    let store = Store::open(dir.path(), Arc::new(ManualClock::new("boot-0")), Arc::new(Nobody))
        .expect("it opens");
    let store = Arc::new(store);
    let written = |body: &'static str| {
        let store = Arc::clone(&store);
        tokio::spawn(async move { store.write(move |tx| Ok::<_, Failed>(say(tx, body)?)).await })
    };
    written("before").await.expect("no panic").expect("written");
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let (go_on, goes_on) = mpsc::channel::<()>();
    let goes_on = Mutex::new(goes_on);
    disk.on(move |op| {
        if op.action == Action::Sync && op.kind == Kind::Log {
            begun.send(()).expect("the test listens");
            goes_on.lock().expect("one at a time").recv().expect("the test goes on");
        }
        Verdict::Proceed
    });
    let slow = written("slow");
    tokio::time::timeout(GUARD, begins.recv()).await.expect("it syncs").expect("told");
    let behind = written("behind");
    let there =
        store.read(|conn, _| Ok::<_, Failed>(rows(conn)?)).await.expect("a reader does not wait");
    assert_eq!(there.len(), 1, "what is not on disk is not told");
    assert_eq!(*store.health().borrow(), Health::Ok, "slow is not broken");
    assert!(!slow.is_finished() && !behind.is_finished(), "no receipt before the sync");
    go_on.send(()).expect("it waits");
    slow.await.expect("no panic").expect("written");
    go_on.send(()).expect("it waits");
    behind.await.expect("no panic").expect("written");
    disk.heal();
}

#[tokio::test]
async fn the_writers_thread_recovers_by_itself() {
    let dir = directory();
    let disk = Disk::over(dir.path());
    let store = Store::open(dir.path(), Arc::new(ManualClock::new("boot-0")), Arc::new(Nobody))
        .expect("it opens");
    let mut health = store.health();
    store.write(|tx| Ok::<_, Failed>(say(tx, "before")?)).await.expect("written");
    disk.fail([Fault::at(Action::Sync)]);
    assert!(
        store
            .write(|tx| Ok::<_, Failed>(say(tx, "void")?))
            .await
            .expect_err("void")
            .is_unavailable()
    );
    assert!(
        matches!(&*health.borrow_and_update(), Health::Faulted(problem) if problem.contains("I/O"))
    );
    assert!(
        store
            .read(|conn, _| Ok::<_, Failed>(rows(conn)?))
            .await
            .expect_err("nothing is answered")
            .is_unavailable()
    );
    disk.heal();
    tokio::time::timeout(GUARD, health.wait_for(|health| *health == Health::Ok))
        .await
        .expect("it recovers")
        .expect("open");
    store.write(|tx| Ok::<_, Failed>(say(tx, "after")?)).await.expect("written");
    let there = store.read(|conn, _| Ok::<_, Failed>(rows(conn)?)).await.expect("read");
    assert!(
        there.values().any(|body| body == "before") && there.values().any(|body| body == "after")
    );
}
