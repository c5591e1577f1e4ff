//! The notices about a question: its target gets the question once, and each agent concerned gets
//! its end once, by the table of the contract.
//!
//! Silent: if the asker or the target was retired.

use super::Found;
use crate::index::Index;
use crate::noun::{Kind, Origin, QuestionSeen, QuestionState};
use crate::violation::Rule::OneOutcome;

pub(crate) fn check(index: &Index<'_>, found: &mut Found) {
    let mut told: std::collections::HashMap<u64, Vec<(&str, Kind, u64)>> =
        std::collections::HashMap::new();
    for message in &index.last.messages {
        let Origin::System(kind) = message.origin else { continue };
        if message.question != 0 {
            let to = message.recipients.first().map_or("", String::as_str);
            told.entry(message.question).or_default().push((to, kind, message.id));
        }
    }
    for question in &index.last.questions {
        let told = told.remove(&question.id).unwrap_or_default();
        let of = |agent: &str, wanted: Kind| {
            told.iter().filter(|(to, kind, _)| *to == agent && *kind == wanted).count()
        };
        let asks = of(&question.target, Kind::QuestionAsked);
        if asks != 1
            || !told
                .iter()
                .any(|(_, kind, id)| *kind == Kind::QuestionAsked && *id == question.message)
        {
            found.add(
                OneOutcome,
                &[],
                format!("question {} was put to {} {asks} times", question.id, question.target),
            );
        }
        let Some((asker, target)) = expected(question) else { continue };
        for (who, wanted) in [(&question.asker, asker), (&question.target, target)] {
            let ends: Vec<Kind> = told
                .iter()
                .filter(|(to, kind, _)| to == who && *kind != Kind::QuestionAsked)
                .map(|(_, kind, _)| *kind)
                .collect();
            if ends.len() != wanted
                || ends.iter().any(|kind| Some(*kind) != kind_of(question.state))
            {
                let what = format!(
                    "question {} ended as {:?} by {:?}: {who} was told {ends:?}, and should be told {wanted} times",
                    question.id, question.state, question.closed_by
                );
                found.add(OneOutcome, &[], what);
            }
        }
    }
}

fn kind_of(state: QuestionState) -> Option<Kind> {
    match state {
        QuestionState::Open => None,
        QuestionState::Answered => Some(Kind::QuestionAnswered),
        QuestionState::Expired => Some(Kind::QuestionExpired),
        QuestionState::Cancelled => Some(Kind::QuestionCancelled),
    }
}

/// Returns how many notices of the end the asker and the target get, or `None` if unknown.
fn expected(question: &QuestionSeen) -> Option<(usize, usize)> {
    let by_target = question.closed_by == question.target;
    let by_asker = question.closed_by == question.asker;
    match question.state {
        QuestionState::Open => Some((0, 0)),
        // By a grant of the asker: nothing is left to do for the operator.
        QuestionState::Answered if question.closed_by.is_empty() => Some((1, 0)),
        QuestionState::Answered => Some((1, usize::from(!by_target))),
        QuestionState::Expired => Some((1, 1)),
        QuestionState::Cancelled if question.closed_by.is_empty() => None,
        // A withdrawal by the operator is marked as read in the operator's own inbox.
        QuestionState::Cancelled => Some((usize::from(!by_asker), usize::from(!by_target))),
    }
}
