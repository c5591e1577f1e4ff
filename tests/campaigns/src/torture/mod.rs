//! The kill campaign: real programs on real files, killed without warning by the thousand, and the
//! delivery contract checked against what clients observed.
//!
//! A run is rounds; a round is a separate hive with about [`ROUND_KILLS`] kills. Invariant: a run's
//! seed makes the seeds of its rounds, so that a round can be played alone by its seed.

mod cast;
mod commands;
pub(crate) mod dice;
mod effect;
mod facts;
mod figures;
mod guest;
mod killer;
mod last;
mod other;
mod perform;
mod players;
mod reads;
mod round;
pub mod rpcs;
mod seen;
mod sender;
mod settle;
mod sound;
mod stream;
mod tape;
mod turns;
mod voice;
mod watches;

use std::path::{Path, PathBuf};

use hive_history::Violation;

pub use figures::Figures;
pub use tape::wall_ms as now_ms;

use round::Plan;

pub const ROUND_KILLS: u64 = 40;

#[derive(Clone, Debug)]
pub struct Options {
    pub kills: u64,
    /// The first round's seed; the following ones count up.
    pub seed: u64,
    /// The directory of the programs with fail points; `None`: kills at random only.
    pub faults: Option<PathBuf>,
    /// Whether the hive of each round is kept even if nothing is found.
    pub keep: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Run {
    pub figures: Figures,
    /// The violations of the round that ended it; empty: none.
    pub found: Vec<String>,
}

/// Returns the directory of the programs with fail points: `HIVE_TEST_FAULTS_DIR`.
pub fn named_faults_dir() -> Option<PathBuf> {
    std::env::var_os("HIVE_TEST_FAULTS_DIR").map(PathBuf::from)
}

/// Returns the same, or else `target/faults`, if they were built.
pub fn faults_dir() -> Option<PathBuf> {
    let dir =
        named_faults_dir().unwrap_or_else(|| hive_tests::binary::workspace().join("target/faults"));
    dir.join("hived").exists().then_some(dir)
}

/// Plays a short round, changes its database while no broker runs, and returns what the check finds
/// then.
pub async fn tampered(seed: u64, tamper: fn(&Path)) -> Vec<Violation> {
    let plan = Plan { seed, kills: 3, faults: None, tamper: Some(tamper) };
    match round::play(&plan).await {
        Ok(outcome) => outcome.violations,
        Err(error) => panic!("{error:#}"),
    }
}

/// Plays rounds until there were enough kills, or a violation is found. Calls `progress` after each
/// round with its seed and the figures.
pub async fn run(options: &Options, mut progress: impl FnMut(u64, &Figures)) -> Run {
    let mut run = Run::default();
    let mut seed = options.seed;
    while run.figures.kills() < options.kills {
        let kills = ROUND_KILLS.min(options.kills - run.figures.kills());
        let plan = Plan { seed, kills, faults: options.faults.clone(), tamper: None };
        match round::play(&plan).await {
            Ok(mut outcome) => {
                run.figures.merge(&outcome.figures);
                run.figures.count("rounds");
                if options.keep {
                    outcome.rig.keep();
                }
                if !outcome.violations.is_empty() {
                    let kept = outcome.rig.keep();
                    run.found.push(round::tell(&plan, &outcome, &kept));
                    return run;
                }
            }
            Err(error) => {
                run.found.push(format!("{error:#}"));
                return run;
            }
        }
        progress(seed, &run.figures);
        seed += 1;
    }
    run
}
