//! No phantoms: every message, question and reminder has a request that created it, and exists at
//! most as often as it was requested.
//!
//! Silent: about what opaque agents sent, and about the trigger of a broker's notice if only opaque
//! agents have turns.

use std::collections::BTreeMap;

use super::Found;
use super::gone::is_purged;
use crate::call::Op;
use crate::index::{Call, Index};
use crate::last::Message;
use crate::noun::{Kind, Origin, Outcome, State};
use crate::schedule::Firing;
use crate::violation::Rule::NoPhantom;

/// The content that a caller requested, and the number of requests that may have written it.
type Wanted<'a> = BTreeMap<(Sort, &'a str, &'a str), usize>;

/// The kinds of object that a request can create.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Message,
    Wake,
    Question,
    Reminder,
}

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    kicks(index, found);
    let wanted = wanted(index);
    let mut there: BTreeMap<(Sort, &str, &str), Vec<u64>> = BTreeMap::new();
    for message in &index.last.messages {
        match &message.origin {
            Origin::Agent(agent) if is_wanted(index, agent, &message.body) => {}
            Origin::Agent(agent) => {
                there.entry((Sort::Message, agent, &message.body)).or_default().push(message.id);
            }
            Origin::Operator => there
                .entry((Sort::Message, "operator", &message.body))
                .or_default()
                .push(message.id),
            Origin::External(_) => {
                let agent = message.recipients.first().map_or("", String::as_str);
                there.entry((Sort::Wake, agent, &message.body)).or_default().push(message.id);
            }
            Origin::System(kind) => notice(index, found, message, *kind),
        }
    }
    for question in &index.last.questions {
        there
            .entry((Sort::Question, &question.asker, &question.text))
            .or_default()
            .push(question.id);
    }
    for reminder in &index.last.reminders {
        there
            .entry((Sort::Reminder, &reminder.agent, &reminder.body))
            .or_default()
            .push(reminder.id);
    }
    for ((sort, who, text), ids) in there {
        let wanted = wanted.get(&(sort, who, text)).copied().unwrap_or(0);
        if index.is_opaque(who) && sort != Sort::Wake {
            continue;
        }
        if wanted == 0 {
            found.add(
                NoPhantom,
                &[],
                format!("{sort:?} {ids:?} of {who} is there, and nobody made it: {text:?}"),
            );
        } else if ids.len() > wanted {
            let what = format!(
                "{sort:?} {ids:?} of {who} is there {} times, and was made {wanted} times: {text:?}",
                ids.len()
            );
            found.add(NoPhantom, &[], what);
        }
    }
    for hand in &index.hands {
        let (id, agent) = (hand.handed.message, hand.handed.agent.as_str());
        if index.messages.contains_key(&id)
            && !index.deliveries.contains_key(&(agent, id))
            && !is_purged(index, (agent, id))
        {
            found.add(
                NoPhantom,
                &[hand.till],
                format!("message {id} was handed to {agent}, for whom it is not"),
            );
        }
    }
}

/// Checks that an agent has at most one unsettled notice to continue. A dead one does not block an
/// order of the operator.
fn kicks(index: &Index<'_>, found: &mut Found) {
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    for message in
        index.last.messages.iter().filter(|message| message.kind() == Some(Kind::Restarted))
    {
        let to = message.recipients.first().map_or("", String::as_str);
        let state = index.deliveries.get(&(to, message.id)).map(|delivery| delivery.state);
        if !matches!(state, Some(State::Ready | State::Leased | State::Held)) {
            continue;
        }
        if let Some(earlier) = waiting.insert(to, message.id) {
            let what = format!(
                "message {} tells {to} to go on, and message {earlier} does already",
                message.id
            );
            found.add(NoPhantom, &[], what);
        }
    }
}

/// Returns what requests may have written, by caller. A request counts once however often it was
/// repeated.
fn wanted<'a>(index: &Index<'a>) -> Wanted<'a> {
    let mut wanted = Wanted::new();
    for ((caller, _, _), calls) in &index.requests {
        if index.is_refused(calls) {
            continue;
        }
        if let Some((sort, text)) = text_of(index.calls[calls[0]].op) {
            *wanted.entry((sort, *caller, text)).or_default() += 1;
        }
    }
    wanted
}

