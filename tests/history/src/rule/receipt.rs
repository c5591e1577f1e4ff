//! A receipt is always true. The same request has one answer, another request under its id is
//! refused, and an id belongs to one object. The log and each hand-over match the sent message.
//!
//! Silent: about repeated receives and begins, which lease again once their leases are over, and
//! about repetitions refused because the caller may call nothing any more.

use std::collections::HashMap;

use super::Found;
use crate::call::{Op, Reply};
use crate::event::Mark;
use crate::index::{Call, Holder, Index, RequestKey};
use crate::noun::{Decision, Origin, State};
use crate::violation::Rule::Receipt;

/// Refusals that do not depend on the request: a repetition may get them too.
const OF_THE_CALLER: [&str; 7] = [
    "AGENT_RETIRED",
    "LEASE_LOST",
    "SESSION_LOST",
    "HARNESS_ATTACHED",
    "DRAINING",
    "STORAGE_UNAVAILABLE",
    "CAPABILITY_MISSING",
];

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut owners: HashMap<u64, (RequestKey<'_>, usize)> = HashMap::new();
    for (key, places) in &index.requests {
        let calls: Vec<&Call<'_>> = places.iter().map(|place| &index.calls[*place]).collect();
        one_answer(found, *key, &calls);
        for call in &calls {
            let (Some((till, reply)), Some(id)) =
                (call.ok(), call.ok().and_then(|(_, reply)| made(reply)))
            else {
                continue;
            };
            let (owner, at) = *owners.entry(id).or_insert((*key, till));
            // A begin that is repeated after its turn ended begins another turn, which also belongs
            // to that request.
            if owner != *key {
                let what = format!("id {id} was given to {owner:?} and to {key:?}");
                found.add(Receipt, &[at, till], what);
            }
            in_the_log(index, found, call, till, reply);
        }
    }
    for call in &index.calls {
        if let Some((till, _)) = call.ok() {
            settled(index, found, call, till);
        }
    }
    handed(index, found);
}

/// Returns the id that a reply created. A message reused from an earlier run is not created.
pub(crate) fn made(reply: &Reply) -> Option<u64> {
    match reply {
        Reply::Sent { message, already: false, .. }
        | Reply::Woken { message, .. }
        | Reply::Reported { message } => Some(*message),
        Reply::Asked { question, already: false, .. } => Some(*question),
        Reply::Reminded { reminder, already: false, .. } => Some(*reminder),
        Reply::Turn { turn, .. } => Some(*turn),
        Reply::Sent { already: true, .. }
        | Reply::Asked { already: true, .. }
        | Reply::Reminded { already: true, .. }
        | Reply::Leased(_)
        | Reply::Acked
        | Reply::Nacked(_)
        | Reply::Released
        | Reply::Extended
        | Reply::Attached { .. }
        | Reply::TurnEnded(_)
        | Reply::Question(_)
        | Reply::Done(_) => None,
    }
}

fn one_answer(found: &mut Found, key: RequestKey<'_>, calls: &[&Call<'_>]) {
    let leases_anew = |call: &Call<'_>| {
        matches!(call.op, Op::Receive { .. } | Op::BeginTurn { .. } | Op::Attach { .. })
    };
    let mut first: Option<(&Call<'_>, usize, &Reply)> = None;
    for call in calls {
        if let Some((one, at, reply)) = first {
            if let Some((till, other)) = call.ok() {
                if one.op != call.op {
                    found.add(
                        Receipt,
                        &[at, till],
                        format!("{key:?} was done for two different requests"),
                    );
                } else if reply != other && !leases_anew(call) {
                    found.add(
                        Receipt,
                        &[at, till],
                        format!("{key:?} was answered {reply:?} and then {other:?}"),
                    );
                }
            } else if let (Some(reason), Some((till, _))) = (call.refused(), call.answer)
                && call.from > at
                && one.op == call.op
                && !leases_anew(call)
                && !OF_THE_CALLER.contains(&reason)
            {
                found.add(
                    Receipt,
                    &[at, till],
                    format!("{key:?} was done, and its repetition was refused with {reason}"),
                );
            }
        } else if let Some((till, reply)) = call.ok() {
            first = Some((call, till, reply));
        }
    }
}

