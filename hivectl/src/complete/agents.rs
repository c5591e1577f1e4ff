//! Names of agents.

use clap_complete::engine::ArgValueCompleter;
use hive_core::message::OPERATOR;
use hive_proto::v1::Agent;

use super::candidate::Candidate;
use super::live::live;
use crate::connect::Broker;
use crate::error::Failure;
use crate::fetch;

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
    let agents: Vec<Agent> = fetch::agents(broker, false, fetch::ALL).await?;
    Ok(agents.into_iter().map(|agent| Candidate::word(agent.name)).collect())
}
