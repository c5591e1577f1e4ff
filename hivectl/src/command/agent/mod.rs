//! `hivectl agent`: one agent.

mod create;
mod remove;
mod set_parent;
mod set_policy;
mod show;

use clap::Subcommand;

use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;

/// Show, create, remove or move an agent, or change what it may do.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Show all that is known of an agent
    Show(show::Show),
    /// Create an agent at run time
    Create(create::Create),
    /// Retire an agent: its mail is kept, its connections are closed
    Remove(remove::Remove),
    /// Move an agent in the tree
    SetParent(set_parent::SetParent),
    SetPolicy(set_policy::SetPolicy),
}

impl Agent {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self {
            Self::Show(show) => show.run(context).await,
            Self::Create(create) => create.run(context).await,
            Self::Remove(remove) => remove.run(context).await,
            Self::SetParent(set_parent) => set_parent.run(context).await,
            Self::SetPolicy(set_policy) => set_policy.run(context).await,
        }
    }
}