/// Returns what a request creates and its text, or `None` if it creates nothing.
pub(super) fn text_of(op: &Op) -> Option<(Sort, &str)> {
    if let Op::Send { body, .. } = op {
        Some((Sort::Message, body))
    } else if let Op::Wake { body, .. } = op {
        Some((Sort::Wake, body))
    } else if let Op::Ask { text, .. } = op {
        Some((Sort::Question, text))
    } else if let Op::Schedule { text, .. } = op {
        Some((Sort::Question, text))
    } else if let Op::Remind { body, .. } = op {
        Some((Sort::Reminder, body))
    } else {
        None
    }
}

/// Returns whether an agent may have asked for schedules.
fn plans(index: &Index<'_>, agent: &str) -> bool {
    let is_plan =
        |call: &Call<'_>| call.refused().is_none() && matches!(call.op, Op::Schedule { .. });
    index.is_opaque(agent) || index.calls_of(agent).any(is_plan)
}

/// Returns whether this is a message of a schedule whose text the agent asked for. How often it is
/// sent follows from the schedule.
fn is_wanted(index: &Index<'_>, agent: &str, text: &str) -> bool {
    let Some(firing) = Firing::of(text) else { return false };
    let is_its = |call: &Call<'_>| {
        call.refused().is_none()
            && matches!(call.op, Op::Schedule { terms, .. } if terms.body.as_deref() == Some(firing.body))
    };
    firing.owner == agent && index.calls_of(agent).any(is_its)
}

/// Returns whether a launcher reported this of a harness.
fn reported(index: &Index<'_>, report: &str) -> bool {
    let is_report = |op: &Op| {
        let Op::Other { rpc, content } = op else { return false };
        rpc == "ReportHarness" && content.split('|').any(|part| part == report)
    };
    index.calls.iter().any(|call| is_report(call.op))
}

/// Checks that a message of the broker has a trigger.
fn notice(index: &Index<'_>, found: &mut Found, message: &Message, kind: Kind) {
    let calls = || index.calls.iter();
    let somebody_unseen = !index.history.setting.opaque.is_empty();
    let fine = match kind {
        Kind::QuestionAsked
        | Kind::QuestionAnswered
        | Kind::QuestionExpired
        | Kind::QuestionCancelled => {
            index.last.questions.iter().any(|question| question.id == message.question)
        }
        Kind::Reminder => {
            index.last.reminders.iter().any(|reminder| reminder.id == message.reminder)
        }
        Kind::TurnFailed => {
            somebody_unseen
                || calls()
                    .any(|call| matches!(call.op, Op::EndTurn { outcome: Outcome::Failed, .. }))
        }
        Kind::DeadLetter => {
            let turns = || calls().any(|call| matches!(call.op, Op::BeginTurn { mail: true, .. }));
            somebody_unseen || calls().any(|call| matches!(call.op, Op::Nack { .. })) || turns()
        }
        Kind::Problem => {
            somebody_unseen || calls().any(|call| matches!(call.op, Op::ReportProblem { .. }))
        }
        // An agent without a login is parked even without a turn, and each park has an end.
        Kind::Unavailable | Kind::LoggedIn | Kind::Recovered => true,
        // No campaign has an action or a heartbeat.
        Kind::ActionEnded | Kind::Heartbeat => false,
        Kind::ScheduleEnded => plans(index, message.recipients.first().map_or("", String::as_str)),
        // A launcher reports these.
        Kind::Started => reported(index, "started"),
        Kind::Stopped => reported(index, "stopped"),
        Kind::Crashed => reported(index, "crashed"),
        // A session that begins sends its agent a notice to continue.
        Kind::Restarted => {
            let to = message.recipients.first().map_or("", String::as_str);
            index.is_opaque(to)
                || index.calls_of(to).any(|call| matches!(call.op, Op::Attach { .. }))
        }
    };
    if !fine {
        found.add(
            NoPhantom,
            &[],
            format!("message {} of the broker is there, and nothing made it: {kind:?}", message.id),
        );
    }
}
