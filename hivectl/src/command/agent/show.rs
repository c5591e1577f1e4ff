//! `hivectl agent show`: all that is known of an agent.

use clap::Args;
use hive_proto::v1::GetAgentRequest;

use crate::complete;
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::agent::Agent;

/// Show all that is known of an agent.
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// Its name
    #[arg(add = complete::agents())]
    name: String,
}

impl Show {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let broker = context.broker().await?;
        let agent = broker
            .read(broker.topology().get_agent(GetAgentRequest { name: self.name }))
            .await?
            .agent;
        context.out.one(&Agent::from(agent.ok_or(Failure::Incomplete { field: "agent" })?))?;
        Ok(Exit::Ok)
    }
}
