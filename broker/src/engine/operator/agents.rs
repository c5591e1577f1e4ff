//! Creating, moving and retiring agents.
//!
//! Invariant: the tree has no circle, and a retired agent's mail is kept.

use crate::engine::error::AgentError;
use std::sync::Arc;

use hive_core::agent::{Agent, Heard, Policy, Source, is_model_name};
use hive_core::caller::Caller;
use hive_core::delivery::{RedeliveryCause, Settlement};
use hive_core::event::{AgentChange, AgentChanged, AgentCreated, Facts};
use hive_core::limits::{MODEL_CHARS_MAX, ROLE_CHARS_MAX};
use hive_core::name::AgentName;
use hive_core::turn::Outcome;

use super::etag::{Etags, Target};
use super::policy;
use crate::engine::mail::settle;
use crate::engine::mail::{question, reminder};
use crate::engine::schedule;
use crate::engine::turn::end::end_open_turns;
use crate::engine::{Engine, Refusal, actor};
use crate::files::Shortage;
use crate::store::PresenceChange;
use crate::store::agent::{self as agents, AgentRow, NewAgent};
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Effect, Tx, delivery};

/// An agent to be created.
#[derive(Clone, Debug)]
pub struct Create {
    /// The name of the new agent.
    pub name: AgentName,
    /// Its parent; `None` for a root.
    pub parent: Option<AgentName>,
    /// The purpose of the agent, as others see it.
    pub role: String,
    /// The model; empty for the default.
    pub model: String,
    /// The rights and limits of the agent.
    pub policy: Policy,
    /// Whether to take over a retired agent's name and mail.
    pub adopt: bool,
}

impl Engine {
    /// Creates an agent at run time.
    pub async fn create_agent(
        &self,
        caller: Caller,
        request: RequestKey,
        create: Create,
    ) -> Result<Agent, Refusal> {
        self.create_agent_unless(caller, request, create, None).await
    }

    /// Does the same, unless there are too few files for its socket. A repeated request gets its
    /// first answer in any case.
    pub async fn create_agent_unless(
        &self,
        caller: Caller,
        request: RequestKey,
        create: Create,
        short: Option<Shortage>,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        check_create(&create)?;
        let name = create.name.clone();
        let work = move |tx: &Tx<'_>| {
            insert(tx, &create, "by the operator")?;
            let agent = create.name.to_string();
            short.map_or(Ok(()), |short| Err(AgentError::NoFiles { agent, short }.into()))
        };
        self.command(caller, request, work).await?;
        self.get_agent(name).await
    }

    /// Retires an agent; returns how many unsettled deliveries are kept.
    pub async fn retire_agent(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
    ) -> Result<u32, Refusal> {
        self.check_open()?;
        let (target, limits) = (target.into(), Arc::clone(&self.limits));
        let log_id = Arc::clone(&self.log_id);
        self.command(caller, request, move |tx| {
            let row = actor::active(tx, target.name.as_str())?;
            Etags::new(&log_id).check_agent(&target, &row)?;
            retire(tx, &limits, &row)?;
            Ok(crate::store::inbox::get(tx, row.key)?.open_count)
        })
        .await
    }

    /// Moves an agent in the tree.
    pub async fn set_parent(
        &self,
        caller: Caller,
        request: RequestKey,
        target: impl Into<Target>,
        parent: Option<AgentName>,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        let target = target.into();
        let (wanted, log_id) = (target.name.clone(), Arc::clone(&self.log_id));
        self.command(caller, request, move |tx| {
            let mut row = (*actor::active(tx, target.name.as_str())?).clone();
            Etags::new(&log_id).check_agent(&target, &row)?;
            row.parent = match parent {
                Some(parent) => Some(actor::active(tx, parent.as_str())?.key),
                None => None,
            };
            check_tree(tx, &row)?;
            agents::update(tx, &row)?;
            log(
                tx,
                Fact::about(AgentChanged { change: AgentChange::Parent }, row.key).detail("parent"),
            );
            Ok(())
        })
        .await?;
        self.get_agent(wanted).await
    }
}

/// Refuses fields with which no agent can run.
pub(crate) fn check_create(create: &Create) -> Result<(), Refusal> {
    check_settings(&create.role, &create.model)?;
    policy::check(&create.policy)
}

