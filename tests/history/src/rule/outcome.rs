//! One outcome per question: every reader that sees it closed sees the same outcome, and it is
//! never open again. At most one request closed it, and the outcome is an answer, a withdrawal or
//! the deadline.
//!
//! Silent: about a watch that lags, and about which of two opaque agents closed a question.

use std::collections::BTreeMap;

use super::Found;
use crate::call::{Op, Reply};
use crate::event::{Event, Mark};
use crate::index::Index;
use crate::noun::{ApprovalSeen, QuestionSeen, QuestionState};
use crate::violation::Rule::OneOutcome;

/// A sight of a question: the earliest time of its state, when it was seen, and whether it cannot
/// be older than `from`.
struct Sight<'a> {
    question: &'a QuestionSeen,
    from: usize,
    till: usize,
    fresh: bool,
}

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut sights: BTreeMap<u64, Vec<Sight<'_>>> = BTreeMap::new();
    for call in &index.calls {
        if let Some((till, Reply::Question(question))) = call.ok() {
            let sight = Sight { question, from: call.from, till, fresh: true };
            sights.entry(question.id).or_default().push(sight);
            answered_as_asked(found, call.op, question, &[call.from, till]);
        }
    }
    for (at, observation) in index.history.observations.iter().enumerate() {
        if let Event::Saw(question) = &observation.event {
            sights.entry(question.id).or_default().push(Sight {
                question,
                from: at,
                till: at,
                fresh: false,
            });
        }
    }
    let end = index.history.observations.len();
    for question in &index.last.questions {
        sights.entry(question.id).or_default().push(Sight {
            question,
            from: end,
            till: end,
            fresh: true,
        });
    }
    for (id, sights) in &mut sights {
        sights.sort_by_key(|sight| sight.till);
        agree(found, *id, sights, end);
        early(index, found, *id, sights, end);
    }
    closers(index, found);
    for question in &index.last.questions {
        has_reason(index, found, question);
    }
}

fn seen(sights: &[&Sight<'_>], end: usize) -> Vec<usize> {
    sights.iter().map(|sight| sight.till).filter(|till| *till < end).collect()
}

fn agree(found: &mut Found, id: u64, sights: &[Sight<'_>], end: usize) {
    let Some(closed) = sights.iter().find(|sight| sight.question.state != QuestionState::Open)
    else {
        return;
    };
    for sight in sights {
        let (one, other) = (closed.question, sight.question);
        if other.state == QuestionState::Open {
            if sight.fresh && sight.from > closed.till {
                found.add(
                    OneOutcome,
                    &seen(&[closed, sight], end),
                    format!("question {id} was {:?} and then open again", one.state),
                );
            }
        } else if outcome(one) != outcome(other) {
            let what =
                format!("question {id} ended as {:?} and as {:?}", outcome(one), outcome(other));
            found.add(OneOutcome, &seen(&[closed, sight], end), what);
        }
    }
}

/// What every reader of a closed question must see alike.
#[derive(Debug, PartialEq, Eq)]
struct Outcome<'a> {
    state: QuestionState,
    choices: &'a [String],
    answer: &'a str,
    closed_by: &'a str,
    operator_override: bool,
    approval: Option<&'a ApprovalSeen>,
}

fn outcome(question: &QuestionSeen) -> Outcome<'_> {
    Outcome {
        state: question.state,
        choices: &question.choices,
        answer: &question.answer,
        closed_by: &question.closed_by,
        operator_override: question.operator_override,
        approval: question.approval.as_deref(),
    }
}

