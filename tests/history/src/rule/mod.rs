//! The rules, a file each: what a promise of the contract means for an observer.
//!
//! Invariant: each states in its doc comment what it cannot know, and is silent about it.

mod attempts;
mod doubled;
mod fenced;
mod fifo;
mod firing;
mod gone;
mod lease;
mod lost;
mod outcome;
mod phantom;
mod receipt;
mod redelivery;
mod refusal;
mod reminder;
mod restored;
mod settled;
mod told;
mod turn;

pub(crate) use receipt::made;

use crate::index::Index;
use crate::violation::{Rule, Violation};

pub(crate) const ALL: [fn(&Index<'_>, &mut Found); 18] = [
    lost::check,
    phantom::check,
    fifo::check,
    lease::check,
    fenced::check,
    outcome::check,
    told::check,
    reminder::check,
    firing::check,
    receipt::check,
    redelivery::check,
    attempts::check,
    doubled::check,
    refusal::check,
    turn::check,
    settled::check,
    gone::check,
    restored::check,
];

#[derive(Debug, Default)]
pub(crate) struct Found(pub(crate) Vec<Violation>);

impl Found {
    pub(crate) fn add(&mut self, rule: Rule, seen: &[usize], what: String) {
        let mut seen = seen.to_vec();
        seen.sort_unstable();
        seen.dedup();
        self.0.push(Violation { rule, what, seen });
    }
}
