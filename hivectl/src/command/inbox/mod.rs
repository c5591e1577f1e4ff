//! `hivectl inbox`: the operator's mail, or an agent's deliveries.

use clap::{Args, Subcommand};
use hive_core::message::OPERATOR;
use hive_proto::v1::DeliveryState;

use crate::command::choice::choice;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::delivery::Delivery;
use crate::{complete, fetch};

mod ack;
mod follow;
mod read;
pub(crate) mod thread;

/// The operator's mail, or an agent's deliveries.
///
/// Reading changes nothing: the operator's mail stays unread until it is acked or answered.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Inbox {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

/// The verbs; without one the inbox is listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List an inbox; for an agent whose name is also a verb of this command
    List(List),
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

const STATES: [(&str, DeliveryState); 7] = [
    ("ready", DeliveryState::Ready),
    ("leased", DeliveryState::Leased),
    ("held", DeliveryState::Held),
    ("dead", DeliveryState::Dead),
    ("acked", DeliveryState::Acked),
    ("dropped", DeliveryState::Dropped),
    ("superseded", DeliveryState::Superseded),
];

/// List an inbox.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// The owner of the inbox [default: the operator]
    #[arg(add = complete::agents_and_operator())]
    agent: Option<String>,
    /// Only deliveries in this state; may be repeated [default: all unsettled ones]
    #[arg(long, value_name = "STATE", value_parser = choice(&STATES))]
    state: Vec<DeliveryState>,
    /// Settled ones too, as long as they are kept
    #[arg(long, conflicts_with = "state")]
    all: bool,
    /// Show the mail in full, and continue with new mail, until Ctrl-C
    #[arg(long, conflicts_with_all = ["state", "all"])]
    follow: bool,
    /// One line for each thread, a message with all replies below it
    #[arg(long, conflicts_with = "follow")]
    threads: bool,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let inbox = self.agent.as_deref().unwrap_or(OPERATOR);
        if self.follow {
            return follow::run(context, &broker, inbox).await;
        }
        let states = if self.all { STATES.map(|(_, state)| state).to_vec() } else { self.state };
        let deliveries: Vec<Delivery> =
            fetch::deliveries(&broker, inbox, &states, fetch::ALL).await?;
        if self.threads {
            context.out.list(&thread::threads(&broker, deliveries).await?)?;
        } else {
            context.out.list(&deliveries)?;
        }
        Ok(())
    }
}
