//! `hivectl agents`: the list of agents.

use clap::Args;

use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::agent::Agent;

#[derive(Args, Debug)]
pub(crate) struct Agents {
    /// Retired ones too
    #[arg(long)]
    all: bool,
}

impl Agents {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let agents: Vec<Agent> =
            fetch::agents(&context.broker().await?, self.all, fetch::ALL).await?;
        context.out.list(&agents)
    }
}
