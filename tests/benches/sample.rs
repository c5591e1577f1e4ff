//! Measurements of one thing, and what is computed from them.
//!
//! Invariant: measurements stay in the order of measuring, so two samples can be compared round by
//! round.

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

    /// Adds the measurements of another sample.
    pub(crate) fn append(&mut self, mut other: Self) {
        self.0.append(&mut other.0);
    }

    /// Returns the measurements in the order of measuring.
    pub(crate) fn values(&self) -> &[f64] {
        &self.0
    }

    /// Returns the ratios to another sample, in the order of measuring.
    pub(crate) fn per(&self, other: &Self) -> Self {
        self.0.iter().zip(&other.0).map(|(own, other)| own / other).collect()
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
