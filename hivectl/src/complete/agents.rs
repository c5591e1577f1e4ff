//! Names of agents.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::ListAgentsRequest;

use super::candidate::Candidate;
use super::live::live;
use crate::connect::{Broker, all_pages};
use crate::error::Failure;

/// Agents of one page; the most that the broker gives.
const PAGE_AGENTS: u32 = 1000;

/// Names of agents.
pub(crate) fn agents() -> ArgValueCompleter {
    live(|broker, _| async move { names(&broker).await })
}

/// Names of agents, and `operator`.
pub(crate) fn agents_and_operator() -> ArgValueCompleter {
    live(|broker, _| async move {
        let mut names = names(&broker).await?;
        names.push(Candidate::word(OPERATOR));
        Ok(names)
    })
}

/// The names of all agents.
pub(super) async fn names(broker: &Broker) -> Result<Vec<Candidate>, Failure> {
    all_pages(|page_token| async {
        let request =
            ListAgentsRequest { page_size: PAGE_AGENTS, page_token, include_retired: false };
        let page = broker.read(broker.topology().list_agents(request)).await?;
        Ok((
            page.agents.into_iter().map(|agent| Candidate::word(agent.name)).collect(),
            page.next_page_token,
        ))
    })
    .await
}
