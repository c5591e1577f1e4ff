//! Where a send is aimed at: a moment of the leave, and a time after it.
//!
//! Invariant: an aim depends on the dice alone.

use std::time::Duration;

use super::REST;
use crate::torture::dice::Dice;

/// How long after the rest a harness may ask to leave.
const ASKING: Duration = Duration::from_millis(15);
/// How long the process of a harness that has left may run.
const LEAVING: Duration = Duration::from_millis(8);
/// Longest time after the end of the process.
const LATE: Duration = Duration::from_millis(25);

/// The moment from which the time counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// The turn has ended.
    Turn,
    /// The broker has decided that the harness may leave.
    Leave,
    /// The process of the harness has ended.
    Exit,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Aim {
    pub(super) from: From,
    pub(super) after: Duration,
}

impl Aim {
    pub(super) fn roll(dice: &mut Dice) -> Self {
        let mut up_to = |most: Duration| {
            let micros = u64::try_from(most.as_micros()).expect("a short time");
            Duration::from_micros(dice.below(micros))
        };
        let (resting, asking) = (up_to(REST), REST + up_to(ASKING));
        let (leaving, late) = (up_to(LEAVING), up_to(LATE));
        let (from, after) = match dice.below(6) {
            0 => (From::Turn, resting),
            1 | 2 => (From::Turn, asking),
            3 | 4 => (From::Leave, leaving),
            _ => (From::Exit, late),
        };
        Self { from, after }
    }
}
