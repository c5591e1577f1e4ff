//! The event log: the order in which ready deliveries of an inbox were served, and the notice of
//! each dead letter.
//!
//! Silent: about requeued deliveries, because they may be in backoff or served alone. Invariant: it
//! reads only committed facts.

use std::collections::{BTreeMap, BTreeSet};

use hive_core::event::{Event, Kind};
use hive_core::limits::SYSTEM_RUN_MAX;
use hive_history::{self as history, Final, Lane};

/// Deliveries never served, and the number of consecutive hand-overs from the lane `system`.
#[derive(Debug, Default)]
struct Inbox {
    fresh: BTreeSet<u64>,
    system_run: u32,
}

/// Returns the problems of the order.
pub(crate) fn check(events: &[Event], last: &Final) -> Vec<String> {
    let lanes: BTreeMap<(&str, u64), Lane> = last
        .deliveries
        .iter()
        .map(|delivery| ((delivery.agent.as_str(), delivery.message), delivery.lane))
        .collect();
    let mut inboxes: BTreeMap<String, Inbox> = BTreeMap::new();
    let mut problems = Vec::new();
    let mut deaths: BTreeMap<u64, usize> = BTreeMap::new();
    for event in events {
        if let Some(message) = event.message_id {
            if event.kind() == Kind::DeliveryDead {
                *deaths.entry(message.get()).or_default() += 1;
            }
            let inbox = inboxes.entry(event.agent.clone()).or_default();
            problems.extend(follow(inbox, event, message.get(), &lanes));
        }
    }
    for (message, deaths) in deaths {
        let told = last.messages.iter().filter(|notice| {
            notice.kind() == Some(history::Kind::DeadLetter) && notice.reply_to == message
        });
        let told = told.count();
        if told < deaths {
            problems.push(format!(
                "DeadLetter: message {message} became a dead letter {deaths} times, and {told} notices tell of it"
            ));
        }
    }
    problems
}

fn follow(
    inbox: &mut Inbox,
    event: &Event,
    message: u64,
    lanes: &BTreeMap<(&str, u64), Lane>,
) -> Option<String> {
    let agent = event.agent.as_str();
    // A broadcast without recipients has an event for its sender, but no delivery.
    if event.kind() == Kind::MessageAccepted && lanes.contains_key(&(agent, message)) {
        inbox.fresh.insert(message);
    }
    if matches!(
        event.kind(),
        Kind::DeliveryAcked | Kind::DeliveryDropped | Kind::DeliverySuperseded
    ) {
        inbox.fresh.remove(&message);
    }
    if event.kind() != Kind::DeliveryLeased {
        return None;
    }
    let lane = *lanes.get(&(agent, message))?;
    let run = inbox.system_run;
    inbox.fresh.remove(&message);
    inbox.system_run = if lane == Lane::System { run.saturating_add(1) } else { 0 };
    let first = if run >= SYSTEM_RUN_MAX { Lane::Normal } else { Lane::System };
    let waiting = inbox.fresh.iter().find(|other| lanes.get(&(agent, **other)) == Some(&first));
    let before = waiting.filter(|_| lane != first)?;
    Some(format!(
        "Lanes: message {message} to {agent} was served in lane {lane:?} after {run} of System, and {before} waited in {first:?}"
    ))
}
