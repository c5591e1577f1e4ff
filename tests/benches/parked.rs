//! Parked agents: each has a connection, and a task that waits for its message.
//!
//! Invariant: an agent stays connected after its message, because the end of a connection is work
//! of the server, too.

use std::time::Instant;

use tokio::task::JoinSet;

use crate::rival::{Door, Parked};

/// Agents that connect at once.
const CONNECTING: usize = 32;

/// Connects agents and parks them; each task returns when its agent has its message.
pub(crate) async fn park(
    door: &Door,
    agents: usize,
) -> anyhow::Result<JoinSet<anyhow::Result<(Instant, Parked)>>> {
    let (mut parked, mut connecting) = (JoinSet::new(), JoinSet::new());
    for agent in 0..agents {
        let door = door.clone();
        connecting.spawn(async move { door.park(agent).await });
        if connecting.len() == CONNECTING || agent + 1 == agents {
            while let Some(agent) = connecting.join_next().await {
                let mut agent = agent??;
                parked.spawn(async move {
                    agent.message().await?;
                    Ok((Instant::now(), agent))
                });
            }
        }
    }
    anyhow::ensure!(parked.len() == agents, "all agents are parked");
    Ok(parked)
}
