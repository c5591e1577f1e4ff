//! A broken promise, reported so that it can be understood at 3 a.m.
//!
//! Invariant: a violation names its rule, its subject, and the observations that together show it.

use std::fmt;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The broken promise.
    pub rule: Rule,
    /// The violation in a sentence with the ids in it.
    pub what: String,
    /// Indices into the history's observations, in order. Empty if only the final state shows it.
    pub seen: Vec<usize>,
}

/// The promises, each a file of this crate's `rule` folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// Accepted mail exists at the end, and was delivered, died, or is held.
    NothingLost,
    /// Every message has one request that sent it.
    NoPhantom,
    /// First in, first out, within a lane.
    Fifo,
    /// At most one lease lives per delivery.
    OneLease,
    /// A caller that lost a lease settles nothing.
    Fenced,
    /// A question has one outcome, the same for every reader.
    OneOutcome,
    /// A reminder fires once, not early, and does fire.
    FiresOnce,
    /// A message of a schedule that failed is not superseded by the next one.
    Firings,
    /// A receipt is always true.
    Receipt,
    /// A redelivery is marked as one.
    Redelivery,
    /// Only faults use attempts.
    Attempts,
    /// Identical messages are not doubled.
    NotDoubled,
    /// A refusal wrote nothing.
    Refusal,
    /// The end of a turn settles by the table.
    TurnTable,
    /// A settled delivery was settled by a caller with the right to.
    Settled,
    /// A stopped agent gets no mail, and a purged one leaves none.
    Gone,
    /// Nothing from before a restore goes on, and no id is used again.
    Restored,
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