/// Refuses a role or a model that no agent can have.
pub(crate) fn check_settings(role: &str, model: &str) -> Result<(), Refusal> {
    let refuse = |field, problem| Err(Refusal::Field { field, problem });
    if role.chars().count() > ROLE_CHARS_MAX {
        return refuse("role", format!("it has more than {ROLE_CHARS_MAX} characters"));
    }
    if !model.is_empty() && !is_model_name(model) {
        return refuse(
            "model",
            format!(
                "it has at most {MODEL_CHARS_MAX} printable characters and does not begin with `-`"
            ),
        );
    }
    Ok(())
}

/// Creates an agent; `by` is for the log.
pub(crate) fn insert(tx: &Tx<'_>, create: &Create, by: &str) -> Result<(), Refusal> {
    let parent = match &create.parent {
        Some(parent) => Some(actor::active(tx, parent.as_str())?.key),
        None => None,
    };
    let key = match agents::by_name(tx, create.name.as_str())? {
        None => agents::insert(
            tx,
            &NewAgent {
                name: create.name.as_str(),
                source: Source::Runtime,
                parent,
                role: &create.role,
                model: &create.model,
                policy: &create.policy,
                declared: None,
            },
        )?,
        Some(row) if row.retired && create.adopt => {
            let key = row.key;
            let adopted = AgentRow {
                source: Some(Source::Runtime),
                parent,
                role: create.role.clone(),
                model: create.model.clone(),
                policy: create.policy.clone(),
                declared: None,
                available_models: Vec::new(),
                stopped: false,
                on_demand: false,
                heard: Heard::Well,
                retired: false,
                ..(*row).clone()
            };
            check_tree(tx, &adopted)?;
            agents::update(tx, &adopted)?;
            key
        }
        Some(row) if row.retired => {
            return Err(Refusal::from(AgentError::Retired { name: row.name.clone() }));
        }
        Some(row) => return Err(Refusal::from(AgentError::Exists { name: row.name.clone() })),
    };
    tx.after_commit(Effect::Changed(key));
    log(tx, Fact::about(AgentCreated { source: Source::Runtime }, key).detail(by));
    Ok(())
}

/// Retires an agent: turns and leases end without blame, and children move up to its parent.
pub(crate) fn retire(
    tx: &Tx<'_>,
    limits: &hive_core::limits::Limits,
    row: &AgentRow,
) -> Result<(), Refusal> {
    end_open_turns(tx, limits, row, Outcome::Fenced, "the agent was retired")?;
    for leased in delivery::leased_of(tx, row.key)? {
        settle::settle(tx, limits, row, leased, Settlement::GiveBack(RedeliveryCause::Drained))?;
    }
    for mut child in agents::children(tx, row.key)? {
        child.parent = row.parent;
        agents::update(tx, &child)?;
    }
    question::retire(tx, limits, row)?;
    reminder::retire(tx, row)?;
    schedule::retire(tx, limits, row)?;
    crate::store::loose_end::clear(tx, row.key)?;
    agents::clear_session(tx, row.key)?;
    tx.after_commit(Effect::Presence(row.key, PresenceChange::Ended { epoch: row.session_epoch }));
    // An agent that gets the name later must run.
    agents::update(
        tx,
        &AgentRow {
            retired: true,
            stopped: false,
            on_demand: false,
            heard: Heard::Well,
            ..row.clone()
        },
    )?;
    log(tx, Fact::about(Facts::AgentRetired, row.key));
    Ok(())
}

/// Refuses a parent that is the agent itself or below it, and an agent below a circle of others.
pub(crate) fn check_tree(tx: &Tx<'_>, row: &AgentRow) -> Result<(), Refusal> {
    let (mut below, mut seen) = (row.clone(), vec![row.key]);
    while let Some(key) = below.parent {
        let above = agents::by_key(tx, key)?;
        if seen.contains(&key) {
            return Err(Refusal::from(AgentError::Cycle {
                name: above.name.clone(),
                parent: parent_of(tx, key, row)?,
            }));
        }
        seen.push(key);
        below = (*above).clone();
    }
    Ok(())
}

/// Returns the name of the parent that `key` has, or would have if it is `wanted`.
fn parent_of(tx: &Tx<'_>, key: AgentKey, wanted: &AgentRow) -> Result<String, Refusal> {
    let parent = if key == wanted.key { wanted.parent } else { agents::by_key(tx, key)?.parent };
    Ok(parent.map(|parent| agents::name_of(tx, parent)).transpose()?.unwrap_or_default())
}
