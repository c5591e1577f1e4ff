//! `hivectl turn list`: turns, newest first.

use clap::Args;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::turn::Turn;

/// List turns, newest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Whose [default: everyone's]
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
        let turns: Vec<Turn> = fetch::turns(&broker, &agent, self.last).await?;
        context.out.list(&turns)
    }
}
