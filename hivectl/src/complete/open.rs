//! Ids of what is open: questions, and reminders; and the options of a question.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::{
    GetQuestionRequest, ListQuestionsRequest, ListRemindersRequest, Question, QuestionState,
    Reminder, ReminderState,
};

use super::candidate::{Candidate, is_plain};
use super::live::{live, rows};
use crate::connect::Broker;
use crate::error::Failure;

/// Rows of one page; the most that the broker gives.
const PAGE_ROWS: u32 = 500;

/// Open questions, those to the operator first.
pub(crate) fn questions() -> ArgValueCompleter {
    live(|broker, line| async move {
        // Everyone's have those to the operator among them; each is offered once.
        let mut questions = open(&broker, OPERATOR).await?;
        questions.extend(open(&broker, "").await?);
        let told = |Question { id, asker, target, text, .. }| {
            let whom = if target == OPERATOR { String::new() } else { format!(" {target}") };
            Candidate::told(id, &format!("{asker} asks{whom}: {text}"))
        };
        Ok(questions.into_iter().filter(|question| !line.has(question.id)).map(told).collect())
    })
}

/// The open questions to somebody, or to anybody.
async fn open(broker: &Broker, target: &str) -> Result<Vec<Question>, Failure> {
    rows(|page_token| async {
        let (states, target) = (vec![QuestionState::Open.into()], target.to_owned());
        let request = ListQuestionsRequest {
            page_size: PAGE_ROWS,
            page_token,
            states,
            asker: String::new(),
            target,
        };
        let page = broker.read(broker.questions().list_questions(request)).await?;
        Ok((page.questions, page.next_page_token))
    })
    .await
}

/// The options of the question that the line names: by their text where it is a plain word, else by
/// their number.
pub(crate) fn options() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(question_id) = line.value::<u64>("id") else { return Ok(Vec::new()) };
        let question = broker
            .read(broker.questions().get_question(GetQuestionRequest { question_id }))
            .await?
            .question;
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
        let reminders = rows(|page_token| async {
            let states = vec![ReminderState::Pending.into()];
            let request = ListRemindersRequest {
                page_size: PAGE_ROWS,
                page_token,
                agent: String::new(),
                states,
            };
            let page = broker.read(broker.reminders().list_reminders(request)).await?;
            Ok((page.reminders, page.next_page_token))
        });
        let told =
            |Reminder { id, agent, body, .. }| Candidate::told(id, &format!("of {agent}: {body}"));
        Ok(reminders
            .await?
            .into_iter()
            .filter(|reminder| !line.has(reminder.id))
            .map(told)
            .collect())
    })
}
