//! Planted bugs: each is a mistake that the simulation has to find, or it is no proof of anything.
//!
//! Invariant: a bug belongs to the thread that looks for it, and is taken out again.

use std::time::{Duration, Instant};

use hive_fault::{Bug, plant};

use crate::log::Echo;
use crate::plan::Plan;
use crate::run::run;

/// Within so many seeds each of them is found.
pub const SEEDS_MAX: u64 = 100;

/// A bug that was looked for.
#[derive(Clone, Debug)]
pub struct Hunt {
    /// Which.
    pub bug: Bug,
    /// The seed that showed it, and what it showed; `None` if none did.
    pub caught: Option<(u64, String)>,
    /// How long that took.
    pub took: Duration,
}

/// The plan by which bugs are looked for: a sixth of the time of a whole run.
#[must_use]
pub fn plan(seed: u64) -> Plan {
    Plan { minutes: 10, ..Plan::of(seed) }
}

/// Looks for a bug, seed by seed from `start`.
#[must_use]
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
