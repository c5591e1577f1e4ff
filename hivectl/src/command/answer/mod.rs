//! `hivectl answer`: the operator's answer to a question.

mod choose;

use clap::Args;
use hive_core::effect::APPROVE;
use hive_proto::v1::AnswerQuestionRequest;

use crate::complete;
use crate::connect::{Questions, request_id, require, traced};
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::input::{self, text_or_stdin};
use crate::view::question::{Closed, Question};

/// Answer a question; on a terminal you are asked for what you leave out.
///
/// Any question can be answered, also one that an agent is asked: then you answer in its place, and
/// the agent is notified. A question that asks for an approval shows what it would change; to
/// approve it makes exactly that change, or none. If a question is closed already, this ends with
/// exit code 5 and names the outcome.
#[derive(Args, Debug)]
pub(crate) struct Answer {
    /// The question
    #[arg(add = complete::questions())]
    id: u64,
    /// Free text, also beside a choice; `-` reads it from stdin, without one final line break
    text: Option<String>,
    /// An option, by its text or its number; may be repeated if several may be chosen
    #[arg(long = "choice", value_name = "OPTION", allow_hyphen_values = true, add = complete::options())]
    choices: Vec<String>,
    /// The changes that are approved, by the `diff_digest` that `hivectl questions show --json`
    /// prints; only for `--choice approve`
    #[arg(long = "diff", value_name = "DIGEST")]
    diff: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Given {
    choices: Vec<String>,
    text: String,
}

impl Answer {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let question_id = self.id;
        let nothing = self.text.is_none() && self.choices.is_empty();
        if nothing && !input::is_terminal() {
            return Err(Failure::NoAnswer { id: question_id });
        }
        let text = self.text.map(text_or_stdin).transpose()?.unwrap_or_default();
        let broker = context.broker().await?;
        let mut digest = self.diff;
        let Given { choices, text } = if nothing {
            let question: Question = fetch::question(&broker, question_id).await?;
            let given = choose::ask(&question, &context.out.style).await?;
            // What was on the terminal is what is approved.
            digest = question.approval.and_then(|approval| approval.diff_digest);
            given
        } else if self.choices.is_empty() {
            Given { choices: Vec::new(), text }
        } else {
            let question: Question = fetch::question(&broker, question_id).await?;
            let choices: Vec<String> = self
                .choices
                .iter()
                .map(|choice| choose::option(&question.options, choice))
                .collect();
            let approves = question.approval.is_some() && choices.iter().any(|it| it == APPROVE);
            if approves && question.is_open() && digest.is_none() {
                return Err(Failure::NoDiff { id: question_id });
            }
            Given { choices, text }
        };
        let request = AnswerQuestionRequest {
            request_id: request_id(),
            question_id,
            choices,
            text,
            diff_digest: digest.unwrap_or_default(),
        };
        let response = broker
            .change(broker.questions(), request, async |client: &mut Questions, request| {
                client.answer_question(traced(request)).await
            })
            .await?;
        context.out.one(&Closed(require(response.question, "question")?))
    }
}
