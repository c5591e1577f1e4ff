//! At most one lease lives per delivery: it is not leased again before the first lease has
//! certainly ended.
//!
//! A consumer's lease lives from its answer until its time is over, counted from its request, or
//! until an event ends it by the contract: it is settled, the operator decides, a harness attaches,
//! the agent is retired, the host reboots. A turn's lease lives until its end is reported, another
//! session may have begun, or its session had no answer for the grace time. Silent: if the two
//! leases were requested concurrently, and about turns of opaque agents.

use super::Found;
use crate::call::{LASTING_MS, Op, Reply};
use crate::event::Mark;
use crate::index::{Hand, Holder, Index};
use crate::violation::Rule::OneLease;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    for ((agent, message), places) in &index.by_delivery {
        for (nth, later) in places.iter().enumerate() {
            let later = &index.hands[*later];
            // Checking the nearest ones is enough: older ones ended long ago, or show with those.
            for earlier in
                places[nth.saturating_sub(4)..nth].iter().map(|place| &index.hands[*place])
            {
                if earlier.till >= later.from || !lives(index, earlier, later.till) {
                    continue;
                }
                let (one, other) = (earlier.name(), later.name());
                let what = format!(
                    "message {message} to {agent} was handed over under {other} while {one} still held it"
                );
                found.add(OneLease, &[earlier.till, later.till], what);
            }
        }
    }
}

/// Returns whether a lease certainly lived until after this observation.
fn lives(index: &Index<'_>, hand: &Hand<'_>, until: usize) -> bool {
    let agent = hand.handed.agent.as_str();
    let ended = |at: usize| at > hand.from && at < until;
    let marked = index.marks.iter().any(|(at, mark)| {
        ended(*at)
            && match mark {
                Mark::Reboot | Mark::Restored { .. } => true,
                Mark::Retiring { agent: gone } | Mark::Purging { agent: gone } => gone == agent,
                Mark::BrokerDown
                | Mark::BackupBegun { .. }
                | Mark::BackedUp { .. }
                | Mark::BrokerReady
                | Mark::Detached { .. }
                | Mark::Stopped { .. }
                | Mark::Starting { .. }
                | Mark::Purged { .. }
                | Mark::ClockSet
                | Mark::Note(_) => false,
            }
    });
    let decided =
        index.of(&index.decisions, &(agent, hand.handed.message)).any(|call| ended(call.from));
    // A call under way at any time before `until` may have taken effect just then.
    let attaches = |call: &crate::index::Call<'_>| {
        let resumed = matches!(call.ok(), Some((_, Reply::Attached { resumed: true, .. })));
        let over = call.answer.is_some_and(|(till, _)| till < hand.from);
        matches!(call.op, Op::Attach { .. }) && !resumed && !over && call.from < until
    };
    if marked || decided || index.is_opaque(agent) {
        return false;
    }
    match &hand.holder {
        Holder::Consumer(token) => {
            let settled = index.of(&index.token_calls, token);
            let mut settled = settled.filter(|call| !matches!(call.op, Op::Extend { .. }));
            // A broker that goes down begins the grace of a stream's leases before its client
            // knows of it.
            let is_lasting =
                matches!(index.calls[hand.call].op, Op::Receive { lease_ms: LASTING_MS, .. });
            let is_down = |at: usize, mark: &Mark| ended(at) && matches!(mark, Mark::BrokerDown);
            let may_be_orphan =
                is_lasting && index.marks.iter().any(|(at, mark)| is_down(*at, mark));
            !may_be_orphan
                && !settled.any(|call| call.from < until)
                && !index.calls_of(caller_of(index, hand)).any(&attaches)
                && index.at(until) < expiry(index, hand, token, until)
        }
        Holder::Turn(turn) => {
            let mut ends = index
                .of(&index.turn_calls, turn)
                .filter(|call| matches!(call.op, Op::EndTurn { .. }));
            let begun =
                index.by_turn[turn].first().map_or(hand.from, |place| index.hands[*place].from);
            let attaches = index
                .calls_of(caller_of(index, hand))
                .any(|call| attaches(call) && call.answer.is_none_or(|(till, _)| till > begun));
            !ends.any(|call| call.from < until)
                && !attaches
                && index.at(until) < last_contact(index, hand, until)
        }
    }
}

fn caller_of<'a>(index: &Index<'a>, hand: &Hand<'_>) -> &'a str {
    index.calls[hand.call].caller
}

/// Returns the earliest time at which a consumer's lease can expire.
fn expiry(index: &Index<'_>, hand: &Hand<'_>, token: &&str, until: usize) -> u64 {
    let Op::Receive { lease_ms, .. } = index.calls[hand.call].op else { return 0 };
    let mut expiry = index.at(hand.from) + lease_ms;
    // An extension may also shorten it. If several are under way at once, any may be the last.
    let extensions: Vec<_> = index
        .of(&index.token_calls, token)
        .filter(|call| matches!(call.op, Op::Extend { .. }) && call.from < until)
        .collect();
    for (nth, call) in extensions.iter().enumerate() {
        let Op::Extend { lease_ms, .. } = call.op else { continue };
        let end = index.at(call.from) + lease_ms;
        let alone = extensions
            .iter()
            .take(nth)
            .all(|other| other.answer.is_some_and(|(till, _)| till < call.from));
        expiry = if call.ok().is_some_and(|(till, _)| till < until) && alone {
            end
        } else {
            expiry.min(end)
        };
    }
    expiry.saturating_sub(index.history.setting.tolerance_ms)
}

/// Returns the time until which a turn's harness was certainly within the grace time.
fn last_contact(index: &Index<'_>, hand: &Hand<'_>, until: usize) -> u64 {
    let grace = index.history.setting.grace_ms.saturating_sub(index.history.setting.tolerance_ms);
    let mut alive = index.at(hand.from) + grace;
    for call in index.calls_of(caller_of(index, hand)) {
        let heartbeat = matches!(call.op, Op::Other { rpc, .. } if rpc == "Heartbeat");
        let speaks = heartbeat || matches!(call.op, Op::Attach { .. } | Op::BeginTurn { .. });
        if let Some((till, _)) = call.ok()
            && speaks
            && call.from > hand.from
            && till < until
            && index.at(till) <= alive
        {
            alive = alive.max(index.at(call.from) + grace);
        }
    }
    alive
}
