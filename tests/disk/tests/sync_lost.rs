//! A sync that failed and lost its data: the data can be read but is not on disk, and no later sync
//! writes it. No answer to a caller may depend on it.

mod bed;

use bed::Bed;
use hive_disk::{Action, Fault, Kind, Verdict};
use rand::SeedableRng as _;
use rand_xorshift::XorShiftRng;

fn lost(kind: Kind) -> Fault {
    Fault::at(Action::Sync).of(kind).with(Verdict::Lose)
}

/// Returns enough text that a row takes pages of its own.
fn long(number: u64) -> String {
    format!("message {number} {}", "x".repeat(9000))
}

/// A commit whose sync failed; the store has recovered, and its answers are recorded. Then the
/// power is cut.
fn recovered_then_cut(seed: u64, idle_reader: bool, restart: bool) {
    let mut bed = Bed::new();
    for number in 0..5 {
        bed.say(&long(number)).expect("written");
    }
    if idle_reader {
        bed.read().expect("read");
    }
    bed.disk.fail([lost(Kind::Log).times(1)]);
    assert!(bed.say(&long(99)).expect_err("its sync failed").is_unavailable());
    assert!(bed.read().expect_err("nothing is answered").is_unavailable());
    if restart {
        bed.kill();
        bed.start().expect("it opens");
    } else {
        assert!(bed.recover());
    }
    bed.read().expect("read");
    let mut rng = XorShiftRng::seed_from_u64(seed);
    bed.cut_power(&mut rng);
    bed.audit(&format!("seed {seed}, idle reader {idle_reader}, restart {restart}"));
}

#[test]
fn writes_answered_after_a_recovery_survive_a_power_cut() {
    for seed in 0..30 {
        recovered_then_cut(seed, false, false);
        recovered_then_cut(seed, true, false);
        recovered_then_cut(seed, true, true);
    }
}

/// A reader kept the log from being folded completely; then a sync of the database loses what was
/// folded. No caller gets an error, because no commit failed.
#[test]
fn pages_lost_by_a_checkpoint_are_written_again() {
    for seed in 0..6 {
        let mut bed = Bed::new();
        let mut number = 0;
        let mut fold = |bed: &mut Bed, until: &dyn Fn(&Bed) -> bool| {
            while !until(bed) {
                number += 1;
                // If the batch fails it is aborted, and no caller relies on it.
                if bed.say(&long(number)).is_err() {
                    assert!(bed.recover());
                }
            }
        };
        let reader = rusqlite::Connection::open(bed.path().join("hive.db")).expect("it opens");
        fold(&mut bed, &|bed| bed.told.len() > 300);
        reader.execute_batch("BEGIN; SELECT count(*) FROM message").expect("a snapshot");
        let writes = bed.disk.count(Kind::Database, Action::Write);
        fold(&mut bed, &|bed| bed.disk.count(Kind::Database, Action::Write) > writes);
        let syncs = bed.disk.count(Kind::Database, Action::Sync);
        drop(reader);
        bed.disk.fail([lost(Kind::Database).times(1)]);
        fold(&mut bed, &|bed| bed.disk.count(Kind::Database, Action::Sync) > syncs + 1);
        let told = bed.told.len();
        fold(&mut bed, &|bed| bed.told.len() > told + 3);
        let mut rng = XorShiftRng::seed_from_u64(seed);
        bed.cut_power(&mut rng);
        bed.audit(&format!("seed {seed}"));
    }
}
