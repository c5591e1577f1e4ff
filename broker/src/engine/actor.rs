//! Actors: the caller of a use case, found in the database, with the turn it acts in.
//!
//! Invariant: while a harness has a session, its agent acts only through a process that shows the
//! token of an open turn; so a bridge that outlived its turn, or a shell that dropped the token,
//! can neither send nor take mail.

use crate::engine::error::{AgentError, HarnessError, TurnError};
use std::borrow::Borrow as _;

use hive_core::caller::Caller;
use hive_core::message::OPERATOR;
use hive_core::name::nearest;

use super::Refusal;
use super::trace::Cause;
use crate::store::agent::{self, AgentRow, Agents};
use crate::store::turn::{self, TurnRow};
use crate::store::{AgentKey, Tx};

/// The caller, and the process of the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    /// The caller whose authority the call has.
    pub caller: Caller,
    /// The token of the claude process that made the call, if it showed one.
    pub process_token: Option<String>,
    /// What the caller states about the cause of the call.
    pub cause: Cause,
}

/// Refuses an agent whose policy does not have this tool group. Calls of a bridge and of any other
/// client of the socket are treated alike.
pub(crate) fn check_group(
    caller: &Caller,
    me: &AgentRow,
    group: &'static str,
) -> Result<(), Refusal> {
    if caller.agent().is_none() || me.policy.has_group(group) {
        Ok(())
    } else {
        Err(Refusal::GroupMissing { group })
    }
}

impl Actor {
    /// Refuses a call of the operator.
    pub(crate) fn check_agent(&self) -> Result<(), Refusal> {
        self.caller.agent().map(|_| ()).ok_or(Refusal::NotAnAgent)
    }

    /// Returns the caller's row.
    pub(crate) fn row<A: Agents>(&self, agents: &A) -> Result<A::Row, Refusal> {
        row(agents, &self.caller)
    }

    /// Returns the open turn of the call; `None` for an agent without a harness.
    pub(crate) fn turn(&self, tx: &Tx<'_>, me: &AgentRow) -> Result<Option<TurnRow>, Refusal> {
        match (&self.process_token, &me.session_token) {
            (Some(token), _) => turn::open_of_process(tx, me.key, token)?
                .map(Some)
                .ok_or(Refusal::from(TurnError::Ended)),
            (None, Some(_)) => Err(HarnessError::Serving { agent: me.name.clone() }.into()),
            (None, None) => Ok(None),
        }
    }
}

/// Returns the row of a caller.
pub(crate) fn row<A: Agents>(agents: &A, caller: &Caller) -> Result<A::Row, Refusal> {
    match caller {
        Caller::Operator(_) => Ok(agent::by_key(agents, AgentKey::OPERATOR)?),
        Caller::Agent(name) => active(agents, name.as_str()),
    }
}

/// Returns the active agent of this name; if there is none, the refusal has the nearest names.
pub(crate) fn active<A: Agents>(agents: &A, name: &str) -> Result<A::Row, Refusal> {
    let row = known(agents, name)?;
    if row.borrow().retired {
        return Err(Refusal::from(AgentError::Retired { name: row.borrow().name.clone() }));
    }
    Ok(row)
}

/// Returns the agent of this name, retired or not.
pub(crate) fn known<A: Agents>(agents: &A, name: &str) -> Result<A::Row, Refusal> {
    match agent::by_name(agents, name)? {
        Some(row) if row.borrow().key != AgentKey::OPERATOR => Ok(row),
        _ => {
            let names = agent::names(agents)?;
            let nearest = nearest(name, names.iter().map(String::as_str))
                .into_iter()
                .map(str::to_owned)
                .collect();
            Err(Refusal::from(AgentError::NotFound { name: name.to_owned(), nearest }))
        }
    }
}

/// Returns the caller's row, if the session is the present one.
pub(crate) fn session<A: Agents>(
    agents: &A,
    caller: &Caller,
    session_token: &str,
) -> Result<A::Row, Refusal> {
    let row = row(agents, caller)?;
    let me = row.borrow();
    if me.session_token.as_deref() != Some(session_token) && !hive_fault::planted!(SessionUnchecked)
    {
        return Err(HarnessError::SessionLost { agent: me.name.clone() }.into());
    }
    Ok(row)
}

/// Refuses work for a stopped agent.
pub(crate) fn check_started(row: &AgentRow) -> Result<(), Refusal> {
    if row.stopped && !hive_fault::planted!(StoppedRuns) {
        return Err(Refusal::from(AgentError::Stopped { agent: row.name.clone() }));
    }
    Ok(())
}

/// Returns the agent of this name, or the operator.
pub(crate) fn owner<A: Agents>(agents: &A, name: &str) -> Result<A::Row, Refusal> {
    if name == OPERATOR {
        Ok(agent::by_key(agents, AgentKey::OPERATOR)?)
    } else {
        known(agents, name)
    }
}

/// Returns the owner of the `what` that a caller reads under this name; `None` for all owners. An
/// agent reads its own only.
pub(crate) fn scope(
    conn: &rusqlite::Connection,
    caller: &Caller,
    name: &str,
    what: &'static str,
) -> Result<Option<AgentKey>, Refusal> {
    let me = row(conn, caller)?;
    match caller {
        Caller::Agent(_) if name.is_empty() || name == me.name => Ok(Some(me.key)),
        Caller::Agent(_) => Err(Refusal::NotYours { what }),
        Caller::Operator(_) if name.is_empty() => Ok(None),
        Caller::Operator(_) => Ok(Some(owner(conn, name)?.key)),
    }
}
