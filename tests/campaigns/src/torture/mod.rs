//! The kill campaign: real programs on real files, killed without warning by the thousand, and the
//! delivery contract held against what everybody saw.
//!
//! A run is rounds, a round is a hive of its own with about [`ROUND_KILLS`] kills. Invariant: a
//! run's seed makes the seeds of its rounds, so that a round can be played alone by its seed.

mod cast;
mod commands;
mod dice;
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
mod sound;
mod tape;
mod turns;
mod voice;

use std::path::{Path, PathBuf};

use hive_history::Violation;

pub use figures::Figures;
pub use tape::wall_ms as now_ms;

use round::Plan;

/// Kills in a round.
pub const ROUND_KILLS: u64 = 40;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    /// So many kills at least.
    pub kills: u64,
    /// The first round's seed; the following count up.
    pub seed: u64,
    /// Where the programs with fail points are; `None`: kills at random only.
    pub faults: Option<PathBuf>,
    /// Whether the hive of each round stays also where nothing is found.
    pub keep: bool,
}

/// What a run found.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// What it did.
    pub figures: Figures,
    /// What was found in the round that ended it; empty: nothing.
    pub found: Vec<String>,
}

/// Where programs with fail points are said to be: `HIVE_TEST_FAULTS_DIR`.
#[must_use]
pub fn named_faults_dir() -> Option<PathBuf> {
    std::env::var_os("HIVE_TEST_FAULTS_DIR").map(PathBuf::from)
}

/// The same, or else `target/faults`, if they were built.
#[must_use]
pub fn faults_dir() -> Option<PathBuf> {
    let dir =
        named_faults_dir().unwrap_or_else(|| hive_tests::binary::workspace().join("target/faults"));
    dir.join("hived").exists().then_some(dir)
}

/// Plays a short round, changes its database behind the broker's back, and says what the check
/// finds then.
///
/// # Panics
///
/// If the round cannot be played.
pub async fn tampered(seed: u64, tamper: fn(&Path)) -> Vec<Violation> {
    let plan = Plan { seed, kills: 3, faults: None, tamper: Some(tamper) };
    match round::play(&plan).await {
        Ok(outcome) => outcome.violations,
        Err(error) => panic!("{error:#}"),
    }
}

/// Plays rounds until there were enough kills, or something is found. `progress` hears after each
/// round how it stands.
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
