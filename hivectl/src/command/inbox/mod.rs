//! `hivectl inbox`: the operator's mail, or an agent's deliveries.

mod ack;
mod follow;
mod list;
mod read;
pub(crate) mod thread;

use clap::{Args, Subcommand};

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;

/// The operator's mail, or an agent's deliveries.
///
/// Reading changes nothing: the operator's mail stays unread until it is acked or answered.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Inbox {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: list::List,
}

/// The verbs; without one the inbox is listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List an inbox; for an agent whose name is also a verb here
    List(list::List),
    /// Show a delivery with its whole body
    Read(read::Read),
    /// Mark mail as done
    Ack(ack::Ack),
}

impl Inbox {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self.verb {
            None => self.list.run(context).await?,
            Some(Verb::List(list)) => list.run(context).await?,
            Some(Verb::Read(read)) => read.run(context).await?,
            Some(Verb::Ack(ack)) => return ack.run(context).await,
        }
        Ok(Exit::Ok)
    }
}
