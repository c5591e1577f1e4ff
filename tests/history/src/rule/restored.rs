//! A restore ends what was running, and uses no id again: a lease or a session from before it
//! settles and begins nothing, and the id of something that it took back belongs to nothing else.
//!
//! Silent: about a settlement first requested before the restore, whose answer may be repeated.

use super::Found;
use super::receipt::made;
use crate::call::{Op, Reply};
use crate::event::Mark;
use crate::index::{Call, Index};
use crate::violation::Rule::Restored;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    ids(index, found);
    let restores = index.marks.iter().filter(|(_, mark)| matches!(mark, Mark::Restored { .. }));
    for (restored, _) in restores {
        tokens(index, found, *restored);
        sessions(index, found, *restored);
    }
}

/// Checks that no id of something lost is there, or is given out again.
fn ids(index: &Index<'_>, found: &mut Found) {
    let last = index.last;
    let there = (last.messages.iter().map(|known| known.id))
        .chain(last.questions.iter().map(|known| known.id))
        .chain(last.reminders.iter().map(|known| known.id))
        .chain(last.turns.iter().map(|known| known.id));
    for id in there {
        if let Some(at) = index.gone.ids.get(&id) {
            let what =
                format!("id {id} was given out after a backup, and is there after its restore");
            found.add(Restored, &[*at], what);
        }
    }
    for call in &index.calls {
        if let Some((till, id)) = call.ok().and_then(|(till, reply)| Some((till, made(reply)?)))
            && let Some(at) = index.gone.ids.get(&id).filter(|at| **at < call.request_from)
        {
            let what = format!("id {id} of something that a restore took back was given out again");
            found.add(Restored, &[*at, till], what);
        }
    }
}

/// Checks that no lease from before a restore is used after it.
fn tokens(index: &Index<'_>, found: &mut Found, restored: usize) {
    for (token, places) in &index.token_calls {
        let Some(hand) = index.by_token.get(token).map(|place| &index.hands[*place]) else {
            continue;
        };
        if hand.till > restored {
            continue;
        }
        let calls: Vec<&Call<'_>> = places.iter().map(|place| &index.calls[*place]).collect();
        for call in &calls {
            let same = |other: &&&Call<'_>| {
                std::mem::discriminant(other.op) == std::mem::discriminant(call.op)
            };
            let first = calls.iter().filter(same).map(|other| other.from).min();
            if let Some((till, _)) = call.ok()
                && first.is_some_and(|first| first > restored)
            {
                let what = format!(
                    "{} of message {} by {token}, a lease from before a restore, was not refused",
                    call.op.rpc(),
                    hand.handed.message
                );
                found.add(Restored, &[hand.till, restored, till], what);
            }
        }
    }
}

/// Checks that no session from before a restore works after it.
fn sessions(index: &Index<'_>, found: &mut Found, restored: usize) {
    let mut before = std::collections::HashMap::new();
    for call in &index.calls {
        if let Some((till, Reply::Attached { session, .. })) = call.ok()
            && till < restored
        {
            before.insert(session.as_str(), till);
        }
    }
    for call in index.calls.iter().filter(|call| call.from > restored) {
        let (Op::BeginTurn { session, .. } | Op::EndTurn { session, .. }) = call.op else {
            continue;
        };
        if let (Some(attached), Some((till, _))) = (before.get(session.as_str()), call.ok()) {
            let what = format!(
                "{} of {} in a session from before a restore was not refused",
                call.op.rpc(),
                call.caller
            );
            found.add(Restored, &[*attached, restored, till], what);
        }
    }
}
