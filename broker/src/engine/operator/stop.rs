//! Stopping agents and starting them again.
//!
//! Invariant: while an agent is stopped no turn of it begins, whichever harness asks and however
//! often the broker restarts. If a turn runs when the agent is stopped, its harness ends the turn.

use std::sync::Arc;

use hive_core::agent::Agent;
use hive_core::caller::Caller;
use hive_core::event::Facts;

use super::etag::{Etags, Target};
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent;
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;

impl Engine {
    /// Stops an agent, or starts it again. No effect if it is in that state already.
    pub async fn set_stopped(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
        stopped: bool,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        let target = target.into();
        let (wanted, detail) = (target.name.clone(), format!("by {}", caller.name()));
        let log_id = Arc::clone(&self.log_id);
        self.command(caller, request, move |tx| {
            let row = actor::active(tx, target.name.as_str())?;
            Etags::new(&log_id).check_agent(&target, &row)?;
            if row.stopped == stopped {
                return Ok(());
            }
            agent::set_stopped(tx, row.key, stopped)?;
            let facts = if stopped { Facts::AgentStopped } else { Facts::AgentStarted };
            log(tx, Fact::about(facts, row.key).detail(&detail));
            Ok(())
        })
        .await?;
        self.get_agent(wanted).await
    }
}