/// Checks that the log shows under an id what was sent.
fn in_the_log(index: &Index<'_>, found: &mut Found, call: &Call<'_>, till: usize, reply: &Reply) {
    let seen = [call.from, till];
    let author = |caller: &str| {
        if caller == "operator" { Origin::Operator } else { Origin::Agent(caller.to_owned()) }
    };
    let (id, origin, body, reply_to) = match (call.op, reply) {
        (Op::Send { body, reply_to, .. }, Reply::Sent { message, .. }) => {
            (*message, author(call.caller), body, *reply_to)
        }
        (Op::Wake { label, body, .. }, Reply::Woken { message, .. }) => {
            (*message, Origin::External(label.clone()), body, 0)
        }
        (Op::Ask { text, target, .. }, Reply::Asked { question, .. }) => {
            let same = |known: &&crate::QuestionSeen| known.id == *question;
            if let Some(known) = index.last.questions.iter().find(same)
                && (known.text != *text || known.target != *target || known.asker != call.caller)
            {
                found.add(
                    Receipt,
                    &seen,
                    format!("question {question} is not the one that was asked: {known:?}"),
                );
            }
            return;
        }
        (Op::Schedule { text, .. }, Reply::Asked { question, .. }) => {
            let same = |known: &&crate::QuestionSeen| known.id == *question;
            if let Some(known) = index.last.questions.iter().find(same)
                && (known.text != *text || known.asker != call.caller)
            {
                found.add(
                    Receipt,
                    &seen,
                    format!("question {question} is not the one that was asked: {known:?}"),
                );
            }
            return;
        }
        (Op::Remind { body, .. }, Reply::Reminded { reminder, due, .. }) => {
            if let Some(known) = index.last.reminders.iter().find(|known| known.id == *reminder)
                && (known.body != *body || known.agent != call.caller || known.due != *due)
            {
                found.add(
                    Receipt,
                    &seen,
                    format!("reminder {reminder} is not the one that was set: {known:?}"),
                );
            }
            return;
        }
        _ => return,
    };
    let Some(message) = index.messages.get(&id) else { return };
    // This observer does not know the recipients of a broadcast.
    let other_place =
        matches!(call.op, Op::Send { to, everyone: false, .. } if message.recipients != *to);
    if message.origin != origin
        || message.body != *body
        || message.reply_to != reply_to
        || other_place
    {
        let what = format!(
            "message {id} is not the one that was sent: {:?} to {:?} in reply to {}: {:?}",
            message.origin, message.recipients, message.reply_to, message.body
        );
        found.add(Receipt, &seen, what);
    }
}

/// Checks that a settled delivery stays settled.
fn settled(index: &Index<'_>, found: &mut Found, call: &Call<'_>, till: usize) {
    let (agent, message, wanted) = if let Op::Ack { token } = call.op {
        let Some(hand) = index.by_token.get(token.as_str()).map(|place| &index.hands[*place])
        else {
            return;
        };
        (hand.handed.agent.as_str(), hand.handed.message, State::Acked)
    } else if let Op::Decide {
        agent,
        message,
        decision: decision @ (Decision::Ack | Decision::Drop),
    } = call.op
    {
        (
            agent.as_str(),
            *message,
            if *decision == Decision::Ack { State::Acked } else { State::Dropped },
        )
    } else {
        return;
    };
    if let Some(delivery) = index.deliveries.get(&(agent, message))
        && delivery.state != wanted
    {
        let what = format!(
            "message {message} to {agent} was settled as {wanted:?}, and is {:?} at the end",
            delivery.state
        );
        found.add(Receipt, &[call.from, till], what);
    }
    if let Some(later) = index.leases((agent, message)).find(|hand| hand.from > till) {
        let what = format!(
            "message {message} to {agent} was settled as {wanted:?}, and was handed over again"
        );
        found.add(Receipt, &[till, later.till], what);
    }
}

/// Checks that each hand-over equals the message in the log.
fn handed(index: &Index<'_>, found: &mut Found) {
    let adopted = |name: &str| {
        index
            .marks
            .iter()
            .any(|(_, mark)| matches!(mark, Mark::Retiring { agent } if agent == name))
    };
    for hand in &index.hands {
        let handed = hand.handed;
        let Some(message) = index.messages.get(&handed.message) else { continue };
        if message.body != handed.body
            || message.origin != handed.origin
            || message.reply_to != handed.reply_to
        {
            let what = format!(
                "message {} was handed to {} as {:?}: {:?}",
                handed.message, handed.agent, handed.origin, handed.body
            );
            found.add(Receipt, &[hand.till], what);
        }
        // A token belongs to one lease.
        if let Holder::Consumer(token) = hand.holder
            && let Some(other) = index.by_token.get(token).map(|place| &index.hands[*place])
            && other.handed.message != handed.message
        {
            found.add(
                Receipt,
                &[hand.till, other.till],
                format!("token {token} was given for two deliveries"),
            );
        }
        if index.calls[hand.call].caller != handed.agent && !adopted(&handed.agent) {
            let what =
                format!("mail of {} was handed to {}", handed.agent, index.calls[hand.call].caller);
            found.add(Receipt, &[hand.till], what);
        }
    }
}
