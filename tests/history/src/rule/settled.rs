//! A delivery settled at the end was settled by a caller with the right to: by the token of a
//! lease, by the end of a turn, by the operator, or because a newer message superseded it. This
//! rule finds mail that counts as delivered and never was.
//!
//! Silent: about the inboxes of opaque agents, of the operator (whose answers to questions settle)
//! and of retired agents, and about mail handed over during a backup that was restored.

use super::Found;
use crate::call::Op;
use crate::event::Mark;
use crate::index::{Holder, Index, Key};
use crate::last::Delivery;
use crate::noun::{Decision, Origin, Outcome, State};
use crate::schedule::Firing;
use crate::violation::Rule::Settled;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    for delivery in &index.last.deliveries {
        let key = (delivery.agent.as_str(), delivery.message);
        let retired = index
            .marks
            .iter()
            .any(|(_, mark)| matches!(mark, Mark::Retiring { agent } if *agent == delivery.agent));
        if retired {
            continue;
        }
        let unseen = index.is_opaque(key.0) || key.0 == "operator" || index.is_blurred(key);
        let fine = match delivery.state {
            State::Ready | State::Leased | State::Dead => true,
            State::Acked => unseen || decided(index, key, Decision::Ack) || acked(index, key),
            State::Dropped => decided(index, key, Decision::Drop),
            State::Held => unseen || ended(index, key, |outcome| outcome == Outcome::Cancelled),
            State::Superseded => superseded(index, delivery),
        };
        if !fine {
            let what = format!(
                "message {} to {} is {:?}, and nobody who could made it so",
                key.1, key.0, delivery.state
            );
            found.add(Settled, &[], what);
        }
    }
}

fn decided(index: &Index<'_>, key: Key<'_>, wanted: Decision) -> bool {
    index
        .of(&index.decisions, &key)
        .any(|call| matches!(call.op, Op::Decide { decision, .. } if *decision == wanted))
}

fn acked(index: &Index<'_>, key: Key<'_>) -> bool {
    let by_token = index.leases(key).any(|hand| match &hand.holder {
        Holder::Consumer(token) => {
            index.of(&index.token_calls, token).any(|call| matches!(call.op, Op::Ack { .. }))
        }
        Holder::Turn(_) => false,
    });
    by_token || ended(index, key, |outcome| outcome == Outcome::Ok)
}

/// Returns whether a turn that held it, or may have, ended with such an outcome.
fn ended(index: &Index<'_>, key: Key<'_>, wanted: impl Fn(Outcome) -> bool) -> bool {
    index.calls_of(key.0).any(|call| {
        let Op::EndTurn { turn, outcome, .. } = call.op else { return false };
        let held = || {
            let seen = index.leases(key).any(|hand| hand.holder == Holder::Turn(*turn));
            let mut receives = index
                .of(&index.turn_calls, turn)
                .filter(|call| matches!(call.op, Op::Receive { .. }));
            seen || receives.any(|call| call.ok().is_none())
        };
        wanted(*outcome) && call.refused().is_none() && held()
    })
}

fn superseded(index: &Index<'_>, delivery: &Delivery) -> bool {
    let Some(message) = index.messages.get(&delivery.message) else { return true };
    match &message.origin {
        // Notices supersede one another by rules of their own.
        Origin::System(_) => true,
        Origin::External(_) => {
            let newer = |other: &&crate::last::Message| {
                other.id > message.id
                    && other.origin == message.origin
                    && other.key == message.key
                    && other.recipients == message.recipients
            };
            !message.key.is_empty() && index.last.messages.iter().any(|other| newer(&other))
        }
        // The next message of a schedule takes the place of an unread one.
        Origin::Agent(_) => {
            let of = |message: &crate::last::Message| {
                Firing::of(&message.body).map(|firing| firing.schedule)
            };
            let newer = |other: &&crate::last::Message| {
                other.id > message.id
                    && other.origin == message.origin
                    && other.recipients == message.recipients
                    && of(other) == of(message)
            };
            of(message).is_some() && index.last.messages.iter().any(|other| newer(&other))
        }
        Origin::Operator => false,
    }
}
