//! `hivectl agent show`: all that is known of an agent.

use clap::Args;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::fetch;
use crate::view::agent::Agent;

/// Show all that is known of an agent.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Its name
    #[arg(add = complete::agents())]
    name: String,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<(), Failure> {
        let broker = context.broker().await?;
        context.out.one(&fetch::agent::<Agent>(&broker, self.name).await?)
    }
}
