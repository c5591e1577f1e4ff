//! The first start of a store: one fault, one kill or one power cut at each single operation of the
//! disk while the database is created.

mod bed;

use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use bed::Bed;
use hive_broker::store::OpenError;
use hive_disk::{Action, Error, Fault, Kind, Verdict};

/// The name of the database until it is whole.
const FIRST_NAME: &str = "create.tmp";

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("a directory");
    let mut names: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Returns the number of operations of a first start.
fn ops() -> u64 {
    let mut bed = Bed::unopened();
    bed.on_each(|_, _, _| Verdict::Proceed);
    bed.start().expect("a new database opens");
    let ops = bed.asked.load(Ordering::Relaxed);
    assert!(ops > 60, "{ops}");
    ops
}

#[test]
fn a_new_database_is_synced_once_after_its_last_write_and_then_gets_its_name() {
    let mut bed = Bed::unopened();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    bed.disk.watch(move |op, _| {
        noted.lock().expect("one at a time").push((op.file.clone(), op.kind, op.action));
    });
    bed.start().expect("a new database opens");
    let seen = seen.lock().expect("one at a time").clone();
    let is_named = |file: &str| !file.starts_with(FIRST_NAME);
    let named = seen.iter().position(|(file, ..)| is_named(file)).expect("it has its name");
    assert!(seen[named..].iter().all(|(file, ..)| is_named(file)), "{seen:?}");
    let changes: Vec<_> = seen
        .iter()
        .filter(|(_, _, action)| matches!(action, Action::Write | Action::Truncate | Action::Sync))
        .collect();
    let syncs: Vec<_> =
        changes.iter().enumerate().filter(|(_, (_, _, action))| *action == Action::Sync).collect();
    let [(place, (file, kind, _))] = &syncs[..] else { panic!("{syncs:?}") };
    assert_eq!((file.as_str(), *kind), (FIRST_NAME, Kind::Database));
    let rest = &changes[place + 1..];
    assert!(rest.iter().all(|(file, ..)| is_named(file)), "{rest:?}");
    assert!(
        changes[..*place].iter().filter(|(_, kind, _)| *kind == Kind::Database).count() > 40,
        "{changes:?}"
    );
}

#[test]
fn whatever_fails_while_a_database_is_created_leaves_none_or_a_whole_one() {
    let verdicts = [
        Verdict::Fail(Error::Io),
        Verdict::Fail(Error::Full),
        Verdict::Fail(Error::NoMemory),
        Verdict::Torn(700, Error::Io),
        Verdict::Lose,
    ];
    let mut refused = 0;
    for verdict in verdicts {
        for number in 0..ops() {
            let mut bed = Bed::unopened();
            bed.on_each(
                move |asked, _, _| {
                    if asked == number { verdict } else { Verdict::Proceed }
                },
            );
            if bed.start().is_err() {
                refused += 1;
                let left = names(bed.path());
                assert!(
                    left.iter().all(|name| !name.starts_with(FIRST_NAME)),
                    "{verdict:?} at {number}: {left:?}"
                );
            }
            bed.audit(&format!("{verdict:?} at {number}"));
        }
    }
    assert!(refused > 200, "{refused}");
}

#[test]
fn a_database_whose_sync_failed_does_not_get_its_name() {
    for verdict in [Verdict::Fail(Error::Io), Verdict::Lose, Verdict::LoseSome(3)] {
        let mut bed = Bed::unopened();
        bed.disk.fail([Fault::at(Action::Sync).with(verdict).times(1)]);
        let refused = bed.start().expect_err("its sync failed");
        assert!(matches!(refused, OpenError::Sqlite { .. }), "{verdict:?}: {refused:?}");
        assert_eq!(names(bed.path()), ["hived.lock"], "{verdict:?}");
        bed.audit(&format!("{verdict:?}"));
    }
}

#[test]
fn a_kill_or_a_power_cut_at_any_point_of_a_first_start_is_outlived() {
    for number in 0..ops() {
        for seed in 0..2 {
            let mut bed = Bed::unopened();
            bed.cut_power_at(number, seed, |_| Verdict::Proceed);
            // After the last operation that matters it may not notice.
            drop(bed.start());
            assert!(bed.was_cut());
            bed.audit(&format!("cut at {number}, seed {seed}"));
            let left = names(bed.path());
            assert!(left.iter().all(|name| !name.starts_with(FIRST_NAME)), "{left:?}");
        }
        let mut bed = Bed::unopened();
        bed.kill_at(number);
        drop(bed.start());
        assert!(bed.was_cut());
        bed.audit(&format!("killed at {number}"));
        let left = names(bed.path());
        assert!(left.iter().all(|name| !name.starts_with(FIRST_NAME)), "{left:?}");
    }
}
