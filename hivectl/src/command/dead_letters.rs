//! `hivectl dead-letters`: mail that used up its attempts.

use clap::{Args, Subcommand};
use hive_proto::v1::DeliveryKey;

use crate::command::turn::held::settle;
use crate::connect::{Broker, Settlement};
use crate::context::Context;
use crate::error::Failure;
use crate::output::note;
use crate::view::delivery::{DeadLetter, Delivery};
use crate::{complete, fetch};

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct DeadLetters {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    list: List,
}

/// The verbs; without one they are listed.
#[derive(Debug, Subcommand)]
enum Verb {
    /// List dead letters, oldest first
    List(List),
    /// Show one, with the last error and the end of the turn's output
    Show(Show),
    /// Put them back into their inboxes, with all attempts
    Redrive(Which),
    /// Drop them; they are settled and never delivered
    Drop(Which),
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

/// Returns the one dead letter with this id among them; a broadcast may have several.
fn find_key(letters: &[Delivery], id: u64, agent: Option<&str>) -> Result<DeliveryKey, Failure> {
    let matching: Vec<&Delivery> =
        letters.iter().filter(|letter| letter.message.id == id).collect();
    match matching.as_slice() {
        [] => Err(Failure::NoDeadLetter { id, agent: agent.map(str::to_owned) }),
        [letter] => Ok(DeliveryKey { agent: letter.agent.clone(), message_id: id }),
        several => Err(Failure::SeveralDeadLetters {
            id,
            agents: several.iter().map(|letter| letter.agent.clone()).collect(),
        }),
    }
}

/// List dead letters, oldest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only dead letters of this inbox
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let (broker, agent) = (context.broker().await?, self.agent.unwrap_or_default());
        let letters: Vec<DeadLetter> = fetch::dead_letters(&broker, &agent, fetch::ALL).await?;
        context.out.list(&letters)
    }
}

#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The message
    #[arg(add = complete::dead_letters())]
    id: u64,
    /// The inbox, if the message died in several
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let agent = self.agent.as_deref();
        let broker = context.broker().await?;
        let letters: Vec<Delivery> =
            fetch::dead_letters(&broker, agent.unwrap_or_default(), fetch::ALL).await?;
        let key = find_key(&letters, self.id, agent)?;
        for letter in letters
            .iter()
            .filter(|letter| letter.message.id == key.message_id && letter.agent == key.agent)
        {
            context.out.one(letter)?;
        }
        Ok(())
    }
}

#[derive(Args, Debug)]
pub(crate) struct Which {
    /// The messages
    #[arg(value_name = "ID", required_unless_present = "all", add = complete::dead_letters())]
    ids: Vec<u64>,
    /// The inbox, if a message died in several
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
    /// All dead letters; with --agent all of that inbox
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

impl Which {
    pub(crate) async fn run(
        self,
        context: &mut Context,
        settlement: Settlement,
    ) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let keys = self.keys(&broker).await?;
        settle(context, &broker, keys, settlement).await
    }

    async fn keys(self, broker: &Broker) -> Result<Vec<DeliveryKey>, Failure> {
        let agent = self.agent.as_deref();
        let letters: Vec<Delivery> =
            fetch::dead_letters(broker, agent.unwrap_or_default(), fetch::ALL).await?;
        if self.all {
            if letters.is_empty() {
                note(&agent.map_or_else(
                    || "there are no dead letters".to_owned(),
                    |agent| format!("{agent} has no dead letters"),
                ));
            }
            return Ok(letters
                .into_iter()
                .map(|letter| DeliveryKey { agent: letter.agent, message_id: letter.message.id })
                .collect());
        }
        self.ids.into_iter().map(|id| find_key(&letters, id, agent)).collect()
    }
}
