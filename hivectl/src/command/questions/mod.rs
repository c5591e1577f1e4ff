//! `hivectl questions`: who needs a decision, and what became of it.

mod cancel;
mod follow;
mod list;
mod show;

use clap::{Args, Subcommand};
use hive_proto::v1::{GetQuestionRequest, ListQuestionsRequest, QuestionState};

use crate::connect::{Broker, all_pages};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::question::Question;

/// What waits for your answer, and everyone's questions.
///
/// Without arguments: the open questions that you are asked, newest first, with the time that is
/// left to answer them. `hivectl answer ID` answers one.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Questions {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::List,
}

/// The verbs; without one they are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List questions, newest first
    List(list::List),
    /// Show a question with its options and its outcome
    Show(show::Show),
    /// Withdraw open questions; who was asked is told
    Cancel(cancel::Cancel),
}

impl Questions {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Show(show)) => show.run(context).await,
            Some(Verb::Cancel(cancel)) => cancel.run(context).await,
        }
    }
}

/// Whose questions; an empty name is anybody.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whose {
    pub(crate) asker: String,
    pub(crate) target: String,
}

/// The questions in some states, newest first; all of them, or the newest.
async fn questions(
    broker: &Broker,
    whose: &Whose,
    states: &[QuestionState],
    last: Option<u32>,
) -> Result<Vec<Question>, Failure> {
    let states: Vec<i32> = states.iter().map(|state| i32::from(*state)).collect();
    let questions = all_pages(|page_token| async {
        let Whose { asker, target } = whose.clone();
        let request = ListQuestionsRequest {
            page_size: last.unwrap_or(500),
            page_token,
            states: states.clone(),
            asker,
            target,
        };
        let page = broker.read(broker.questions().list_questions(request)).await?;
        let next = if last.is_some() { String::new() } else { page.next_page_token };
        Ok((page.questions, next))
    });
    Ok(questions.await?.into_iter().map(Question::from).collect())
}

/// One question.
pub(crate) async fn question(broker: &Broker, question_id: u64) -> Result<Question, Failure> {
    let question = broker
        .read(broker.questions().get_question(GetQuestionRequest { question_id }))
        .await?
        .question;
    Ok(question.ok_or(Failure::Incomplete { field: "question" })?.into())
}
