//! First in, first out: within a lane of an inbox, what came first is first handed over first.
//!
//! Only hand-overs that say they are the first are compared: a delivery that came back may be
//! behind others (backoff, served alone, held). Ids are given in the order of acceptance, so the
//! smaller one lay there when the larger one was taken. Silent: where the two leases were asked for
//! side by side, and about the order of the lanes, because the counter of system deliveries in a
//! row is not seen.

use std::collections::BTreeMap;

use super::Found;
use crate::index::{Hand, Index};
use crate::violation::Rule::Fifo;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut lanes: BTreeMap<(&str, crate::noun::Lane), Vec<&Hand<'_>>> = BTreeMap::new();
    for hand in index.hands.iter().filter(|hand| hand.handed.cause.is_none()) {
        lanes.entry((&hand.handed.agent, hand.handed.lane)).or_default().push(hand);
    }
    for ((agent, lane), mut hands) in lanes {
        hands.sort_by_key(|hand| hand.handed.message);
        // The earliest of all that have a larger id.
        let mut earliest: Option<&Hand<'_>> = None;
        for hand in hands.iter().rev() {
            if let Some(other) = earliest
                && (other.till < hand.from || is_before_in_answer(index, other, hand))
            {
                let (first, second) = (other.handed.message, hand.handed.message);
                let what = format!(
                    "message {first} was handed to {agent} before message {second} in lane {lane:?}"
                );
                found.add(Fifo, &[other.till, hand.till], what);
            }
            if earliest.is_none_or(|other| hand.till <= other.till) {
                earliest = Some(hand);
            }
        }
    }
}

/// Whether one answer brought both, this one earlier.
fn is_before_in_answer(index: &Index<'_>, one: &Hand<'_>, other: &Hand<'_>) -> bool {
    let place = |hand: &Hand<'_>| {
        let crate::call::Reply::Leased(all) = index.calls[hand.call].ok()?.1 else { return None };
        all.iter().position(|handed| handed.message == hand.handed.message)
    };
    one.call == other.call && place(one) < place(other)
}
