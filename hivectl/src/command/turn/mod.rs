//! `hivectl turn`: turns, commands to a harness, and what a cancelled turn left behind.

pub(crate) mod held;
mod list;
pub(crate) mod order;
mod show;

use clap::Subcommand;

use crate::connect::Settlement;
use crate::context::Context;
use crate::error::Failure;

/// Turns: what ran, what runs, and commands to a harness. Where a verb says nothing here, its own
/// file says it, also at length.
#[derive(Debug, Subcommand)]
pub(crate) enum Turn {
    /// List turns, newest first
    List(list::List),
    Show(show::Show),
    /// Cancel an agent's open turn; its mail is held until you release or drop it
    Cancel(order::Cancel),
    Compact(order::Compact),
    /// Begin the agent's next turn with a fresh conversation
    NewSession(order::NewSession),
    /// Run the agent on another model from its next turn on
    Model(order::Model),
    /// The former name of `hivectl agent restart`
    #[command(hide = true)]
    Restart(order::Restart),
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
            Self::Compact(compact) => compact.run(context).await,
            Self::NewSession(new_session) => new_session.run(context).await,
            Self::Model(model) => model.run(context).await,
            Self::Restart(restart) => restart.run(context).await,
            Self::Release(held) => held.run(context, Settlement::Release).await,
            Self::Drop(held) => held.run(context, Settlement::Drop).await,
        }
    }
}
