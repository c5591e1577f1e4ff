//! Nothing accepted is lost: a message with a receipt is there at the end, in the inbox of every
//! recipient, and was not forgotten there.
//!
//! Silent: about messages not known to be accepted, and about waiting mail if not everything is at
//! rest.

use std::collections::HashSet;

use super::Found;
use super::gone::is_purged;
use crate::call::{Op, Reply};
use crate::index::Index;
use crate::noun::State;
use crate::violation::Rule::NothingLost;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    receipts(index, found);
    for hand in &index.hands {
        let id = hand.handed.message;
        if !index.messages.contains_key(&id) {
            found.add(
                NothingLost,
                &[hand.till],
                format!("message {id} was handed to {}, and is not there", hand.handed.agent),
            );
        }
    }
    rows(index, found);
}

fn receipts(index: &Index<'_>, found: &mut Found) {
    let questions: HashSet<u64> = index.last.questions.iter().map(|known| known.id).collect();
    let reminders: HashSet<u64> = index.last.reminders.iter().map(|known| known.id).collect();
    let turns: HashSet<u64> = index.last.turns.iter().map(|known| known.id).collect();
    for call in &index.calls {
        let Some((till, reply)) = call.ok() else { continue };
        let seen = [call.from, till];
        match reply {
            Reply::Sent { message, already: false, .. } => {
                let to: &[String] = if let Op::Send { to, .. } = call.op { to } else { &[] };
                message_is_there(index, found, &seen, *message, to);
            }
            Reply::Sent { message, .. } | Reply::Reported { message } => {
                message_is_there(index, found, &seen, *message, &[]);
            }
            Reply::Woken { message, .. } => {
                message_is_there(index, found, &seen, *message, &[call.caller.to_owned()]);
            }
            Reply::Asked { question, message, .. } => {
                if !questions.contains(question) {
                    found.add(
                        NothingLost,
                        &seen,
                        format!("question {question} was accepted, and is not there"),
                    );
                }
                message_is_there(index, found, &seen, *message, &[]);
            }
            Reply::Reminded { reminder, .. } => {
                if !reminders.contains(reminder) {
                    found.add(
                        NothingLost,
                        &seen,
                        format!("reminder {reminder} was accepted, and is not there"),
                    );
                }
            }
            Reply::Turn { turn, .. } => {
                if !turns.is_empty() && !turns.contains(turn) {
                    found.add(
                        NothingLost,
                        &seen,
                        format!("turn {turn} had begun, and is not there"),
                    );
                }
            }
            Reply::Leased(_)
            | Reply::Acked
            | Reply::Nacked(_)
            | Reply::Released
            | Reply::Extended
            | Reply::Attached { .. }
            | Reply::TurnEnded(_)
            | Reply::Question(_)
            | Reply::Done(_) => {}
        }
    }
}

fn message_is_there(index: &Index<'_>, found: &mut Found, seen: &[usize], id: u64, to: &[String]) {
    if !index.messages.contains_key(&id) {
        found.add(NothingLost, seen, format!("message {id} was accepted, and is not there"));
        return;
    }
    for agent in to {
        let key = (agent.as_str(), id);
        if !index.deliveries.contains_key(&key) && !is_purged(index, key) {
            found.add(
                NothingLost,
                seen,
                format!("message {id} was accepted for {agent}, and has no delivery there"),
            );
        }
    }
}

/// Checks that a message and its deliveries are one transaction, and that no waiter is left.
fn rows(index: &Index<'_>, found: &mut Found) {
    for message in &index.last.messages {
        if message.recipients.len() != message.recipient_count as usize {
            let (id, count, names) = (message.id, message.recipient_count, &message.recipients);
            let what =
                format!("message {id} states {count} recipients, and these are listed: {names:?}");
            found.add(NothingLost, &[], what);
        }
        for agent in &message.recipients {
            let key = (agent.as_str(), message.id);
            if !index.deliveries.contains_key(&key) && !is_purged(index, key) {
                found.add(
                    NothingLost,
                    &[],
                    format!("message {} is to {agent}, and has no delivery there", message.id),
                );
            }
        }
    }
    if !index.last.at_rest {
        return;
    }
    for delivery in &index.last.deliveries {
        let unread = delivery.agent == "operator" || index.last.unread.contains(&delivery.agent);
        if !unread && matches!(delivery.state, State::Ready | State::Leased) {
            let (message, agent, state) = (delivery.message, &delivery.agent, delivery.state);
            found.add(
                NothingLost,
                &[],
                format!("message {message} to {agent} is {state:?} though all is at rest: it was forgotten"),
            );
        }
    }
}
