//! The soak: a hive of many agents with mixed traffic at a fixed rate for a long time, planned
//! restarts, agents that come and go, and a comparison of its last third with its first: memory,
//! open files, processes, size on disk and delays have to be flat.
//!
//! What it is not: a search for what breaks at a kill, which is `torture`, nor a bench. Invariant:
//! the traffic is made from the seed; what comes of it is judged by ratios within the run; and
//! every message that was accepted is accounted for at the end.

mod aging;
mod cast;
pub mod flat;
mod player;
pub mod sample;
mod traffic;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tokio::time::{MissedTickBehavior, interval};

use cast::Cast;
use flat::Judged;
use sample::Sample;
use traffic::Traffic;

/// What is to be done.
#[derive(Clone, Debug)]
pub struct Options {
    /// So long the traffic lasts.
    pub span: Duration,
    /// Agents with a harness and a scripted claude.
    pub workers: usize,
    /// Agents whose part the soak plays itself: on their mail delays are measured.
    pub players: usize,
    /// Deeds a second.
    pub rate: u32,
    /// How often the host is looked at.
    pub sample_every: Duration,
    /// How often the broker is restarted; each restart is a night, after which what is older than
    /// `day` is past its retention.
    pub restart_every: Duration,
    /// What counts as a day for retention.
    pub day: Duration,
    /// How often a harness is restarted, and how often an agent comes or goes.
    pub change_every: Duration,
    /// From what the traffic is made.
    pub seed: u64,
    /// Whether delays are judged; a short run on a busy machine has too few of them.
    pub judge_delays: bool,
}

/// What came of a run.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Deeds that were done.
    pub deeds: u64,
    /// Counts, by name.
    pub figures: BTreeMap<String, u64>,
    /// What was seen.
    pub samples: Vec<Sample>,
    /// How the last third stands to the first.
    pub judged: Vec<Judged>,
    /// What is wrong, a sentence each.
    pub violations: Vec<String>,
}

/// Runs a soak; `tell` is called with each sample.
pub async fn run(options: &Options, mut tell: impl FnMut(&Sample)) -> Outcome {
    let mut cast = Cast::assemble(options).await;
    let mut traffic = Traffic::new(options.seed, &cast).await;
    let start = Instant::now();
    let mut deed = interval(Duration::from_secs(1) / options.rate.max(1));
    // A deed that took long does not bring a burst behind it.
    deed.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut next_sample, mut next_restart, mut next_change) =
        (options.sample_every, options.restart_every, options.change_every);
    let mut samples = Vec::new();
    while start.elapsed() < options.span {
        deed.tick().await;
        traffic.deed(&cast).await;
        let now = start.elapsed();
        if now >= next_sample {
            next_sample = now + options.sample_every;
            let sample = cast.look(now, &mut traffic).await;
            tell(&sample);
            samples.push(sample);
        }
        if now >= next_change {
            next_change = now + options.change_every;
            cast.change(&mut traffic).await;
        }
        if now >= next_restart {
            next_restart = now + options.restart_every;
            cast.night(options.day, &mut traffic).await;
        }
    }
    let mut violations = traffic.settle(&cast).await;
    let judged = flat::judge(&samples, options.judge_delays);
    violations.extend(judged.iter().filter_map(Judged::complaint));
    let (deeds, figures) = traffic.end().await;
    violations.extend(cast.end().await);
    Outcome { deeds, figures, samples, judged, violations }
}
