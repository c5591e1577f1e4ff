//! Ids of turns, and the models that an agent may run on.

use clap_complete::engine::ArgValueCompleter;
use hive_proto::v1::Agent;

use super::agents::names;
use super::candidate::{Candidate, is_plain};
use super::live::live;
use crate::fetch;
use crate::view::turn::Turn;

/// So many of the newest are offered.
const NEWEST: u32 = 50;

/// Names of agents, and the newest turns.
pub(crate) fn turns_and_agents() -> ArgValueCompleter {
    live(|broker, _| async move {
        let mut offered = names(&broker).await?;
        offered.extend(fetch::turns(&broker, "", NEWEST).await?.iter().map(told));
        Ok(offered)
    })
}

/// The models that the agent of the line may run on, where its configuration names them.
pub(crate) fn models() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(name) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        let agent: Agent = fetch::agent(&broker, name).await?;
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
        let turns: Vec<Turn> = fetch::turns(&broker, &agent, NEWEST).await?;
        Ok(turns.iter().filter(|turn| turn.outcome.is_none()).map(told).collect())
    })
}

fn told(turn: &Turn) -> Candidate {
    Candidate::told(turn.id, &format!("of {}: {}", turn.agent, turn.ending()))
}
