//! What is counted while the broker runs: its commits, and the ends of turns and leases.
//!
//! Only the writer counts, once for each commit, and only if metrics are offered; a scrape reads
//! the numbers at the same time. Invariant: a count never goes down, and has what is on disk alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hive_core::delivery::RedeliveryCause;
use hive_core::turn::{Outcome, Usage};

/// Upper bounds of the times of a disk, in nanoseconds: from 100 microseconds to 5 seconds.
const NANOS: &[u64] = &[
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    1_000_000_000,
    5_000_000_000,
];
/// Upper bounds of the number of items in a batch, which has 512 at most.
const ITEMS: &[u64] = &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

/// A thing that is counted when its commit is on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count {
    /// A delivery became ready again.
    Redelivery(RedeliveryCause),
    /// A delivery became a dead letter.
    DeadLetter,
    /// A turn ended.
    Turn(Outcome, Usage),
}

/// How often values were observed, by size.
#[derive(Debug)]
pub struct Histogram {
    bounds: &'static [u64],
    /// For each bound, the values that are above the one before it; then the values above all.
    counts: Vec<AtomicU64>,
    sum: AtomicU64,
}

impl Histogram {
    fn new(bounds: &'static [u64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, sum: AtomicU64::new(0) }
    }

    fn observe(&self, value: u64) {
        let at = self.bounds.partition_point(|bound| *bound < value);
        if let Some(count) = self.counts.get(at) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    fn observe_time(&self, time: Duration) {
        self.observe(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Returns each bound with the number of values up to it.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        let up_to = self.counts.iter().scan(0, |sum, count| {
            *sum += count.load(Ordering::Relaxed);
            Some(*sum)
        });
        self.bounds.iter().copied().zip(up_to)
    }

    /// Returns the number of values above the last bound.
    #[must_use]
    pub fn above(&self) -> u64 {
        self.counts.last().map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns the sum of all values.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.sum.load(Ordering::Relaxed)
    }
}

/// A commit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Commit {
    /// The time from the begin of its batch until it was on disk.
    pub(crate) took: Duration,
    /// The part of that in which the disk synced it.
    pub(crate) sync: Duration,
    /// The queued items of its batch.
    pub(crate) items: usize,
}

/// The counts of a broker.
#[derive(Debug)]
pub struct Measures {
    /// Times of commits, in nanoseconds.
    pub commit: Histogram,
    /// Times of syncs, in nanoseconds.
    pub sync: Histogram,
    /// Items of batches.
    pub items: Histogram,
    /// Calls that wait for mail at present.
    waiting: AtomicU64,
    redeliveries: Vec<AtomicU64>,
    dead_letters: AtomicU64,
    turns: Vec<AtomicU64>,
    input_tokens: AtomicU64,
    cache_read_tokens: AtomicU64,
    cache_creation_tokens: AtomicU64,
    output_tokens: AtomicU64,
    cost_micro_usd: AtomicU64,
    inferences: AtomicU64,
    tool_calls: AtomicU64,
}

impl Default for Measures {
    fn default() -> Self {
        let zeros = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let zero = || AtomicU64::new(0);
        Self {
            commit: Histogram::new(NANOS),
            sync: Histogram::new(NANOS),
            items: Histogram::new(ITEMS),
            waiting: zero(),
            redeliveries: zeros(RedeliveryCause::ALL.len()),
            dead_letters: zero(),
            turns: zeros(Outcome::ALL.len()),
            input_tokens: zero(),
            cache_read_tokens: zero(),
            cache_creation_tokens: zero(),
            output_tokens: zero(),
            cost_micro_usd: zero(),
            inferences: zero(),
            tool_calls: zero(),
        }
    }
}

/// The most that one turn adds to a number. Harnesses report these, and one that lies must not make
/// the sum of all useless.
const TURN_MAX: u64 = 1_000_000_000_000;

/// Adds to a number, which stays at its maximum: it never begins again at 0.
fn add(number: &AtomicU64, more: u64) {
    // Only the writer adds.
    number.store(number.load(Ordering::Relaxed).saturating_add(more), Ordering::Relaxed);
}

/// Adds one at the place that `value` has in `all`.
fn add_at<T: PartialEq>(numbers: &[AtomicU64], all: &[T], value: &T) {
    let at = all.iter().position(|one| one == value);
    if let Some(number) = at.and_then(|at| numbers.get(at)) {
        add(number, 1);
    }
}

fn pairs<T: Copy>(all: &'static [T], numbers: &[AtomicU64]) -> impl Iterator<Item = (T, u64)> {
    all.iter().copied().zip(numbers.iter().map(|number| number.load(Ordering::Relaxed)))
}

impl Measures {
    /// Counts a commit.
    pub(crate) fn committed(&self, commit: Commit) {
        let Commit { took, sync, items } = commit;
        self.commit.observe_time(took);
        self.sync.observe_time(sync);
        self.items.observe(u64::try_from(items).unwrap_or(u64::MAX));
    }

