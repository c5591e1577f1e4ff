//! `hivectl questions`: who needs a decision, and what became of it.

mod cancel;
mod follow;
mod list;
mod show;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Failure;

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
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Show(show)) => show.run(context).await,
            Some(Verb::Cancel(cancel)) => cancel.run(context).await,
        }
    }
}
