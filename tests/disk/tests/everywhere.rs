//! One fault, or one power cut, at each single operation of the disk while a store is created,
//! written, read, closed, killed and opened again. Every answered message is there afterwards, and
//! nothing is broken.
//!
//! Every eleventh of these points is tried, with another offset for each kind of fault;
//! `HIVE_DISK_STRIDE=1` tries every point, which takes minutes.

mod bed;

use std::sync::atomic::{AtomicU64, Ordering};

use bed::Bed;
use hive_disk::{Action, Error, Kind, Op, Verdict};

/// A life of a store. It continues after a failure, as callers and an operator would: a refused
/// caller tries again.
fn life(bed: &mut Bed) {
    started(bed);
    said(bed, "one");
    said(bed, &"two ".repeat(5000));
    heard(bed);
    said(bed, "three");
    if bed.is_started() {
        bed.stop();
    }
    started(bed);
    said(bed, "four");
    heard(bed);
    said(bed, &"five ".repeat(2000));
    if !bed.disk.is_off() {
        bed.kill();
    }
    started(bed);
    said(bed, "six");
    heard(bed);
    if bed.is_started() {
        bed.stop();
    }
}

const TRIES: usize = 4;

fn started(bed: &mut Bed) {
    for _ in 0..TRIES {
        if bed.disk.is_off() || bed.start().is_ok() {
            return;
        }
    }
}

/// Writes a body until it is accepted; recovers the store if it failed.
fn said(bed: &mut Bed, body: &str) {
    for _ in 0..TRIES {
        if !bed.is_started() || bed.disk.is_off() {
            return;
        }
        if bed.is_faulted() && !bed.recover() {
            assert!(bed.read().is_err(), "nothing is answered before it has recovered");
            continue;
        }
        match bed.say(body) {
            Ok(_) => return,
            Err(refusal) => {
                assert!(refusal.is_unavailable(), "{refusal:?}");
                assert!(bed.is_faulted());
            }
        }
    }
}

fn heard(bed: &mut Bed) {
    // A reader may hit the fault, and gets an error.
    if bed.is_started() && !bed.disk.is_off() {
        drop(bed.read());
    }
}

/// Returns the number of operations in a life.
fn ops() -> u64 {
    let mut bed = Bed::unopened();
    bed.on_each(|_, _, _| Verdict::Proceed);
    life(&mut bed);
    let ops = bed.asked.load(Ordering::Relaxed);
    bed.audit("without a fault");
    assert_eq!(bed.told.len(), 7);
    assert!(ops > 150, "{ops}");
    ops
}

/// Returns the points to try in this round.
fn points(round: usize) -> impl Iterator<Item = u64> {
    let stride = std::env::var("HIVE_DISK_STRIDE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(11)
        .max(1);
    (round as u64 * 4 % stride..ops()).step_by(usize::try_from(stride).expect("a small number"))
}

/// Sets a fault at the operation of this number, counted through the whole life, and at the `more`
/// that follow.
fn struck(bed: &mut Bed, number: u64, more: u64, verdict: Verdict) {
    bed.on_each(
        move |asked, _, _| {
            if (number..=number + more).contains(&asked) { verdict } else { Verdict::Proceed }
        },
    );
}

#[test]
fn one_fault_anywhere_is_outlived() {
    let verdicts = [
        Verdict::Fail(Error::Io),
        Verdict::Fail(Error::Full),
        Verdict::Fail(Error::NoMemory),
        Verdict::Torn(700, Error::Io),
        Verdict::Torn(9000, Error::Full),
        Verdict::Torn(usize::MAX, Error::Io),
        Verdict::Lose,
        Verdict::LoseSome(3),
    ];
    for (round, verdict) in verdicts.into_iter().enumerate() {
        for number in points(round) {
            let mut bed = Bed::unopened();
            struck(&mut bed, number, 0, verdict);
            life(&mut bed);
            bed.audit(&format!("{verdict:?} at {number}"));
        }
    }
}

#[test]
fn several_faults_in_a_row_anywhere_are_outlived() {
    for number in points(0) {
        for (more, verdict) in [
            (3, Verdict::Fail(Error::Io)),
            (12, Verdict::LoseSome(number)),
            (12, Verdict::Fail(Error::Full)),
        ] {
            let mut bed = Bed::unopened();
            struck(&mut bed, number, more, verdict);
            life(&mut bed);
            bed.audit(&format!("{verdict:?} at {number} and {more} more"));
        }
    }
}

#[test]
fn a_power_cut_anywhere_takes_nothing_that_was_answered() {
    for seed in 0..3 {
        for number in points(usize::try_from(seed).expect("a small number")) {
            let mut bed = Bed::unopened();
            bed.cut_power_at(number, seed, |_: &Op| Verdict::Proceed);
            life(&mut bed);
            bed.was_cut();
            bed.audit(&format!("cut at {number}, seed {seed}"));
        }
    }
}

#[test]
fn a_power_cut_after_a_sync_that_lost_takes_nothing_that_was_answered() {
    for (round, nth) in [1, 3].into_iter().enumerate() {
        for number in points(round) {
            let mut bed = Bed::unopened();
            let syncs = AtomicU64::new(0);
            bed.cut_power_at(number, number, move |op| {
                let counts =
                    op.action == Action::Sync && matches!(op.kind, Kind::Log | Kind::Database);
                if counts && syncs.fetch_add(1, Ordering::Relaxed) % 6 == nth {
                    Verdict::Lose
                } else {
                    Verdict::Proceed
                }
            });
            life(&mut bed);
            bed.was_cut();
            bed.audit(&format!("cut at {number}, each sixth sync after {nth} lost"));
        }
    }
}
