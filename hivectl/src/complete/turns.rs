//! Ids of turns, and the models that an agent may run on.

use clap_complete::engine::ArgValueCompleter;
use hive_proto::v1::{GetAgentRequest, ListTurnsRequest};

use super::agents::names;
use super::candidate::{Candidate, is_plain};
use super::live::live;
use crate::connect::Broker;
use crate::error::Failure;
use crate::view::turn::Turn;

/// So many of the newest are offered.
const NEWEST: u32 = 50;

/// Names of agents, and the newest turns.
pub(crate) fn turns_and_agents() -> ArgValueCompleter {
    live(|broker, _| async move {
        let mut offered = names(&broker).await?;
        offered.extend(newest(&broker, String::new()).await?.iter().map(told));
        Ok(offered)
    })
}

/// The models that the agent of the line may run on, where its configuration names them.
pub(crate) fn models() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(name) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        let agent = broker
            .read(broker.topology().get_agent(GetAgentRequest { name }))
            .await?
            .agent
            .unwrap_or_default();
        Ok(agent
            .available_models
            .into_iter()
            .filter(|model| is_plain(model))
            .map(Candidate::word)
            .collect())
    })
}

/// The open turn of the agent that the line names.
pub(crate) fn open_turns() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(agent) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        Ok(newest(&broker, agent)
            .await?
            .iter()
            .filter(|turn| turn.outcome.is_none())
            .map(told)
            .collect())
    })
}

async fn newest(broker: &Broker, agent: String) -> Result<Vec<Turn>, Failure> {
    let request = ListTurnsRequest { page_size: NEWEST, page_token: String::new(), agent };
    let turns = broker.read(broker.turns().list_turns(request)).await?.turns;
    Ok(turns.into_iter().map(Turn::from).collect())
}

fn told(turn: &Turn) -> Candidate {
    Candidate::told(turn.id, &format!("of {}: {}", turn.agent, turn.ending()))
}
