//! Only faults use attempts. Each shown attempt is explained by earlier failures. No known failure
//! is forgotten, none exceeds the maximum, and from the third on a delivery is served alone.
//!
//! A nack, an expired lease, a turn that FAILED, and a turn without an observed end (it may have
//! VANISHED) may use an attempt. Turns and receives without an answer may have held anything.
//! Silent: about the count of opaque agents' deliveries and of mail handed over during a backup
//! that was restored, and about its minimum after a redrive.

use super::Found;
use crate::call::{Op, Reply};
use crate::index::{Call, Hand, Holder, Index, Key};
use crate::noun::{Decision, Outcome, State};
use crate::violation::Rule::Attempts;

/// From this attempt on a delivery is served alone.
const ALONE_FROM: u32 = 3;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let max = index.history.setting.attempts_max;
    for hand in &index.hands {
        let (attempt, key) =
            (hand.handed.attempt, (hand.handed.agent.as_str(), hand.handed.message));
        if attempt == 0 || attempt > max {
            found.add(
                Attempts,
                &[hand.till],
                format!("message {} was handed to {} for attempt {attempt} of {max}", key.1, key.0),
            );
        }
        if index.is_opaque(key.0) || index.is_blurred(key) {
            continue;
        }
        let (least, most) = failures(index, key, Some(&hand.holder), hand.from, hand.till);
        if attempt > 1 + most {
            let what = format!(
                "message {} was handed to {} for attempt {attempt} after at most {most} failures",
                key.1, key.0
            );
            found.add(Attempts, &[hand.till], what);
        } else if attempt < 1 + least {
            let what = format!(
                "message {} was handed to {} for attempt {attempt} after at least {least} failures",
                key.1, key.0
            );
            found.add(Attempts, &[hand.till], what);
        }
    }
    at_the_end(index, found, max);
    alone(index, found);
}

fn at_the_end(index: &Index<'_>, found: &mut Found, max: u32) {
    let end = index.history.observations.len();
    for delivery in &index.last.deliveries {
        let (key, attempt) = ((delivery.agent.as_str(), delivery.message), delivery.attempt);
        if attempt > max {
            found.add(
                Attempts,
                &[],
                format!("message {} to {} ended at attempt {attempt} of {max}", key.1, key.0),
            );
        }
        let taken_for_good = matches!(delivery.state, State::Leased | State::Held | State::Dead);
        if attempt == 0
            && (taken_for_good || (index.leases(key).next().is_some() && !redriven(index, key)))
        {
            found.add(
                Attempts,
                &[],
                format!("message {} to {} was handed out and ended at attempt 0", key.1, key.0),
            );
        }
        if index.is_opaque(key.0) || index.is_blurred(key) {
            continue;
        }
        // The failures of a dead letter are its attempts; anything else may have one more try,
        // which is not known to have failed.
        let (_, most) = failures(index, key, None, end, end);
        if attempt > most + u32::from(delivery.state != State::Dead) {
            let what = format!(
                "message {} to {} ended at attempt {attempt} after at most {most} failures",
                key.1, key.0
            );
            found.add(Attempts, &[], what);
        }
        let for_good = |call: &Call<'_>| matches!(call.op, Op::Nack { permanent: true, .. });
        let mut leases = index.leases(key);
        let given_up = leases.any(|hand| match &hand.holder {
            Holder::Consumer(token) => index.of(&index.token_calls, token).any(for_good),
            Holder::Turn(_) => false,
        });
        if delivery.state == State::Dead && attempt < max && !given_up {
            let what = format!(
                "message {} to {} is a dead letter after {attempt} failures of {max}",
                key.1, key.0
            );
            found.add(Attempts, &[], what);
        }
    }
}

/// Returns whether the operator redrove the delivery.
fn redriven(index: &Index<'_>, key: Key<'_>) -> bool {
    index
        .of(&index.decisions, &key)
        .any(|call| matches!(call.op, Op::Decide { decision: Decision::Redrive, .. }))
}

