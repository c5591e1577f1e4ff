//! `hivectl agents`: who is there.

use clap::Args;
use hive_proto::v1::ListAgentsRequest;

use crate::connect::{Broker, all_pages};
use crate::context::Context;
use crate::error::Failure;
use crate::exit::Exit;
use crate::view::agent::Agent;

/// As many as a page may have: a round trip less for each that is saved.
const PAGE_AGENTS: u32 = 1000;

/// List the agents.
#[derive(Args, Debug)]
pub(crate) struct Agents {
    /// Retired ones too
    #[arg(long)]
    all: bool,
}

impl Agents {
    pub(crate) async fn run(self, context: &mut Context) -> Result<Exit, Failure> {
        let agents = list(&context.broker().await?, self.all).await?;
        context.out.list(&agents)?;
        Ok(Exit::Ok)
    }
}

/// All agents, by name.
pub(crate) async fn list(broker: &Broker, include_retired: bool) -> Result<Vec<Agent>, Failure> {
    let agents = all_pages(|page_token| async {
        let request = ListAgentsRequest { page_size: PAGE_AGENTS, page_token, include_retired };
        let page = broker.read(broker.topology().list_agents(request)).await?;
        Ok((page.agents, page.next_page_token))
    });
    Ok(agents.await?.into_iter().map(Agent::from).collect())
}
