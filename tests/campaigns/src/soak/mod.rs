//! The soak: a hive of many agents with mixed traffic at a fixed rate for a long time, planned
//! restarts, and temporary agents. Its last third is compared with its first: memory, open files,
//! processes, size on disk and delays must be flat.
//!
//! What it is not: a search for what breaks at a kill, which is `torture`, nor a bench. Invariant:
//! the traffic depends on the seed; its figures are judged by ratios within the run; and every
//! accepted message is accounted for at the end.

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

#[derive(Clone, Debug)]
pub struct Options {
    pub span: Duration,
    /// Agents with a harness and a scripted claude.
    pub workers: usize,
    /// Agents played by the soak itself: delays are measured on their mail.
    pub players: usize,
    /// Deeds per second.
    pub rate: u32,
    /// The interval between samples of the host.
    pub sample_every: Duration,
    /// The interval between restarts of the broker. Each restart is a night, after which rows older
    /// than `day` are past their retention.
    pub restart_every: Duration,
    /// The time that counts as a day for retention.
    pub day: Duration,
    /// The interval between restarts of a harness, and between arrivals or departures of an agent.
    pub change_every: Duration,
    pub seed: u64,
    /// Whether delays are judged; a short run on a busy machine has too few of them.
    pub judge_delays: bool,
}

#[derive(Clone, Debug)]
pub struct Outcome {
    pub deeds: u64,
    pub figures: BTreeMap<String, u64>,
    pub samples: Vec<Sample>,
    /// The figures of the last third compared with the first.
    pub judged: Vec<Judged>,
    /// The problems found, a sentence each.
    pub violations: Vec<String>,
}

/// Runs a soak; `tell` is called with each sample.
pub async fn run(options: &Options, mut tell: impl FnMut(&Sample)) -> Outcome {
    let mut cast = Cast::assemble(options).await;
    let mut traffic = Traffic::new(options.seed, &cast).await;
    let start = Instant::now();
    let mut deed = interval(Duration::from_secs(1) / options.rate.max(1));
    // A slow deed must not cause a burst after it.
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
