//! `hivectl questions`: decisions that agents need, and their outcomes.

use clap::{Args, Subcommand};
use hive_core::message::OPERATOR;
use hive_proto::v1::{CancelQuestionRequest, QuestionState};

use crate::command::choice::choice;
use crate::command::each::change_each;
use crate::complete;
use crate::connect::{self, request_id, require};
use crate::context::Context;
use crate::error::Failure;
use crate::fetch::{self, Whose};
use crate::view::question::{Closed, Question};

mod follow;

/// Questions to you, and with --all those of the whole hive.
///
/// Without arguments: the open questions to you, newest first, with the time that is left to answer
/// them. `hivectl answer ID` answers one.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Questions {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

/// The verbs. Without a verb, the questions are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List questions, newest first
    List(List),
    /// Show a question with its options and its outcome
    Show(Show),
    /// Withdraw open questions; their targets are notified
    Cancel(Cancel),
}

impl Questions {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Show(show)) => show.run(context).await,
            Some(Verb::Cancel(cancel)) => cancel.run(context).await,
        }
    }
}

const STATES: [(&str, QuestionState); 4] = [
    ("open", QuestionState::Open),
    ("answered", QuestionState::Answered),
    ("expired", QuestionState::Expired),
    ("cancelled", QuestionState::Cancelled),
];

/// List questions, newest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// List the questions of the whole hive, not only those to you
    #[arg(long)]
    all: bool,
    /// Only questions that this agent, or `operator`, asked; to any target without --target
    #[arg(long, value_name = "NAME", add = complete::agents_and_operator())]
    asker: Option<String>,
    /// Only questions to this agent, or to `operator`
    #[arg(long, value_name = "NAME", conflicts_with = "all", add = complete::agents_and_operator())]
    target: Option<String>,
    /// Only questions in this state; may be repeated [default: open]
    #[arg(long, value_name = "STATE", value_parser = choice(&STATES))]
    state: Vec<QuestionState>,
    /// At most this many, the newest first [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=500))]
    last: Option<u32>,
    /// Show each open question with text and options, then new ones, and a line for each closed
    /// one, until Ctrl-C
    #[arg(long, conflicts_with_all = ["state", "last"])]
    follow: bool,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let whose = self.whose();
        if self.follow {
            return follow::run(context, &broker, whose).await;
        }
        let states = if self.state.is_empty() { vec![QuestionState::Open] } else { self.state };
        let limit = self.last.map_or(fetch::ALL, |last| last as usize);
        let questions: Vec<Question> = fetch::questions(&broker, &whose, &states, limit).await?;
        context.out.list(&questions)
    }

    /// Returns the filter. Without --all, --asker and --target it selects the questions to the
    /// operator.
    fn whose(&self) -> Whose {
        let named = |name: &Option<String>| name.clone().unwrap_or_default();
        let only_to_operator = !self.all && self.asker.is_none() && self.target.is_none();
        Whose {
            asker: named(&self.asker),
            target: if only_to_operator { OPERATOR.to_owned() } else { named(&self.target) },
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The question
    #[arg(add = complete::questions())]
    id: u64,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let question: Question = fetch::question(&context.broker().await?, self.id).await?;
        context.out.one(&question)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Cancel {
    /// The questions
    #[arg(required = true, value_name = "ID", add = complete::questions())]
    ids: Vec<u64>,
}

impl Cancel {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        change_each(context, self.ids, async |question_id| {
            let request = CancelQuestionRequest { request_id: request_id(), question_id };
            let response = broker
                .change(broker.questions(), request, connect::Questions::cancel_question)
                .await?;
            Ok(Some(Closed(require(response.question, "question")?)))
        })
        .await
    }
}
