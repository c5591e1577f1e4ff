//! `disks`: lets the files fail under the broker, and looks whether what it answered is there
//! afterwards.
//!
//! Most runs are inside this process: the engine on a [`hive_disk::Disk`], worked by hand, with
//! faults, kills and power cuts at any point. Every [`OUTSIDE_EVERY`]th is the real `hived` with
//! strace between it and the kernel. A run follows from its seed. Invariant: each run ends with a
//! disk that works, a restart, an integrity check, and the question whether every receipt holds.

mod books;
mod inside;
mod means;
mod outside;

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;

/// Of how many runs one is outside.
pub const OUTSIDE_EVERY: u64 = 20;

/// What to do.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many runs.
    pub runs: u64,
    /// The seed of the first; the others count up from it.
    pub seed: u64,
}

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How often what was done, by name.
    pub figures: BTreeMap<String, u64>,
    /// What was found, with the seed that shows it again.
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

/// Whether the run of this seed is with the real broker.
#[must_use]
pub fn is_outside(seed: u64) -> bool {
    seed % OUTSIDE_EVERY == OUTSIDE_EVERY - 1
}

/// Does the runs; `told` hears after each of its seed.
pub async fn run(options: &Options, told: impl Fn(u64, &Outcome)) -> Outcome {
    let mut all = Outcome::default();
    for seed in options.seed..options.seed + options.runs {
        all.add(one(seed).await);
        told(seed, &all);
    }
    all
}

/// The run of one seed. What fails in it is found, and ends nothing else.
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

/// What a panic said.
fn words(panic: &AssertUnwindSafe<Box<dyn std::any::Any + Send>>) -> String {
    let text = panic
        .downcast_ref::<String>()
        .cloned()
        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    text.unwrap_or_else(|| "it panicked without a word".to_owned())
}
