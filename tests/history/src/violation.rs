//! A promise that was broken, told so that it can be understood at 3 a.m.
//!
//! Invariant: a violation names its rule, what it is about, and the observations that together show
//! it.

use std::fmt;

/// A broken promise.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// Which promise.
    pub rule: Rule,
    /// What happened, in a sentence with the ids in it.
    pub what: String,
    /// Indices into the history's observations, in order. Empty where only the final state shows
    /// it.
    pub seen: Vec<usize>,
}

/// The promises, each a file of this crate's `rule` folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// What was accepted is there at the end, and was delivered, died, or is held.
    NothingLost,
    /// What is there was sent by somebody, and once.
    NoPhantom,
    /// First in, first out, within a lane.
    Fifo,
    /// At most one lease lives per delivery.
    OneLease,
    /// Who lost a lease settles nothing.
    Fenced,
    /// One outcome per question, the same for everybody.
    OneOutcome,
    /// A reminder fires once, not early, and does fire.
    FiresOnce,
    /// A receipt never lies.
    Receipt,
    /// A redelivery says so.
    Redelivery,
    /// Only faults use attempts.
    Attempts,
    /// What is identical is not doubled.
    NotDoubled,
    /// A refusal wrote nothing.
    Refusal,
    /// The end of a turn settles by the table.
    TurnTable,
    /// What is settled was settled by somebody who could.
    Settled,
    /// A stopped agent gets nothing, and a purged one leaves nothing behind.
    Gone,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.rule, self.what)?;
        if !self.seen.is_empty() {
            let seen: Vec<String> = self.seen.iter().map(|index| format!("#{index}")).collect();
            write!(f, " (observations {})", seen.join(", "))?;
        }
        Ok(())
    }
}
