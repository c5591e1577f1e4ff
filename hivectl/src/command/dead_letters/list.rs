//! `hivectl dead-letters [list]`: all dead letters, oldest first.

use clap::Args;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::delivery::DeadLetter;

/// List dead letters, oldest first.
#[derive(Args, Debug)]
pub(crate) struct List {
    /// Only of this inbox
    #[arg(long, value_name = "NAME", add = complete::agents())]
    agent: Option<String>,
}

impl List {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let letters = super::dead_letters(&context.broker().await?, self.agent.as_deref()).await?;
        let letters: Vec<DeadLetter> = letters.into_iter().map(DeadLetter).collect();
        context.out.list(&letters)?;
        Ok(Exit::Ok)
    }
}
