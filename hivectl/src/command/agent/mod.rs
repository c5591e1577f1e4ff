//! `hivectl agent`: one agent.

mod create;
mod remove;
mod set_parent;
mod set_policy;
mod show;
mod stop;

use clap::Subcommand;

use super::turn::order::Restart;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;

/// Show, create, start, stop, restart, remove or move an agent, or change what it may do.
#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// Show all that is known of an agent
    Show(show::Show),
    /// Create an agent at run time
    Create(create::Create),
    Start(stop::Start),
    Stop(stop::Stop),
    /// Hand back the agent's running turn and start its harness again
    Restart(Restart),
    /// Retire an agent: its mail is kept, its connections are closed; with --purge, nothing is kept
    /// but what it sent
    Remove(remove::Remove),
    /// Move an agent in the tree
    SetParent(set_parent::SetParent),
    SetPolicy(set_policy::SetPolicy),
}

impl Agent {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        match self {
            Self::Show(show) => show.run(context).await?,
            Self::Create(create) => create.run(context).await?,
            Self::Start(start) => start.run(context).await?,
            Self::Stop(stop) => stop.run(context).await?,
            Self::Restart(restart) => restart.run(context).await?,
            Self::Remove(remove) => return remove.run(context).await,
            Self::SetParent(set_parent) => set_parent.run(context).await?,
            Self::SetPolicy(set_policy) => set_policy.run(context).await?,
        }
        Ok(Exit::Ok)
    }
}
