//! The dice: the only source of choices in a simulation.
//!
//! Invariant: a result depends only on the seed and on the number of earlier requests.

use std::cell::RefCell;
use std::fmt;

use rand::{Rng as _, SeedableRng as _};
use rand_xorshift::XorShiftRng;

/// Chances, in thousandths.
pub(crate) type PerMille = u64;

/// Numbers that follow from a seed.
pub(crate) struct Dice(RefCell<XorShiftRng>);

impl fmt::Debug for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dice")
    }
}

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        // Neighbouring seeds must not begin alike.
        Self(RefCell::new(XorShiftRng::seed_from_u64(
            seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5157_1e5e_ed00_cafe,
        )))
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.borrow_mut().next_u64()
    }

    /// Lends the generator to a caller with its own way of drawing numbers.
    pub(crate) fn with<T>(&self, work: impl FnOnce(&mut XorShiftRng) -> T) -> T {
        work(&mut self.0.borrow_mut())
    }

    /// Returns a number from 0 to `bound - 1`.
    pub(crate) fn below(&self, bound: u64) -> u64 {
        (self.number() >> 11) % bound.max(1)
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn between(&self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    pub(crate) fn chance(&self, per_mille: PerMille) -> bool {
        self.below(1000) < per_mille
    }

    pub(crate) fn index(&self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    pub(crate) fn pick<'a, T>(&self, among: &'a [T]) -> Option<&'a T> {
        if among.is_empty() { None } else { among.get(self.index(among.len())) }
    }

    /// Returns one of these, with the frequency given by its weight.
    pub(crate) fn weighted<T: Copy>(&self, among: &[(u64, T)]) -> T {
        let total: u64 = among.iter().map(|(weight, _)| weight).sum();
        let mut at = self.below(total);
        for (weight, what) in among {
            if at < *weight {
                return *what;
            }
            at -= weight;
        }
        among[among.len() - 1].1
    }

    /// Returns a span in ms of many sizes: often nothing or little, sometimes up to `max`.
    pub(crate) fn span(&self, max: u64) -> u64 {
        let bound = self.weighted(&[(3, 0), (3, 20), (3, 2_000), (4, max / 8), (4, max)]);
        if bound == 0 { 0 } else { self.between(1, bound.min(max).max(1)) }
    }
}
