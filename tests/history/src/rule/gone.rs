//! Mail to a stopped agent waits until the agent is started. No mail of a purged agent reaches a
//! later agent of its name.
//!
//! Silent: about mail that was under way when the agent was stopped, about mail that a running turn
//! receives, which may finish its work, and about stops and purges without an answer.

use std::collections::HashMap;

use super::{Found, receipt};
use crate::event::Mark;
use crate::index::{Holder, Index, Key};
use crate::violation::Rule::Gone;

/// When a message was created: when its first request left, and when one was first answered.
#[derive(Clone, Copy, Debug)]
struct Made {
    left: usize,
    answered: usize,
}

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut made: HashMap<u64, Made> = HashMap::new();
    for call in &index.calls {
        if let Some((till, message)) =
            call.ok().and_then(|(till, reply)| Some((till, receipt::made(reply)?)))
        {
            let known =
                made.entry(message).or_insert(Made { left: call.request_from, answered: till });
            *known = Made {
                left: known.left.min(call.request_from),
                answered: known.answered.min(till),
            };
        }
    }
    for (stopped, mark) in &index.marks {
        let Mark::Stopped { agent } = mark else { continue };
        let stopped = *stopped;
        let is_start =
            |mark: &Mark| matches!(mark, Mark::Starting { agent: other } if other == agent);
        let started = index
            .marks
            .iter()
            .find(|(at, mark)| *at > stopped && is_start(mark))
            .map_or(usize::MAX, |(at, _)| *at);
        for hand in index
            .hands
            .iter()
            .filter(|hand| hand.handed.agent == *agent && (stopped..started).contains(&hand.till))
            .filter(|hand| hand.wakes || matches!(hand.holder, Holder::Consumer(_)))
        {
            let message = hand.handed.message;
            if made.get(&message).is_some_and(|made| made.left > stopped) {
                let what = format!(
                    "message {message} was sent to {agent} after it was stopped, and was handed out before it was started"
                );
                found.add(Gone, &[stopped, hand.till], what);
            }
        }
    }
    for hand in &index.hands {
        let (agent, message) = (hand.handed.agent.as_str(), hand.handed.message);
        if let Some((purging, purged)) = purge_before(index, agent, hand.from)
            && made.get(&message).is_some_and(|made| made.answered < purging)
        {
            let what = format!(
                "message {message} was sent to {agent} before it was purged, and was handed to a later one of its name"
            );
            found.add(Gone, &[purging, purged, hand.till], what);
        }
    }
}

/// Returns whether an agent was purged, so that its deliveries are absent at the end.
pub(super) fn is_purged(index: &Index<'_>, (agent, _): Key<'_>) -> bool {
    index
        .marks
        .iter()
        .any(|(_, mark)| matches!(mark, Mark::Purging { agent: other } if other == agent))
}

/// Returns the last purge of an agent that was over before this observation: its start and its
/// answer.
fn purge_before(index: &Index<'_>, agent: &str, before: usize) -> Option<(usize, usize)> {
    let is_end = |mark: &Mark| matches!(mark, Mark::Purged { agent: other } if other == agent);
    let (purged, _) = index.marks.iter().rev().find(|(at, mark)| *at < before && is_end(mark))?;
    let is_begin = |mark: &Mark| matches!(mark, Mark::Purging { agent: other } if other == agent);
    let (purging, _) = index.marks.iter().rev().find(|(at, mark)| at < purged && is_begin(mark))?;
    Some((*purging, *purged))
}
