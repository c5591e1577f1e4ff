//! Starting, stopping and restarting agents: by the operator, and by agents above them.
//!
//! Invariants: while an agent is stopped no turn of it begins, whichever harness asks and however
//! often the broker restarts. If a turn runs when the agent is stopped, its harness ends the turn.
//! An agent decides about those below it, and never about itself.

use std::sync::Arc;

use hive_core::agent::{Agent, LIFECYCLE, MANAGE_SUBTREE};
use hive_core::caller::Caller;
use hive_core::event::Facts;
use hive_core::name::AgentName;

use crate::engine::actor::{self, Actor, check_started};
use crate::engine::error::AgentError;
use crate::engine::operator::etag::{Etags, Target};
use crate::engine::{Engine, Refusal};
use crate::store::agent::{self, AgentRow};
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::{Tx, wanted};

/// A change of how an agent is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Its harness shall run: always, on demand, or as before.
    Start {
        /// Whether on demand; `None`: as before.
        on_demand: Option<bool>,
    },
    /// Its harness shall not run.
    Stop,
    /// Its harness shall be replaced by a fresh one.
    Restart,
}

impl Wish {
    /// Returns the name of the call, for the log.
    fn name(self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Stop => "stop",
            Self::Restart => "restart",
        }
    }
}

impl Engine {
    /// Changes how an agent is wanted, for the operator. No effect if it is wanted so already.
    pub async fn wish(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
        wish: Wish,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        let target = target.into();
        let (wanted, who) = (target.name.clone(), caller.name().to_owned());
        let log_id = Arc::clone(&self.log_id);
        self.command(caller, request, move |tx| {
            let row = actor::active(tx, target.name.as_str())?;
            Etags::new(&log_id).check_agent(&target, &row)?;
            apply(tx, &row, wish, &who)
        })
        .await?;
        self.get_agent(wanted).await
    }

    /// Changes how an agent below the caller is wanted.
    pub async fn wish_below(
        &self,
        actor: Actor,
        request: RequestKey,
        name: AgentName,
        wish: Wish,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        actor.check_agent()?;
        let wanted = name.clone();
        self.act(wish.name(), actor, request, move |admission| {
            let (tx, me) = (admission.tx, admission.me);
            admission.turn(LIFECYCLE)?;
            let row = actor::active(tx, name.as_str())?;
            check_below(tx, me, &row)?;
            admission.take_rate()?;
            apply(tx, &row, wish, &me.name)
        })
        .await?;
        self.get_agent(wanted).await
    }
}

/// Refuses an agent that is not below another: not a direct child, or with the capability
/// `manage_subtree` not a descendant.
pub(super) fn check_below(tx: &Tx<'_>, me: &AgentRow, row: &AgentRow) -> Result<(), Refusal> {
    let refused = || AgentError::NotBelow { agent: row.name.clone() }.into();
    let (mut parent, mut seen) = (row.parent, vec![row.key]);
    while let Some(key) = parent.filter(|key| !seen.contains(key)) {
        if key == me.key && row.key != me.key {
            return Ok(());
        }
        if !me.policy.has_capability(MANAGE_SUBTREE) {
            break;
        }
        seen.push(key);
        parent = agent::by_key(tx, key)?.parent;
    }
    Err(refused())
}

/// Stores a change, unless the agent is wanted so already.
pub(crate) fn apply(tx: &Tx<'_>, row: &AgentRow, wish: Wish, who: &str) -> Result<(), Refusal> {
    let by =
        |how: &str| if how.is_empty() { format!("by {who}") } else { format!("{how}, by {who}") };
    let (facts, detail) = match wish {
        Wish::Start { on_demand } => {
            let on_demand = on_demand.unwrap_or(row.on_demand);
            if (row.stopped, row.on_demand) == (false, on_demand) {
                return Ok(());
            }
            wanted::set_wanted(tx, row.key, false, on_demand)?;
            (Facts::AgentStarted, by(if on_demand { "on demand" } else { "" }))
        }
        Wish::Stop if row.stopped => return Ok(()),
        Wish::Stop => {
            wanted::set_wanted(tx, row.key, true, row.on_demand)?;
            (Facts::AgentStopped, by(""))
        }
        Wish::Restart => {
            check_started(row)?;
            wanted::request_restart(tx, row.key)?;
            (Facts::RestartRequested, by(""))
        }
    };
    log(tx, Fact::about(facts, row.key).detail(&detail));
    Ok(())
}
