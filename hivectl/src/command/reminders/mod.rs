//! `hivectl reminders`: what agents set themselves for later.

mod cancel;
mod list;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Failure;

/// What agents set themselves for later.
///
/// Without arguments: all that is pending, with the time that is left.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Reminders {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::List,
}

/// The verbs; without one they are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List reminders; for an agent whose name is also a verb here
    List(list::List),
    /// Withdraw pending reminders
    Cancel(cancel::Cancel),
}

impl Reminders {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Cancel(cancel)) => cancel.run(context).await,
        }
    }
}
