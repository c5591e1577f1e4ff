//! Figures of rivals that take turns, round by round.
//!
//! Invariant: the figures of two rivals in one round are compared with each other, so a machine
//! that grows slower slows both.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::ROUNDS;
use crate::report::{Bounds, Report};
use crate::rival::Kind;
use crate::sample::Sample;

/// Returns the number of rounds: `HIVE_BENCH_ROUNDS`, or the default.
pub(crate) fn rounds() -> usize {
    number("HIVE_BENCH_ROUNDS").unwrap_or(ROUNDS)
}

/// Returns whether this is a short run, by its number of rounds.
pub(crate) fn is_quick() -> bool {
    rounds() < ROUNDS
}

/// Returns the length of a round of W2: `HIVE_BENCH_SPAN_MS`, or 3 s.
pub(crate) fn span() -> Duration {
    Duration::from_millis(number("HIVE_BENCH_SPAN_MS").unwrap_or(3000) as u64)
}

/// Returns the number in this variable of the environment, if it is set.
pub(crate) fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// One figure of each rival and round.
#[derive(Debug, Default)]
pub(crate) struct Rounds(BTreeMap<Kind, Sample>);

impl Rounds {
    pub(crate) fn push(&mut self, kind: Kind, value: f64) {
        self.0.entry(kind).or_default().push(value);
    }

    /// Returns whether a rival ran.
    pub(crate) fn has(&self, kind: Kind) -> bool {
        self.0.contains_key(&kind)
    }

    /// Returns the figures of a rival; none, if it did not run.
    pub(crate) fn of(&self, kind: Kind) -> Sample {
        self.0.get(&kind).cloned().unwrap_or_default()
    }

    /// Returns the ratio of two rivals in each round; `None` if one of them did not run.
    pub(crate) fn ratio(&self, own: Kind, other: Kind) -> Option<Sample> {
        Some(self.0.get(&own)?.per(self.0.get(&other)?))
    }

    /// Adds the figure of each rival.
    pub(crate) fn add_each(
        &self,
        report: &mut Report,
        workload: &'static str,
        what: &str,
        unit: &'static str,
    ) {
        self.add_bounded(report, workload, what, unit, (&[], None));
    }

    /// Adds the figure of each rival; those of the listed ones have bounds.
    pub(crate) fn add_bounded(
        &self,
        report: &mut Report,
        workload: &'static str,
        what: &str,
        unit: &'static str,
        (bounded, bounds): (&[Kind], Option<Bounds>),
    ) {
        for (kind, sample) in &self.0 {
            let what = format!("{what}, {}", kind.name());
            let bounds = bounds.filter(|_| bounded.contains(kind));
            report.figure(workload, &what, unit, sample.clone(), bounds);
        }
    }

    /// Adds the ratio of two rivals, if both ran.
    pub(crate) fn add_ratio(
        &self,
        report: &mut Report,
        workload: &'static str,
        what: &str,
        (own, other): (Kind, Kind),
        bounds: Option<Bounds>,
    ) {
        if let Some(ratio) = self.ratio(own, other) {
            let what = format!("{what}, {} / {}", own.name(), other.name());
            report.figure(workload, &what, "", ratio, bounds);
        }
    }
}
