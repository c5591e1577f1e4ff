//! A slice of the simulation for every build: a fixed range of seeds, the same seed again, each
//! class of faults, and every planted bug.
//!
//! The long runs are `sim --seeds N`; their findings are replayed with `sim --seed X`.

use std::num::NonZero;
use std::thread;

use hive_fault::Bug;
use hive_sim::bugs::{self, SEEDS_MAX};
use hive_sim::campaign::run_all;
use hive_sim::{Echo, Fault, Plan, Report, run};

/// Returns a plan for a few minutes of a busy hive, or some hours of a calm one: enough for every
/// kind of event to happen somewhere in the range.
fn short(seed: u64) -> Plan {
    Plan { minutes: 6, ..Plan::of(seed) }
}

fn threads() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

fn sound(report: &Report) {
    assert!(report.violations.is_empty(), "{}\n{}", report.plan, report.violations.join("\n"));
}

#[test]
fn a_range_of_seeds_breaks_no_promise() {
    let plans: Vec<Plan> = (1..=16).map(short).collect();
    let mut commits = 0;
    run_all(&plans, threads(), |report| {
        sound(&report);
        commits += report.figures.commits;
        true
    });
    assert!(commits > 10_000, "the hives were hardly used: {commits} commits");
}

#[test]
fn a_seed_is_the_same_wherever_it_runs_and_no_other() {
    let beside = |seed| thread::spawn(move || run(&short(seed), Echo::Hash).hash);
    let (first, second, other) = (beside(7), beside(7), beside(8));
    let [first, second, other] = [first, second, other].map(|run| run.join().expect("a hash"));
    assert_eq!(first, second);
    assert_ne!(first, other);
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_sim"))
        .args(["--seed", "7", "--minutes", "6"])
        .output();
    let output = String::from_utf8(output.expect("the program runs").stdout).expect("text");
    assert!(output.contains(&first), "another process: {output} instead of {first}");
}

#[test]
fn each_class_of_faults_breaks_no_promise_by_itself() {
    let all: std::collections::BTreeSet<Fault> = Fault::ALL.into_iter().collect();
    let mut plans = Vec::new();
    for fault in Fault::ALL {
        let mut without = all.clone();
        without.remove(&fault);
        plans.push(Plan { without, minutes: 4, ..Plan::of(1_000 + fault as u64) });
    }
    plans.push(Plan { without: all, minutes: 4, ..Plan::of(1_000) });
    run_all(&plans, threads(), |report| {
        sound(&report);
        true
    });
}

#[test]
fn every_planted_bug_is_found() {
    let next = std::sync::atomic::AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..threads() {
            scope.spawn(|| {
                while let Some(bug) =
                    Bug::ALL.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let hunt = bugs::hunt(*bug, 1, SEEDS_MAX);
                    assert!(hunt.caught.is_some(), "{bug:?} was not found in {SEEDS_MAX} seeds");
                }
            });
        }
    });
}
