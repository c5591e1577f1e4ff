//! A redelivery is marked as one: only the first lease of a delivery may claim to be the first, and
//! a cause has its trigger.
//!
//! Silent: about the causes set by opaque agents' turns, and about the causes of mail handed over
//! during a backup that was restored.

use super::Found;
use crate::call::Op;
use crate::event::{Event, Mark, Observation};
use crate::index::{Hand, Holder, Index};
use crate::noun::{Cause, Decision, Outcome};
use crate::violation::Rule::Redelivery;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    for ((agent, message), places) in &index.by_delivery {
        let hands: Vec<&Hand<'_>> = places.iter().map(|place| &index.hands[*place]).collect();
        let mut unmarked: Option<&Hand<'_>> = None;
        let mut earliest: Option<&Hand<'_>> = None;
        for hand in hands {
            if hand.handed.cause.is_none() {
                let before = unmarked.or_else(|| earliest.filter(|other| other.till < hand.from));
                if let Some(other) = before {
                    let what = format!(
                        "message {message} was handed to {agent} under {} after {}, and does not say that it is a redelivery",
                        hand.name(),
                        other.name()
                    );
                    found.add(Redelivery, &[other.till, hand.till], what);
                }
                unmarked = Some(hand);
            }
            earliest = earliest.or(Some(hand));
            occasion(index, found, hand);
        }
    }
}

/// Checks that an event explains this cause.
fn occasion(index: &Index<'_>, found: &mut Found, hand: &Hand<'_>) {
    let Some(cause) = hand.handed.cause else { return };
    let (agent, message) = (hand.handed.agent.as_str(), hand.handed.message);
    let decided = |wanted: Decision| {
        let mut decisions = index.of(&index.decisions, &(agent, message));
        decisions.any(|call| {
            call.from < hand.till
                && matches!(call.op, Op::Decide { decision, .. } if *decision == wanted)
        })
    };
    let calls =
        || index.calls_of(index.calls[hand.call].caller).filter(|call| call.from < hand.till);
    let ended = |wanted: Outcome| {
        calls().any(|call| matches!(call.op, Op::EndTurn { outcome, .. } if *outcome == wanted))
    };
    let opaque = index.is_opaque(agent) || index.is_blurred((agent, message));
    let fine = match cause {
        Cause::Released => decided(Decision::Release),
        Cause::Redriven => decided(Decision::Redrive),
        Cause::Nacked => {
            let mut leases = index.leases((agent, message));
            index.is_blurred((agent, message))
                || leases.any(|other| match &other.holder {
                    Holder::Consumer(token) => index
                        .of(&index.token_calls, token)
                        .any(|call| call.from < hand.till && matches!(call.op, Op::Nack { .. })),
                    Holder::Turn(_) => false,
                })
        }
        Cause::LeaseExpired => calls()
            .any(|call| matches!(call.op, Op::Receive { turn: 0, .. }) && call.from != hand.from),
        Cause::TurnFailed => opaque || ended(Outcome::Failed),
        Cause::RateLimited => opaque || ended(Outcome::RateLimited),
        Cause::AuthFailed => opaque || ended(Outcome::AuthFailed),
        Cause::Unavailable => opaque || ended(Outcome::Unavailable),
        // A receive without an answer may have leased it.
        Cause::NotReceived => {
            opaque
                || ended(Outcome::Ok)
                || calls().any(|call| {
                    matches!(call.op, Op::Release { .. })
                        || (matches!(call.op, Op::Receive { .. })
                            && call.ok().is_none_or(|(answered, _)| answered > hand.till))
                })
        }
        Cause::Restored => index
            .marks
            .iter()
            .any(|(at, mark)| *at < hand.till && matches!(mark, Mark::Restored { .. })),
        Cause::Drained | Cause::HarnessVanished => {
            let retired = |seen: &Observation| matches!(&seen.event, Event::Mark(Mark::Retiring { agent: who }) if who == agent);
            opaque
                || calls().any(|call| matches!(call.op, Op::BeginTurn { .. }))
                // A reboot ends a consumer's lease.
                || (cause == Cause::Drained && calls().any(|call| matches!(call.op, Op::Receive { turn: 0, .. }) && call.from != hand.from))
                || index.history.observations[..hand.till].iter().any(retired)
        }
    };
    if !fine {
        let what = format!(
            "message {message} to {agent} says that it came back as {cause:?}, and nothing did that"
        );
        found.add(Redelivery, &[hand.till], what);
    }
}
