//! Identical messages are not doubled: a turn that runs again for the same delivery, and sends what
//! an earlier run sent, creates no new message.
//!
//! Each earlier message is reused once in each run, so only a text that a run sent once is checked.
//! Silent: if the earlier run carried other mail too, because its message may have been reused for
//! another delivery's turn; if two runs wait for their answers concurrently; and about opaque
//! agents that may repeat a text in one turn.

use std::collections::BTreeMap;

use super::Found;
use crate::call::{Op, Reply};
use crate::index::{Call, Index};
use crate::last::Turn;
use crate::violation::Rule::NotDoubled;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    observed(index, found);
    opaque(index, found);
}

/// A message as sent in a turn: recipients, whether a broadcast, the message it replies to, text.
type Said<'a> = (&'a [String], bool, u64, &'a str);

fn said<'a>(op: &'a Op) -> Option<(u64, Said<'a>)> {
    let Op::Send { to, everyone, body, reply_to, turn } = op else { return None };
    (*turn != 0).then_some((*turn, (&to[..], *everyone, *reply_to, body.as_str())))
}

fn observed(index: &Index<'_>, found: &mut Found) {
    // Turns by the delivery that started them, if they carried no other.
    let mut runs: BTreeMap<(&str, u64), Vec<(u64, usize)>> = BTreeMap::new();
    for (turn, hands) in &index.by_turn {
        let hands: Vec<_> = hands.iter().map(|place| &index.hands[*place]).collect();
        let receives =
            index.of(&index.turn_calls, turn).any(|call| matches!(call.op, Op::Receive { .. }));
        if let [hand] = hands[..]
            && hand.wakes
            && !receives
        {
            runs.entry((&hand.handed.agent, hand.handed.message))
                .or_default()
                .push((*turn, hand.from));
        }
    }
    for ((agent, message), mut turns) in runs {
        turns.sort_by_key(|(_, from)| *from);
        for (nth, (later, _)) in turns.iter().enumerate() {
            for (earlier, _) in &turns[..nth] {
                if let Some((body, seen)) = twice(index, *earlier, *later) {
                    let what = format!(
                        "{agent} sent {body:?} in turn {earlier} and again in turn {later}, both for message {message}"
                    );
                    found.add(NotDoubled, &seen, what);
                }
            }
        }
    }
}

/// Returns a text that two turns each sent as a new message.
fn twice<'a>(index: &Index<'a>, earlier: u64, later: u64) -> Option<(&'a str, [usize; 2])> {
    let sends = |turn: u64| index.of(&index.turn_calls, &turn).copied().collect::<Vec<Call<'a>>>();
    let anew = |call: &Call<'a>| match call.ok() {
        Some((till, Reply::Sent { already: false, .. })) => Some(till),
        _ => None,
    };
    let (before, after) = (sends(earlier), sends(later));
    for call in &after {
        let (Some((_, what)), Some(till)) = (said(call.op), anew(call)) else { continue };
        let same = |other: &&Call<'a>| said(other.op).is_some_and(|(_, said)| said == what);
        // If this run sent it twice, the earlier message may be reused for the other one.
        let mut requests: Vec<&str> =
            after.iter().filter(same).map(|other| other.request_id).collect();
        requests.dedup();
        let first = before
            .iter()
            .filter(same)
            .find_map(|other| anew(other).filter(|done| *done < call.request_from));
        if let (Some(first), [_]) = (first, &requests[..]) {
            return Some((what.3, [first, till]));
        }
    }
    None
}

/// Checks opaque agents that never repeat a text in one turn.
fn opaque(index: &Index<'_>, found: &mut Found) {
    let mut runs: BTreeMap<(&str, u64), Vec<&Turn>> = BTreeMap::new();
    for turn in &index.last.turns {
        let says_once = index.history.setting.says_once.contains(&turn.agent);
        if says_once && turn.message != 0 && turn.received.is_empty() {
            runs.entry((&turn.agent, turn.message)).or_default().push(turn);
        }
    }
    for ((agent, message), turns) in runs {
        let mut sent: BTreeMap<(&[String], u64, &str), u64> = BTreeMap::new();
        for turn in turns {
            for id in &turn.sent {
                let Some(known) = index.messages.get(id).filter(|known| known.turn == turn.id)
                else {
                    continue;
                };
                let said = (&known.recipients[..], known.reply_to, known.body.as_str());
                if let Some(earlier) = sent.insert(said, *id) {
                    let what = format!(
                        "{agent} sent message {earlier} and again {id}, both in runs for message {message}: {:?}",
                        known.body
                    );
                    found.add(NotDoubled, &[], what);
                }
            }
        }
    }
}
