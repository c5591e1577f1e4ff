//! Ids of what is open: questions, and reminders; and the options of a question.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::{
    GetQuestionRequest, ListQuestionsRequest, ListRemindersRequest, Question, QuestionState, Reminder, ReminderState,
};

use super::candidate::{Candidate, is_plain};
use super::live::live;

/// More are not looked through while somebody waits.
const ROWS: u32 = 500;

/// Open questions, those to the operator first.
pub(crate) fn questions() -> ArgValueCompleter {
    live(|broker, line| async move {
        let states = vec![QuestionState::Open.into()];
        let request = ListQuestionsRequest { page_size: ROWS, states, ..ListQuestionsRequest::default() };
        let mut questions = broker.read(broker.questions().list_questions(request)).await?.questions;
        questions.sort_by_key(|question| question.target != OPERATOR);
        let told = |Question { id, asker, target, text, .. }| {
            let whom = if target == OPERATOR { String::new() } else { format!(" {target}") };
            Candidate::told(id, &format!("{asker} asks{whom}: {text}"))
        };
        Ok(questions.into_iter().filter(|question| !line.has(question.id)).map(told).collect())
    })
}

/// The options of the question that the line names: by their text where it is a plain word, else by their number.
pub(crate) fn options() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(question_id) = line.value::<u64>("id") else { return Ok(Vec::new()) };
        let question = broker.read(broker.questions().get_question(GetQuestionRequest { question_id })).await?.question;
        let options = question.unwrap_or_default().options;
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
        let states = vec![ReminderState::Pending.into()];
        let request = ListRemindersRequest { page_size: ROWS, states, ..ListRemindersRequest::default() };
        let reminders = broker.read(broker.reminders().list_reminders(request)).await?.reminders;
        let told = |Reminder { id, agent, body, .. }| Candidate::told(id, &format!("of {agent}: {body}"));
        Ok(reminders.into_iter().filter(|reminder| !line.has(reminder.id)).map(told).collect())
    })
}
