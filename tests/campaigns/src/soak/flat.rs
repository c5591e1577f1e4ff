//! Whether a run was flat: the medians of its last third compared with those of its first, after
//! the warm-up.
//!
//! Invariant: every limit is a ratio plus a small constant, because a ratio means nothing for small
//! values; both are in one table.

use std::fmt;

use super::sample::Sample;

/// The fraction of a run that is its warm-up.
const WARM_UP: f64 = 0.2;
/// Minimum number of samples in a third.
const THIRD_MIN: usize = 2;

type Figure = fn(&Sample) -> f64;

/// The limits: name, figure, maximum ratio to its first value, constant added to that, and whether
/// it is a delay.
const BOUNDS: [(&str, Figure, f64, f64, bool); 11] = [
    ("broker memory, KiB", |sample| sample.broker_kib, 1.2, 4096.0, false),
    ("harness memory, KiB", |sample| sample.harness_kib, 1.1, 512.0, false),
    ("broker files", |sample| sample.broker_files, 1.0, 12.0, false),
    ("harness files", |sample| sample.harness_files, 1.0, 1.0, false),
    // Claudes start and end with the turns.
    ("processes", |sample| sample.processes, 1.1, 12.0, false),
    ("database, KiB", |sample| sample.database_kib, 1.2, 1024.0, false),
    ("database log, KiB", |sample| sample.wal_kib, 1.2, 4096.0, false),
    ("search index, KiB", |sample| sample.search_kib, 1.3, 1024.0, false),
    ("turn events, KiB", |sample| sample.turn_events_kib, 1.2, 6144.0, false),
    ("send p99, ms", |sample| sample.send_ms, 2.0, 5.0, true),
    ("wake p99, ms", |sample| sample.wake_ms, 2.0, 5.0, true),
];

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judged {
    pub name: &'static str,
    /// The median in the first third.
    pub first: f64,
    /// The median in the last third.
    pub last: f64,
    /// Maximum allowed value of `last`.
    pub max: f64,
    /// Whether the limit counts in this run.
    pub counts: bool,
}

impl Judged {
    /// Returns the problem with this figure, if any.
    pub fn complaint(&self) -> Option<String> {
        let grew = self.counts && self.last > self.max;
        grew.then(|| {
            format!(
                "{} is not flat: {:.1} at first, {:.1} at last, {:.1} may be",
                self.name, self.first, self.last, self.max
            )
        })
    }
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match (self.counts, self.last > self.max) {
            (false, _) => "not judged",
            (true, false) => "flat",
            (true, true) => "NOT FLAT",
        };
        write!(
            f,
            "{:<22}{:>12.1}{:>12.1}{:>12.1}  {verdict}",
            self.name, self.first, self.last, self.max
        )
    }
}

/// Compares the thirds; a run that is too short shows nothing, and the result says so.
pub fn judge(samples: &[Sample], delays: bool) -> Vec<Judged> {
    let warm = &samples[(samples.len() as f64 * WARM_UP) as usize..];
    let third = warm.len() / 3;
    let (first, last) = (&warm[..third], &warm[warm.len() - third..]);
    BOUNDS
        .iter()
        .map(|(name, figure, ratio, sum, is_delay)| {
            let (first, last) = (median(first, *figure), median(last, *figure));
            Judged {
                name,
                first,
                last,
                max: first * ratio + sum,
                counts: third >= THIRD_MIN && (delays || !is_delay),
            }
        })
        .collect()
}

fn median(samples: &[Sample], figure: Figure) -> f64 {
    let mut figures: Vec<f64> = samples.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(grows: impl Fn(usize) -> Sample) -> Vec<String> {
        let samples: Vec<Sample> = (0..60).map(grows).collect();
        judge(&samples, true).iter().filter_map(Judged::complaint).collect()
    }

    #[test]
    fn one_rise_is_flat_and_a_steady_rise_is_not() {
        let warm = |place: usize| Sample {
            broker_kib: 20_000.0 + place.min(9) as f64 * 5000.0,
            ..Sample::default()
        };
        assert_eq!(run(warm), Vec::<String>::new());
        let leak = |place: usize| Sample {
            broker_kib: 20_000.0 + place as f64 * 500.0,
            ..Sample::default()
        };
        assert!(
            matches!(&run(leak)[..], [one] if one.contains("broker memory")),
            "{:?}",
            run(leak)
        );
        let files =
            |place: usize| Sample { broker_files: 300.0 + place as f64, ..Sample::default() };
        assert!(
            matches!(&run(files)[..], [one] if one.contains("broker files")),
            "{:?}",
            run(files)
        );
        let slower = |place: usize| Sample { wake_ms: 5.0 + place as f64, ..Sample::default() };
        assert!(matches!(&run(slower)[..], [one] if one.contains("wake p99")), "{:?}", run(slower));
        // A single bad minute is not a trend.
        let bump = |place: usize| Sample {
            wake_ms: if place == 55 { 900.0 } else { 5.0 },
            ..Sample::default()
        };
        assert_eq!(run(bump), Vec::<String>::new());
    }

    #[test]
    fn a_run_of_a_few_samples_is_not_judged() {
        let samples: Vec<Sample> = (0..5)
            .map(|place| Sample { broker_files: place as f64 * 100.0, ..Sample::default() })
            .collect();
        assert!(judge(&samples, true).iter().all(|judged| judged.complaint().is_none()));
    }
}
