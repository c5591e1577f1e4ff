//! A caller that has lost a lease or a session settles nothing: its calls are refused.
//!
//! A token is stale once its delivery was leased under another one, the operator settled it, or it
//! was settled with the other outcome. A session is stale once a new one was answered. Silent:
//! about settlements first requested before the operator's or the other one; they may have been
//! done then, and the answer is repeated until the delivery is leased again.

use super::Found;
use crate::call::{Op, Reply};
use crate::index::{Call, Index};
use crate::noun::Decision;
use crate::violation::Rule::Fenced;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    for token in index.token_calls.keys() {
        tokens(index, found, token);
    }
    sessions(index, found);
}

fn tokens<'a>(index: &Index<'a>, found: &mut Found, token: &&'a str) {
    let Some(hand) = index.by_token.get(*token).map(|place| &index.hands[*place]) else { return };
    let key = (hand.handed.agent.as_str(), hand.handed.message);
    let calls: Vec<&Call<'_>> = index.of(&index.token_calls, token).collect();
    let is_settlement = |call: &Call<'_>| !matches!(call.op, Op::Extend { .. });
    let first_of_kind = |call: &Call<'_>| {
        let same = |other: &&&Call<'_>| {
            std::mem::discriminant(other.op) == std::mem::discriminant(call.op)
        };
        calls.iter().filter(same).map(|other| other.from).min().unwrap_or(call.from)
    };
    for call in &calls {
        let Some((till, reply)) = call.ok() else { continue };
        // An extension is not a settlement, so its answer is not repeated.
        let since = if is_settlement(call) { first_of_kind(call) } else { call.from };
        let what = |why: String| {
            format!(
                "{} of message {} to {} by {token} was answered {reply:?}, though {why}",
                call.op.rpc(),
                key.1,
                key.0
            )
        };
        if let Some(other) = index.leases(key).find(|other| {
            other.holder != hand.holder && hand.till < other.from && other.till < call.from
        }) {
            found.add(
                Fenced,
                &[hand.till, other.till, till],
                what(format!("{} held it by then", other.name())),
            );
        }
        let settles = |decision: &Call<'_>| {
            let settles =
                matches!(decision.op, Op::Decide { decision: Decision::Ack | Decision::Drop, .. });
            decision.ok().filter(|_| settles).map(|(till, _)| till)
        };
        if let Some(settled) =
            index.of(&index.decisions, &key).filter_map(settles).find(|settled| *settled < since)
        {
            found.add(Fenced, &[settled, till], what("the operator had settled it".to_owned()));
        }
        let other_way = |other: &&&Call<'_>| {
            is_settlement(other)
                && std::mem::discriminant(other.op) != std::mem::discriminant(call.op)
        };
        let settled = calls
            .iter()
            .filter(other_way)
            .filter_map(|other| other.ok())
            .find(|(settled, _)| *settled < since);
        if let Some((settled, _)) = settled {
            found.add(
                Fenced,
                &[settled, till],
                what("it was settled otherwise by then".to_owned()),
            );
        }
    }
}

/// Returns the session that a call names.
fn session_of(op: &Op) -> Option<&str> {
    let (Op::BeginTurn { session, .. } | Op::EndTurn { session, .. }) = op else {
        return None;
    };
    Some(session)
}

fn sessions(index: &Index<'_>, found: &mut Found) {
    // New sessions of an agent: token, when first requested, when answered.
    let mut fresh: std::collections::HashMap<&str, Vec<(&str, usize, usize)>> =
        std::collections::HashMap::new();
    for call in &index.calls {
        if let Some((till, Reply::Attached { session, resumed: false, .. })) = call.ok() {
            fresh.entry(call.caller).or_default().push((session, call.from, till));
        }
    }
    for call in &index.calls {
        let (Some(session), Some((till, _))) = (session_of(call.op), call.ok()) else { continue };
        let Some(sessions) = fresh.get(call.caller) else { continue };
        let Some((_, _, mine)) = sessions.iter().find(|(token, _, _)| *token == session) else {
            continue;
        };
        if let Some((_, _, newer)) =
            sessions.iter().find(|(_, from, answered)| mine < from && *answered < call.from)
        {
            let what = format!(
                "{} of {} in a session that another had taken the place of was not refused",
                call.op.rpc(),
                call.caller
            );
            found.add(Fenced, &[*mine, *newer, till], what);
        }
    }
}