/// Checks that no question expires before its deadline.
fn early(index: &Index<'_>, found: &mut Found, id: u64, sights: &[Sight<'_>], end: usize) {
    let Some(sight) = sights.iter().find(|sight| sight.question.state == QuestionState::Expired)
    else {
        return;
    };
    let Some(deadline) = sight.question.deadline else {
        found.add(
            OneOutcome,
            &seen(&[sight], end),
            format!("question {id} expired and has no deadline"),
        );
        return;
    };
    let wall =
        index.wall_max.get(sight.till).copied().unwrap_or_else(|| {
            index.wall_max.last().copied().unwrap_or(i64::MIN).max(index.last.wall)
        });
    let tolerance = i64::try_from(index.history.setting.tolerance_ms).unwrap_or(i64::MAX);
    if wall.saturating_add(tolerance) < deadline {
        found.add(
            OneOutcome,
            &seen(&[sight], end),
            format!("question {id} expired {} ms before its deadline", deadline - wall),
        );
    }
}

/// Checks that a question shows the answer of the caller whose request closed it.
fn answered_as_asked(found: &mut Found, op: &Op, question: &QuestionSeen, seen: &[usize]) {
    let id = question.id;
    if let Op::Answer { choices, text, .. } = op {
        let mut chosen = question.choices.clone();
        let mut wanted = choices.clone();
        chosen.sort_unstable();
        wanted.sort_unstable();
        if question.state != QuestionState::Answered || question.answer != *text || chosen != wanted
        {
            let what = format!(
                "an answer {text:?} to question {id} was accepted, and it ended as {:?}",
                outcome(question)
            );
            found.add(OneOutcome, seen, what);
        }
    }
    if matches!(op, Op::CancelQuestion { .. }) && question.state != QuestionState::Cancelled {
        found.add(
            OneOutcome,
            seen,
            format!("question {id} was withdrawn, and ended as {:?}", outcome(question)),
        );
    }
}

/// Checks that at most one request closed it.
fn closers(index: &Index<'_>, found: &mut Found) {
    let mut winners: BTreeMap<u64, (&str, usize)> = BTreeMap::new();
    for ((_, _, request), calls) in &index.requests {
        for call in calls.iter().map(|place| &index.calls[*place]) {
            let (Op::Answer { question, .. } | Op::CancelQuestion { question }, Some((till, _))) =
                (call.op, call.ok())
            else {
                continue;
            };
            let (winner, at) = *winners.entry(*question).or_insert((request, till));
            if winner != *request {
                let what = format!(
                    "question {question} was closed by two requests, {winner} and {request}"
                );
                found.add(OneOutcome, &[at, till], what);
                break;
            }
        }
    }
}

/// Checks that a call or an event explains an outcome.
fn has_reason(index: &Index<'_>, found: &mut Found, question: &QuestionSeen) {
    let id = question.id;
    let of_the_two = |agent: &String| *agent == question.asker || *agent == question.target;
    let retired = || {
        index
            .marks
            .iter()
            .any(|(_, mark)| matches!(mark, Mark::Retiring { agent } if of_the_two(agent)))
    };
    let fine = match question.state {
        QuestionState::Open | QuestionState::Expired => true,
        // By a grant, which allows only an effect.
        QuestionState::Answered if question.closed_by.is_empty() => {
            index.is_opaque(&question.asker)
                || index.calls_of(question.asker.as_str()).any(|call| {
                    call.refused().is_none()
                        && matches!(call.op, Op::Schedule { text, .. } if *text == question.text)
                })
        }
        QuestionState::Answered => {
            index.is_opaque(&question.closed_by)
                || index.calls_of(question.closed_by.as_str()).any(|call| {
                    call.refused().is_none()
                        && matches!(call.op, Op::Answer { question: named, text, .. } if *named == id && *text == question.answer)
                })
        }
        QuestionState::Cancelled if question.closed_by.is_empty() => retired(),
        QuestionState::Cancelled => {
            index.is_opaque(&question.closed_by)
                || index.calls_of(question.closed_by.as_str()).any(|call| {
                    call.refused().is_none() && matches!(call.op, Op::CancelQuestion { question: named } if *named == id)
                })
        }
    };
    if !fine {
        found.add(
            OneOutcome,
            &[],
            format!("question {id} ended as {:?}, and nobody did that", outcome(question)),
        );
    }
}
