//! `hivectl ask`: asks an agent a question, and with --wait prints the answer.

use std::time::Duration;

use clap::Args;
use hive_core::message::OPERATOR;
use hive_core::name::AgentName;
use hive_proto::v1::recipient::To;
use hive_proto::v1::{AskQuestionRequest, AskQuestionResponse, Recipient, WatchQuestionsRequest};

use crate::complete;
use crate::connect::{Broker, Questions, request_id, require, traced};
use crate::context::Context;
use crate::error::Failure;
use crate::feed::questions::{QuestionFeed, Step};
use crate::input::text_or_stdin;
use crate::output::note;
use crate::output::text::visible_line;
use crate::span::{span, wire};
use crate::view::question::Question;

/// Ask an agent; --wait prints the answer.
///
/// Prints the question's id; the question is on the broker's disk then, and its outcome arrives as
/// mail.
///
/// With --wait the answer is printed in place of the id: each choice on a line, then the text. The
/// exit code is 0 if the question was answered, 5 if it was cancelled and 6 if it expired. It is
/// also 6 without an answer within --timeout, and 1 after Ctrl-C; then the question stays open. A
/// restart of the broker does not end the wait.
#[derive(Args, Debug)]
pub(crate) struct Ask {
    /// The agent
    #[arg(add = complete::agents())]
    agent: String,
    /// The question; `-` reads it from stdin, without one final line break
    #[arg(allow_hyphen_values = true)]
    question: String,
    /// An answer to offer; may be repeated. Free text is accepted in any case
    #[arg(long = "option", value_name = "TEXT", allow_hyphen_values = true)]
    options: Vec<String>,
    /// More than one option may be chosen
    #[arg(long, requires = "options")]
    multi: bool,
    /// Time for which the question stays open, as 90s, 30m, 2h or 1d [default: until it is answered
    /// or cancelled]
    #[arg(long, value_name = "SPAN", value_parser = span)]
    ttl: Option<Duration>,
    /// Wait for the answer and print it; at most for --timeout, if that is given
    #[arg(long)]
    wait: bool,
}

impl Ask {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let request = AskQuestionRequest {
            request_id: request_id(),
            to: Some(recipient(&self.agent)?),
            text: text_or_stdin(self.question)?,
            options: self.options,
            multi: self.multi,
            ttl: self.ttl.map(wire),
            // The operator changes agents directly.
            effect: None,
        };
        let broker = context.broker().await?;
        let response = broker
            .change(broker.questions(), request, async |client: &mut Questions, request| {
                client.ask_question(traced(request)).await
            })
            .await?;
        // Only a turn that runs again repeats a question; the operator has no turn.
        let AskQuestionResponse { question, already_asked: _ } = response;
        let question: Question = require(question, "question")?;
        if self.wait {
            return wait(context, &broker, question.id, &self.agent).await;
        }
        context.out.one_as(&question, |question, _| question.id.to_string())
    }
}

fn recipient(name: &str) -> Result<Recipient, Failure> {
    let why = match name {
        OPERATOR => Some("the operator asks agents, not the operator".to_owned()),
        "*" => Some("everyone cannot be asked; ask one agent".to_owned()),
        name => AgentName::parse(name).err().map(|error| error.to_string()),
    };
    match why {
        Some(why) => Err(Failure::BadTarget { text: name.to_owned(), why }),
        None => Ok(Recipient { to: Some(To::Agent(name.to_owned())) }),
    }
}

async fn wait(context: &mut Context, broker: &Broker, id: u64, agent: &str) -> Result<(), Failure> {
    note(&format!("question {id} is asked; waiting for {}", visible_line(agent)));
    let timed_out = |seconds| Failure::AnswerTimedOut { id, seconds };
    let outcome = outcome(context, broker, id);
    let question = context.wait(outcome, timed_out, Failure::AnswerInterrupted { id }).await?;
    let failure = match question.state.as_deref() {
        Some("answered") => None,
        Some("expired") => Some(Failure::QuestionExpired { id }),
        Some(_) | None => Some(Failure::QuestionCancelled { id, by: question.closed_by.clone() }),
    };
    // A program gets the whole outcome, a person the answer, if there is one.
    if context.out.json || failure.is_none() {
        context.out.one_as(&question, Question::answer)?;
    }
    failure.map_or(Ok(()), Err)
}

async fn outcome(
    context: &Context,
    broker: &Broker,
    question_id: u64,
) -> Result<Question, Failure> {
    let request = WatchQuestionsRequest { question_id, ..WatchQuestionsRequest::default() };
    let mut feed = QuestionFeed::open(context, broker, request).await?;
    loop {
        match feed.next().await? {
            Step::Question(question) => {
                let question = Question::from(*question);
                if !question.is_open() {
                    return Ok(question);
                }
            }
            Step::SnapshotComplete | Step::Again => {}
        }
    }
}
