//! `hivectl questions [list]`: what waits on the operator, or on others.

use clap::Args;
use hive_core::message::OPERATOR;
use hive_proto::v1::QuestionState;

use super::follow;
use crate::command::choice::choice;
use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch::{self, Whose};
use crate::view::question::Question;

/// Where a question stands.
const STATES: [(&str, QuestionState); 4] = [
    ("open", QuestionState::Open),
    ("answered", QuestionState::Answered),
    ("expired", QuestionState::Expired),
    ("cancelled", QuestionState::Cancelled),
];

/// List questions, newest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Everyone's, not only those that you are asked
    #[arg(long)]
    all: bool,
    /// Only those that this agent asked, or `operator`, whoever is asked
    #[arg(long, value_name = "NAME", add = complete::agents_and_operator())]
    asker: Option<String>,
    /// Only those that this agent is asked, or `operator`
    #[arg(long, value_name = "NAME", conflicts_with = "all", add = complete::agents_and_operator())]
    target: Option<String>,
    /// Only those that stand so; may be repeated [default: open]
    #[arg(long, value_name = "STATE", value_parser = choice(&STATES))]
    state: Vec<QuestionState>,
    /// Only so many of the newest [default: all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=500))]
    last: Option<u32>,
    /// Show the open ones in full, and go on with what is asked and what is closed, until Ctrl-C
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
        let most = self.last.map_or(fetch::ALL, |last| last as usize);
        let questions: Vec<Question> = fetch::questions(&broker, &whose, &states, most).await?;
        context.out.list(&questions)
    }

    /// Who is not named is anybody; where nobody is named, it is the operator who is asked.
    fn whose(&self) -> Whose {
        let named = |name: &Option<String>| name.clone().unwrap_or_default();
        let nobody = !self.all && self.asker.is_none() && self.target.is_none();
        Whose {
            asker: named(&self.asker),
            target: if nobody { OPERATOR.to_owned() } else { named(&self.target) },
        }
    }
}
