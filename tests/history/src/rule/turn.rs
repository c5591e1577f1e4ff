//! The end of a turn settles by the table: an outcome has only the effects it may have, and if all
//! of the turn was observed, the numbers are right.
//!
//! Silent about the numbers: if a receive of the turn is not known to be over before its end, or
//! the operator decided about its mail.

use super::Found;
use crate::call::{Counts, Op, Reply};
use crate::index::{Call, Hand, Index};
use crate::noun::Outcome;
use crate::violation::Rule::TurnTable;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    for call in &index.calls {
        let (Op::EndTurn { turn, outcome, returned, .. }, Some((till, Reply::TurnEnded(counts)))) =
            (call.op, call.ok())
        else {
            continue;
        };
        let told = |what: &str| format!("turn {turn} ended {outcome:?} with {counts:?}: {what}");
        if let Some(what) = impossible(*outcome, *counts) {
            found.add(TurnTable, &[call.from, till], told(what));
            continue;
        }
        let Some(hands) = whole(index, *turn, call) else { continue };
        let total = u32::try_from(hands.len()).unwrap_or(u32::MAX);
        let seen: Vec<usize> =
            hands.iter().map(|hand| hand.till).chain([call.from, till]).collect();
        if counts.total() != total {
            found.add(TurnTable, &seen, told(&format!("it held {total}")));
            continue;
        }
        let reached =
            hands.iter().filter(|hand| hand.wakes || reached(index, hand, returned)).count();
        if *outcome == Outcome::Ok && counts.acked as usize != reached {
            found.add(TurnTable, &seen, told(&format!("{reached} of it reached the model")));
        }
    }
}

fn impossible(outcome: Outcome, counts: Counts) -> Option<&'static str> {
    let Counts { acked, returned, dead, held } = counts;
    match outcome {
        Outcome::Ok => (dead + held > 0).then_some("it makes no dead letter and holds nothing"),
        Outcome::Failed => (acked + held > 0).then_some("it acks and holds nothing"),
        Outcome::Cancelled => (acked + returned + dead > 0).then_some("it holds everything"),
        Outcome::RateLimited | Outcome::AuthFailed | Outcome::Unavailable | Outcome::Drained => {
            (acked + dead + held > 0).then_some("everything goes back")
        }
        Outcome::Vanished | Outcome::Fenced => Some("only the broker says so"),
    }
}

fn reached(index: &Index<'_>, hand: &Hand<'_>, returned: &[String]) -> bool {
    matches!(index.calls[hand.call].op, Op::Receive { tool_use, .. } if !tool_use.is_empty() && returned.contains(tool_use))
}

/// Returns all that a turn held when this call ended it, or `None` if that is unknown.
fn whole<'s, 'a>(index: &'s Index<'a>, turn: u64, end: &Call<'_>) -> Option<Vec<&'s Hand<'a>>> {
    let hands: Vec<&Hand<'_>> =
        index.by_turn.get(&turn).into_iter().flatten().map(|place| &index.hands[*place]).collect();
    let begun = index.begun.contains(&turn);
    let over = |call: &Call<'_>| {
        call.answer.is_some_and(|(till, _)| till < end.request_from)
            && (call.ok().is_some() || call.refused().is_some())
    };
    let receives_over = index
        .of(&index.turn_calls, &turn)
        .filter(|call| matches!(call.op, Op::Receive { .. }))
        .all(over);
    let ends_otherwise = index
        .of(&index.turn_calls, &turn)
        .any(|call| matches!(call.op, Op::EndTurn { .. }) && call.op != end.op);
    let decided = hands.iter().any(|hand| {
        index.decisions.contains_key(&(hand.handed.agent.as_str(), hand.handed.message))
    });
    (begun && receives_over && !ends_otherwise && !decided).then_some(hands)
}
