//! Ids of what is open: questions, and reminders; and the options of a question.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::{Question, QuestionState, Reminder, ReminderState};

use super::candidate::{Candidate, is_plain};
use super::live::{ROWS_MAX, live};
use crate::fetch::{self, Whose};

/// Open questions, those to the operator first.
pub(crate) fn questions() -> ArgValueCompleter {
    live(|broker, line| async move {
        // Everyone's have those to the operator among them; each is offered once.
        let open = [QuestionState::Open];
        let mut questions: Vec<Question> = Vec::new();
        for whose in [Whose::target(OPERATOR), Whose::default()] {
            questions.extend(fetch::questions(&broker, &whose, &open, ROWS_MAX).await?);
        }
        let told = |Question { id, asker, target, text, .. }| {
            let whom = if target == OPERATOR { String::new() } else { format!(" {target}") };
            Candidate::told(id, &format!("{asker} asks{whom}: {text}"))
        };
        Ok(questions.into_iter().filter(|question| !line.has(question.id)).map(told).collect())
    })
}

/// The options of the question that the line names: by their text where it is a plain word, else by
/// their number.
pub(crate) fn options() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(question_id) = line.value::<u64>("id") else { return Ok(Vec::new()) };
        let options = fetch::question::<Question>(&broker, question_id).await?.options;
        let offered = |(place, option): (usize, &String)| {
            if is_plain(option) {
                return Some(Candidate::word(option));
            }
            // A number that is an option itself does not stand for the place of another.
            (!options.contains(&place.to_string())).then(|| Candidate::told(place, option))
        };
        Ok((1..).zip(&options).filter_map(offered).collect())
    })
}

/// Pending reminders.
pub(crate) fn reminders() -> ArgValueCompleter {
    live(|broker, line| async move {
        let pending = [ReminderState::Pending];
        let reminders: Vec<Reminder> = fetch::reminders(&broker, "", &pending, ROWS_MAX).await?;
        let told =
            |Reminder { id, agent, body, .. }| Candidate::told(id, &format!("of {agent}: {body}"));
        Ok(reminders.into_iter().filter(|reminder| !line.has(reminder.id)).map(told).collect())
    })
}
