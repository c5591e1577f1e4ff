//! `hivectl dead-letters [list]`: all dead letters, oldest first.

use clap::Args;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::delivery::DeadLetter;

/// List dead letters, oldest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only of this inbox
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
