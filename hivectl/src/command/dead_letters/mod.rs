//! `hivectl dead-letters`: mail that used up its attempts.

mod list;
mod settle;
mod show;

use clap::{Args, Subcommand};
use hive_proto::v1::DeliveryKey;

use crate::connect::Settlement;
use crate::context::Context;
use crate::error::Failure;
use crate::view::delivery::Delivery;

/// Mail that used up its attempts.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DeadLetters {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::List,
}

/// The verbs; without one they are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List dead letters, oldest first
    List(list::List),
    /// Show one, with the last error and the end of the turn's output
    Show(show::Show),
    /// Put them back into their inboxes, with all attempts anew
    Redrive(settle::Which),
    /// Drop them; they are settled and never delivered
    Drop(settle::Which),
}

impl DeadLetters {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self.verb {
            None => self.list.run(context).await,
            Some(Verb::List(list)) => list.run(context).await,
            Some(Verb::Show(show)) => show.run(context).await,
            Some(Verb::Redrive(which)) => which.run(context, Settlement::Redrive).await,
            Some(Verb::Drop(which)) => which.run(context, Settlement::Drop).await,
        }
    }
}

/// The one dead letter with this id among them; a broadcast may have several.
fn the_one(letters: &[Delivery], id: u64, agent: Option<&str>) -> Result<DeliveryKey, Failure> {
    let of_id: Vec<&Delivery> = letters.iter().filter(|letter| letter.message.id == id).collect();
    match of_id.as_slice() {
        [] => Err(Failure::NoDeadLetter { id, agent: agent.map(str::to_owned) }),
        [letter] => Ok(DeliveryKey { agent: letter.agent.clone(), message_id: id }),
        several => Err(Failure::SeveralDeadLetters {
            id,
            agents: several.iter().map(|letter| letter.agent.clone()).collect(),
        }),
    }
}
