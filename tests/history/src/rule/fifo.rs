//! First in, first out: within a lane of an inbox, first hand-overs are in order of acceptance.
//!
//! Only hand-overs that claim to be the first are compared: a requeued delivery may be behind
//! others (backoff, served alone, held). Ids are assigned in the order of acceptance, so the
//! smaller one was in the inbox when the larger one was leased. Silent: if the two leases were
//! requested concurrently, and about the order of the lanes, because the counter of consecutive
//! system deliveries is not visible.

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
        // The earliest hand-over among those with a larger id.
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

/// Returns whether one answer contained both, this one earlier.
fn is_before_in_answer(index: &Index<'_>, one: &Hand<'_>, other: &Hand<'_>) -> bool {
    let place = |hand: &Hand<'_>| {
        let crate::call::Reply::Leased(all) = index.calls[hand.call].ok()?.1 else { return None };
        all.iter().position(|handed| handed.message == hand.handed.message)
    };
    one.call == other.call && place(one) < place(other)
}
