//! `disks`: makes the broker's files fail, and checks that what it answered is still there.
//!
//! Most runs are inside this process: the engine on a [`hive_disk::Disk`], stepped by hand, with
//! faults, kills and power cuts at any point. Every [`OUTSIDE_EVERY`]th is the real `hived` with
//! strace between it and the kernel. A run depends on its seed. Invariant: each run ends with a
//! working disk, a restart, an integrity check, and a check of every receipt.

mod books;
mod inside;
mod means;
mod outside;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

/// One of this many runs is outside.
pub const OUTSIDE_EVERY: u64 = 20;

/// The size and seed of a campaign.
#[derive(Clone, Debug)]
pub struct Options {
    pub runs: u64,
    /// The seed of the first run; the others count up from it.
    pub seed: u64,
}

/// The result of a campaign or a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// The number of actions, by name.
    pub figures: BTreeMap<String, u64>,
    /// The problems found, with the seed that reproduces each.
    pub found: Vec<String>,
}

impl Outcome {
    pub(crate) fn count(&mut self, name: &str, more: u64) {
        *self.figures.entry(name.to_owned()).or_default() += more;
    }

    fn add(&mut self, other: Self) {
        for (name, figure) in other.figures {
            self.count(&name, figure);
        }
        self.found.extend(other.found);
    }
}

/// Returns whether the run of this seed uses the real broker.
pub fn is_outside(seed: u64) -> bool {
    seed % OUTSIDE_EVERY == OUTSIDE_EVERY - 1
}

/// Runs the campaign; calls `told` with the seed after each run.
pub async fn run(options: &Options, told: impl Fn(u64, &Outcome)) -> Outcome {
    let mut all = Outcome::default();
    for seed in options.seed..options.seed + options.runs {
        all.add(one(seed).await);
        told(seed, &all);
    }
    all
}

/// Runs one seed. A failure in it is a finding, and does not end the campaign.
async fn one(seed: u64) -> Outcome {
    let ended = if is_outside(seed) {
        tokio::spawn(outside::run(seed)).await
    } else {
        tokio::task::spawn_blocking(move || inside::run(seed)).await
    };
    ended.unwrap_or_else(|error| {
        let said = error
            .try_into_panic()
            .map_or_else(|error| error.to_string(), |panic| words(&AssertUnwindSafe(panic)));
        Outcome { found: vec![format!("seed {seed}: {said}")], ..Outcome::default() }
    })
}

fn words(panic: &AssertUnwindSafe<Box<dyn std::any::Any + Send>>) -> String {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked without a word".to_owned())
}
