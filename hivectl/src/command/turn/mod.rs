//! `hivectl turn`: turns, commands to a harness, and mail that a cancelled turn held.

use clap::{Args, Subcommand};

use crate::connect::Settlement;
use crate::context::Context;
use crate::error::Failure;
use crate::view;
use crate::{complete, fetch};

pub(crate) mod held;
pub(crate) mod order;
mod show;

#[derive(Debug, Subcommand)]
pub(crate) enum Turn {
    /// List turns, newest first
    List(List),
    Show(show::Show),
    /// Cancel an agent's open turn; its mail is held until you release or drop it
    Cancel(order::Cancel),
    /// Compact an agent's conversation, once no turn runs.
    ///
    /// The model summarizes its conversation and continues with the summary, so that its context is
    /// small again. A running turn ends first. A parked agent is compacted, too.
    #[command(after_long_help = order::AFTER_HELP)]
    Compact(order::Target),
    /// Begin the agent's next turn with a fresh conversation
    NewSession(order::NewSession),
    /// Run the agent on another model from its next turn on
    Model(order::Model),
    /// The former name of `hivectl agent restart`
    #[command(hide = true, after_long_help = order::AFTER_HELP)]
    Restart(order::Target),
    /// Put mail that a cancelled turn held back into its inbox
    Release(held::Held),
    /// Drop mail that a cancelled turn held
    Drop(held::Held),
}

impl Turn {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        match self {
            Self::List(list) => list.run(context).await,
            Self::Show(show) => show.run(context).await,
            Self::Cancel(cancel) => cancel.run(context).await,
            Self::Compact(target) => target.compact(context).await,
            Self::NewSession(new_session) => new_session.run(context).await,
            Self::Model(model) => model.run(context).await,
            Self::Restart(target) => target.restart(context).await,
            Self::Release(held) => held.run(context, Settlement::Release).await,
            Self::Drop(held) => held.run(context, Settlement::Drop).await,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct List {
    /// The agent [default: all agents]
    #[arg(add = complete::agents())]
    agent: Option<String>,
    /// At most this many
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=500))]
    last: u32,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        let agent = self.agent.unwrap_or_default();
        let turns: Vec<view::turn::Turn> =
            fetch::turns(&broker, &agent, self.last as usize).await?;
        context.out.list(&turns)
    }
}
