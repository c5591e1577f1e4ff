//! Planted bugs: the simulation must find each of them, or it proves nothing.
//!
//! Invariant: a bug belongs to the thread that hunts it, and is removed afterwards.

use std::time::{Duration, Instant};

use hive_fault::{Bug, plant};

use crate::log::Echo;
use crate::plan::Plan;
use crate::run::run;

/// Each bug is found within this number of seeds.
pub const SEEDS_MAX: u64 = 100;

/// A hunt for one planted bug.
#[derive(Clone, Debug)]
pub struct Hunt {
    pub bug: Bug,
    /// The seed that showed it, and its report; `None` if none did.
    pub caught: Option<(u64, String)>,
    /// The duration of the hunt.
    pub took: Duration,
}

/// Returns the plan for hunting bugs: a sixth of the time of a whole run.
pub fn plan(seed: u64) -> Plan {
    Plan { minutes: 10, ..Plan::of(seed) }
}

/// Hunts a bug, seed by seed from `start`.
pub fn hunt(bug: Bug, start: u64, seeds: u64) -> Hunt {
    let began = Instant::now();
    plant(Some(bug));
    let caught = (start..start + seeds).find_map(|seed| {
        let report = run(&plan(seed), Echo::Hash);
        report.violations.into_iter().next().map(|violation| (seed, violation))
    });
    plant(None);
    Hunt { bug, caught, took: began.elapsed() }
}
