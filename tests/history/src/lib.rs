//! A checker of the delivery contract for what clients sent, received and settled.
//!
//! An observer (a simulation, a campaign) writes a [`History`] while it works, reads the [`Final`]
//! state when all is at rest, and checks both. What it is not: a model of the broker; it knows
//! promises, not how they are kept. Invariant: the check is *sound*. A history of a broker that
//! keeps the contract has no violation, in whatever order concurrent calls took effect. If the
//! observer cannot know, a rule is silent.

mod branch;
mod call;
mod event;
mod index;
mod last;
mod noun;
mod rule;
mod schedule;
mod violation;

pub use call::{Counts, Due, LASTING_MS, Op, Reply};
pub use event::{Answer, CallNo, Event, History, Mark, Observation, Setting};
pub use last::{Delivery, Final, Message, Reminder, ReminderState, Turn};
pub use noun::{
    ApprovalSeen, Cause, Decision, Handed, Kind, Lane, Origin, Outcome, QuestionSeen,
    QuestionState, State,
};
pub use schedule::{Firing, Terms};
pub use violation::{Rule, Violation};

/// Returns the part of a history that the database still knows after its restores: what they took
/// back is replaced by notes.
pub fn known(history: &History) -> History {
    branch::Branch::of(history).history
}

/// Returns every broken promise that the history and the final state show.
pub fn check(history: &History, last: &Final) -> Vec<Violation> {
    let branch::Branch { history, gone } = branch::Branch::of(history);
    let index = index::Index::new(&history, last, &gone);
    let mut found = rule::Found::default();
    for rule in rule::ALL {
        rule(&index, &mut found);
    }
    found.0.sort();
    found.0.dedup();
    found.0
}
