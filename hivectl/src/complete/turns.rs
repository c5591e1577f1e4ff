//! Ids of turns.

use clap_complete::engine::ArgValueCompleter;
use hive_proto::v1::ListTurnsRequest;

use super::candidate::Candidate;
use super::live::live;
use crate::connect::Broker;
use crate::error::Failure;
use crate::view::turn::Turn;

/// So many of the newest are offered.
const NEWEST: u32 = 50;

/// The newest turns.
pub(crate) fn turns() -> ArgValueCompleter {
    live(|broker, _| async move { Ok(newest(&broker, String::new()).await?.iter().map(told).collect()) })
}

/// The open turn of the agent that the line names.
pub(crate) fn open_turns() -> ArgValueCompleter {
    live(|broker, line| async move {
        let Some(agent) = line.value::<String>("agent") else { return Ok(Vec::new()) };
        Ok(newest(&broker, agent).await?.iter().filter(|turn| turn.outcome.is_none()).map(told).collect())
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
