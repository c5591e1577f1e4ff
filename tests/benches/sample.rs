//! Figures: medians with their spread, and the table that is printed.

use std::fmt;
use std::time::Duration;

/// Some measurements of one thing.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sample(Vec<f64>);

impl Sample {
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// Returns the value below which this part of the measurements falls.
    pub(crate) fn quantile(&self, part: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let index = (part * last as f64).round() as usize;
        sorted.get(index).copied().unwrap_or(f64::NAN)
    }

    /// The differences to another sample, in the order of measuring.
    pub(crate) fn minus(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(own, other)| own - other).collect()
    }

    /// By how many percent this is more than another sample, in the order of measuring.
    pub(crate) fn over(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(own, other)| 100.0 * (own / other - 1.0)).collect()
    }

    pub(crate) fn median(&self) -> f64 {
        self.quantile(0.5)
    }
}

impl FromIterator<f64> for Sample {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

pub(crate) fn micros(span: Duration) -> f64 {
    span.as_secs_f64() * 1e6
}

#[derive(Debug)]
struct Line {
    workload: &'static str,
    what: String,
    unit: &'static str,
    sample: Sample,
    bound: Option<&'static str>,
}

/// Everything that was measured.
#[derive(Debug, Default)]
pub(crate) struct Report {
    lines: Vec<Line>,
}

impl Report {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a figure; `bound` says what it should be.
    pub(crate) fn add(
        &mut self,
        workload: &'static str,
        what: &str,
        unit: &'static str,
        sample: Sample,
        bound: Option<&'static str>,
    ) {
        self.lines.push(Line { workload, what: what.to_owned(), unit, sample, bound });
    }

    /// Adds the median and the p95 of a time in milliseconds; `bound` is for the p95.
    pub(crate) fn add_quantiles(
        &mut self,
        workload: &'static str,
        what: &str,
        sample: Sample,
        bound: &'static str,
    ) {
        let p95 = [sample.quantile(0.95)].into_iter().collect();
        self.add(workload, &format!("{what}: p50"), "ms", sample, None);
        self.add(workload, &format!("{what}: p95"), "ms", p95, Some(bound));
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<4} {:<58} {:>10} {:>22} {:<8} BOUND",
            "", "WHAT", "MEDIAN", "(MIN .. MAX)", "UNIT"
        )?;
        for Line { workload, what, unit, sample, bound } in &self.lines {
            let spread = format!("({:.2} .. {:.2})", sample.quantile(0.0), sample.quantile(1.0));
            let bound = bound.unwrap_or("");
            writeln!(
                f,
                "{workload:<4} {what:<58} {:>10.2} {spread:>22} {unit:<8} {bound}",
                sample.median()
            )?;
        }
        Ok(())
    }
}