/// Returns the minimum number of a delivery's failures by `from`, and the maximum by `till`.
/// Failures of a lease come after it, so `own` is left out.
pub(super) fn failures(
    index: &Index<'_>,
    key: Key<'_>,
    own: Option<&Holder<'_>>,
    from: usize,
    till: usize,
) -> (u32, u32) {
    let redriven = redriven(index, key);
    let (mut least, mut most) = (0, 0);
    for hand in index.leases(key).filter(|hand| hand.from < till && own != Some(&hand.holder)) {
        let (known, possible) = match &hand.holder {
            Holder::Consumer(token) => {
                let (known, possible) = nacked(index, token, from, till);
                (known, possible || may_have_run_out(index, hand, till))
            }
            Holder::Turn(turn) => {
                let (known, possible) = failed(index, *turn, from, till);
                // This observer cannot know whether mail received in the turn reached the model.
                (known && hand.wakes, possible)
            }
        };
        least += u32::from(known);
        most += u32::from(possible);
    }
    // A call without an answer may have held the delivery, and vanished or failed with it.
    let unseen = index.calls_of(key.0).filter(|call| {
        let takes = matches!(call.op, Op::Receive { .. } | Op::BeginTurn { mail: true, .. });
        takes && call.from < till && call.ok().is_none() && call.refused().is_none()
    });
    most += u32::try_from(unseen.count()).unwrap_or(u32::MAX);
    (if redriven { 0 } else { least }, most)
}

/// Returns whether a consumer's lease may have expired: no known ack, and held for its length.
fn may_have_run_out(index: &Index<'_>, hand: &Hand<'_>, till: usize) -> bool {
    let Op::Receive { lease_ms, .. } = index.calls[hand.call].op else { return false };
    if let Holder::Consumer(token) = &hand.holder {
        let calls = || index.of(&index.token_calls, token);
        // The broker refuses an ack of an expired lease.
        if calls().any(|call| matches!(call.op, Op::Ack { .. }) && call.ok().is_some()) {
            return false;
        }
        // An extension may also shorten the lease, as the end of its stream does.
        if calls().any(|call| matches!(call.op, Op::Extend { .. })) {
            return true;
        }
    }
    let observations = &index.history.observations;
    let now = observations.get(till).or(observations.last()).map_or(0, |last| last.at);
    now + index.history.setting.tolerance_ms >= observations[hand.from].at + lease_ms
}

fn nacked(index: &Index<'_>, token: &&str, from: usize, till: usize) -> (bool, bool) {
    let nacks =
        || index.of(&index.token_calls, token).filter(|call| matches!(call.op, Op::Nack { .. }));
    (
        nacks().any(|call| call.ok().is_some_and(|(done, _)| done < from)),
        nacks().any(|call| call.from < till),
    )
}

fn failed(index: &Index<'_>, turn: u64, from: usize, till: usize) -> (bool, bool) {
    let ends =
        || index.of(&index.turn_calls, &turn).filter(|call| matches!(call.op, Op::EndTurn { .. }));
    let with = |call: &Call<'_>, failed: bool| matches!(call.op, Op::EndTurn { outcome, .. } if (*outcome == Outcome::Failed) == failed);
    let known =
        ends().any(|call| with(call, true) && call.ok().is_some_and(|(done, _)| done < from));
    let begun_before = index
        .by_turn
        .get(&turn)
        .is_some_and(|hands| hands.iter().any(|place| index.hands[*place].from < till));
    // The turn is known to have another outcome, so it did not fail.
    let spared = ends().any(|call| with(call, false) && call.ok().is_some());
    (known, begun_before && !spared)
}

/// Checks that a delivery that failed twice uses up no attempts of other deliveries.
fn alone(index: &Index<'_>, found: &mut Found) {
    for call in &index.calls {
        let Some((till, Reply::Leased(all))) = call.ok() else { continue };
        let Some(handed) = all.iter().find(|handed| handed.attempt >= ALONE_FROM) else { continue };
        let in_a_turn = matches!(call.op, Op::Receive { turn, .. } if *turn != 0);
        if all.len() > 1 || in_a_turn {
            let what = format!(
                "message {} at attempt {} was not served alone to {}",
                handed.message, handed.attempt, handed.agent
            );
            found.add(Attempts, &[till], what);
        }
    }
    for hands in index.by_turn.values() {
        let hands: Vec<&Hand<'_>> = hands.iter().map(|place| &index.hands[*place]).collect();
        let Some(waking) =
            hands.iter().find(|hand| hand.wakes && hand.handed.attempt >= ALONE_FROM)
        else {
            continue;
        };
        // A delivery that the operator decides about is no longer the turn's.
        if index
            .of(&index.decisions, &(waking.handed.agent.as_str(), waking.handed.message))
            .next()
            .is_some()
        {
            continue;
        }
        if let Some(other) = hands.iter().find(|hand| !hand.wakes) {
            let what = format!(
                "message {} at attempt {} was not alone in its turn: {} came with it",
                waking.handed.message, waking.handed.attempt, other.handed.message
            );
            found.add(Attempts, &[waking.till, other.till], what);
        }
    }
}
