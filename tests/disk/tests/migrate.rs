//! The migration of an old database: one fault, one kill or one power cut at each single operation
//! of the disk leaves the old one or a whole new one.

mod bed;

use std::path::Path;
use std::sync::atomic::Ordering;

use bed::Bed;
use hive_broker::store::{OpenError, SCHEMA_VERSION};
use hive_disk::{Error, Verdict};
use rusqlite::Connection;

/// The schema of the first broker.
const OLD: &str = include_str!("../../../broker/src/store/file/sql/0001_init.sql");
/// A message that is ready, and one that is acked.
const ROWS: &str = "
    INSERT INTO agent (id, name, source, harness_state_time) VALUES (1, 'operator', 0, 0), (2, 'ada', 2, 0);
    INSERT INTO inbox (agent_id, open_count) VALUES (1, 0), (2, 1);
    INSERT INTO message (id, origin_kind, origin_id, origin_name, to_id, body, accept_time)
        VALUES (7, 2, 1, 'operator', 2, 'ready', 1000), (8, 2, 1, 'operator', 2, 'acked', 1000);
    INSERT INTO delivery (agent_id, message_id, lane, state, lease_token, state_time, body_bytes)
        VALUES (2, 7, 2, 1, NULL, 1000, 5), (2, 8, 2, 5, '2.8.secret', 1000, 5);
    INSERT INTO meta (key, value) VALUES ('last_id', 8), ('last_event', 0);
    PRAGMA user_version = 1;
";

/// Returns a disk with the database of the first broker, and the messages in it.
fn old() -> Bed {
    let mut bed = Bed::unopened();
    let conn = Connection::open(bed.path().join("hive.db")).expect("a database");
    conn.pragma_update(None, "journal_mode", "wal").expect("a log");
    conn.pragma_update(None, "synchronous", "full").expect("it is synced");
    conn.execute_batch(OLD).expect("the old schema");
    conn.execute_batch(ROWS).expect("its rows");
    conn.close().expect("it is closed");
    bed.told = [(7, "ready".to_owned()), (8, "acked".to_owned())].into();
    bed
}

/// Returns the version of what is left, and its deliveries.
fn left(dir: &Path) -> (u32, Vec<(u32, u32)>) {
    let conn = Connection::open(dir.join("hive.db")).expect("a database");
    let version = conn.pragma_query_value(None, "user_version", |row| row.get(0)).expect("read");
    let sql = "SELECT message_id, state FROM delivery ORDER BY 1";
    let mut select = conn.prepare(sql).expect("a table or a view");
    let rows = select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
    (version, rows.collect::<Result<_, _>>().expect("read"))
}

/// What is left is the old database or the new one, and the next start has the new one.
fn whole(bed: &mut Bed, who: &str) -> u32 {
    bed.disk.heal();
    let (version, deliveries) = left(bed.path());
    assert!(version == 1 || version == SCHEMA_VERSION, "{who}: version {version}");
    assert_eq!(deliveries, [(7, 1), (8, 5)], "{who}: version {version}");
    bed.audit(who);
    let (now, deliveries) = left(bed.path());
    assert_eq!((now, &deliveries[..2]), (SCHEMA_VERSION, &[(7, 1), (8, 5)][..]), "{who}");
    version
}

/// Returns the number of operations of a start that migrates.
fn ops() -> u64 {
    let mut bed = old();
    bed.on_each(|_, _, _| Verdict::Proceed);
    bed.start().expect("it is migrated");
    let ops = bed.asked.load(Ordering::Relaxed);
    assert!(ops > 60, "{ops}");
    ops
}

#[test]
fn whatever_fails_during_a_migration_leaves_the_old_database_or_the_new_one() {
    let (mut old_ones, mut said) = (0, 0);
    for (verdict, hint) in [
        (Verdict::Fail(Error::Io), "the disk fails"),
        (Verdict::Fail(Error::Full), "the disk is full; free some space"),
        (Verdict::Torn(700, Error::Io), "the disk fails"),
        (Verdict::Torn(9000, Error::Full), "the disk is full; free some space"),
        (Verdict::Torn(usize::MAX, Error::Io), "the disk fails"),
    ] {
        for number in 0..ops() {
            let mut bed = old();
            bed.on_each(
                move |asked, _, _| {
                    if asked == number { verdict } else { Verdict::Proceed }
                },
            );
            let started = bed.start();
            let who = format!("{verdict:?} at {number}");
            if let Err(error @ OpenError::Migration { found: 1, .. }) = &started {
                let sentence = error.to_string();
                assert!(sentence.contains("it is as it was before: "), "{who}: {sentence}");
                said += u32::from(sentence.contains(hint));
                drop(started);
                assert_eq!(left(bed.path()).0, 1, "{who}: {sentence}");
            }
            old_ones += u32::from(whole(&mut bed, &who) == 1);
        }
    }
    assert!(old_ones > 50 && said > 20, "{old_ones} old ones, {said} errors of a migration");
}

#[test]
fn a_kill_or_a_power_cut_at_any_point_of_a_migration_is_outlived() {
    let (mut old_ones, mut new_ones) = (0, 0);
    for number in 0..ops() {
        for seed in 0..2 {
            let mut bed = old();
            bed.cut_power_at(number, seed, |_| Verdict::Proceed);
            // After the last operation that matters it may not notice.
            drop(bed.start());
            assert!(bed.was_cut());
            let version = whole(&mut bed, &format!("cut at {number}, seed {seed}"));
            *(if version == 1 { &mut old_ones } else { &mut new_ones }) += 1;
        }
        let mut bed = old();
        bed.kill_at(number);
        drop(bed.start());
        assert!(bed.was_cut());
        whole(&mut bed, &format!("killed at {number}"));
    }
    assert!(old_ones > 20 && new_ones > 20, "{old_ones} old ones, {new_ones} new ones");
}