    /// Counts what a commit has brought about.
    pub(crate) fn count(&self, count: &Count) {
        match count {
            Count::Redelivery(cause) => {
                add_at(&self.redeliveries, RedeliveryCause::ALL, cause);
            }
            Count::DeadLetter => add(&self.dead_letters, 1),
            Count::Turn(outcome, usage) => {
                add_at(&self.turns, Outcome::ALL, outcome);
                let Usage {
                    input_tokens,
                    cache_read_tokens,
                    cache_creation_tokens,
                    output_tokens,
                    cost_micro_usd,
                    inference_count,
                    tool_call_count,
                } = *usage;
                add(&self.input_tokens, input_tokens.min(TURN_MAX));
                add(&self.cache_read_tokens, cache_read_tokens.min(TURN_MAX));
                add(&self.cache_creation_tokens, cache_creation_tokens.min(TURN_MAX));
                add(&self.output_tokens, output_tokens.min(TURN_MAX));
                add(&self.cost_micro_usd, cost_micro_usd.min(TURN_MAX));
                add(&self.inferences, u64::from(inference_count));
                add(&self.tool_calls, u64::from(tool_call_count));
            }
        }
    }

    /// Notes how many calls wait for mail.
    pub(crate) fn set_waiting(&self, calls: usize) {
        self.waiting.store(u64::try_from(calls).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Returns how many calls wait for mail.
    #[must_use]
    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Returns the redeliveries by cause.
    pub fn redeliveries(&self) -> impl Iterator<Item = (RedeliveryCause, u64)> {
        pairs(RedeliveryCause::ALL, &self.redeliveries)
    }

    /// Returns the deliveries that became dead letters.
    #[must_use]
    pub fn dead_letters(&self) -> u64 {
        self.dead_letters.load(Ordering::Relaxed)
    }

    /// Returns the turns by outcome.
    pub fn turns(&self) -> impl Iterator<Item = (Outcome, u64)> {
        pairs(Outcome::ALL, &self.turns)
    }

    /// Returns the tokens of turns by type.
    #[must_use]
    pub fn tokens(&self) -> [(&'static str, u64); 4] {
        [
            ("input", &self.input_tokens),
            ("cache_read", &self.cache_read_tokens),
            ("cache_creation", &self.cache_creation_tokens),
            ("output", &self.output_tokens),
        ]
        .map(|(name, tokens)| (name, tokens.load(Ordering::Relaxed)))
    }

    /// Returns the cost of turns, in millionths of a US dollar.
    #[must_use]
    pub fn cost_micro_usd(&self) -> u64 {
        self.cost_micro_usd.load(Ordering::Relaxed)
    }

    /// Returns the inferences of turns, and their tool calls.
    #[must_use]
    pub fn calls(&self) -> (u64, u64) {
        (self.inferences.load(Ordering::Relaxed), self.tool_calls.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_counted_at_the_first_bound_that_it_does_not_exceed() {
        let histogram = Histogram::new(&[1, 4]);
        [0, 1, 2, 4, 5].iter().for_each(|value| histogram.observe(*value));
        let buckets: Vec<_> = histogram.buckets().collect();
        assert_eq!((buckets, histogram.above(), histogram.sum()), (vec![(1, 2), (4, 4)], 1, 12));
    }

    #[test]
    fn each_outcome_and_cause_has_a_number_of_its_own() {
        let measures = Measures::default();
        for (more, outcome) in Outcome::ALL.iter().enumerate() {
            (0..=more).for_each(|_| measures.count(&Count::Turn(*outcome, Usage::default())));
        }
        for (more, cause) in RedeliveryCause::ALL.iter().enumerate() {
            (0..=more).for_each(|_| measures.count(&Count::Redelivery(*cause)));
        }
        let turns: Vec<_> = measures.turns().map(|(_, count)| count).collect();
        let causes: Vec<_> = measures.redeliveries().map(|(_, count)| count).collect();
        assert_eq!((turns, causes), ((1..=9).collect::<Vec<_>>(), (1..=12).collect::<Vec<_>>()));
    }

    #[test]
    fn a_turn_adds_a_bounded_number_and_a_sum_stays_at_its_maximum() {
        let measures = Measures::default();
        let usage = Usage { cost_micro_usd: u64::MAX, input_tokens: 7, ..Usage::default() };
        for _ in 0..2 {
            measures.count(&Count::Turn(Outcome::Ok, usage));
        }
        assert_eq!(measures.cost_micro_usd(), 2 * TURN_MAX);
        assert_eq!(measures.tokens()[0], ("input", 14));
        let sum = AtomicU64::new(u64::MAX - 1);
        (0..2).for_each(|_| add(&sum, TURN_MAX));
        assert_eq!(sum.into_inner(), u64::MAX);
    }
}
