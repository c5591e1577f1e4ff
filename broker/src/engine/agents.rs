//! Agents: looking them up, and creating, moving and retiring them.
//!
//! Invariant: the tree has no circle, and a retired agent's mail is kept.

use std::sync::Arc;

use hive_core::agent::{Agent, HarnessState, Policy, Source, is_model_name};
use hive_core::caller::Caller;
use hive_core::delivery::{RedeliveryCause, Settlement, State};
use hive_core::event::Kind;
use hive_core::limits::{MODEL_CHARS_MAX, PAGE_BYTES_MAX, ROLE_CHARS_MAX};
use hive_core::name::AgentName;
use hive_core::park;
use hive_core::time::Now;
use hive_core::turn::Outcome;
use rusqlite::Connection;

use super::once::once;
use super::sandboxes::Shown;
use super::settle::{self, end_open_turns};
use super::{Engine, Identity, Refusal, actor, policy, question, reminder};
use crate::store::PresenceChange;
use crate::store::agent::{self as agents, AgentRow, NewAgent};
use crate::store::event::{Fact, log};
use crate::store::request::RequestKey;
use crate::store::{AgentKey, Effect, Tx, delivery, turn};

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

/// The state of an agent that is not in its row.
#[derive(Clone, Debug)]
struct Seen {
    live: bool,
    isolation: Shown,
}

fn view(
    conn: &Connection,
    row: AgentRow,
    seen: Seen,
    identity: &Identity,
    now: Now,
) -> Result<Agent, Refusal> {
    let parent = match row.parent {
        Some(AgentKey::OPERATOR) | None => None,
        Some(parent) => Some(parse(&agents::name_of(conn, parent)?)?),
    };
    let park = row.parked(now).map(|park| park.view(now));
    let open_turn = turn::open_all(conn, row.key)?.first().map(|open| open.id);
    let state = state_of(&row, seen.live, open_turn.is_some(), now);
    let kick_on_start = super::declare::kick_on_start(&row);
    Ok(Agent {
        name: parse(&row.name)?,
        role: row.role,
        parent,
        source: row.source.unwrap_or(Source::Runtime),
        state,
        state_time: row.harness_state_time,
        running: seen.live,
        status_text: row.status_text,
        status_time: row.status_time,
        model: row.model,
        context_tokens: row.context_tokens,
        context_window_tokens: row.context_window_tokens,
        hive_name: identity.hive_name.clone(),
        swarm_name: identity.swarm_name.clone(),
        revision: row.revision,
        policy: row.policy,
        park,
        retired: row.retired,
        ready_count: delivery::count(conn, row.key, State::Ready)?,
        dead_count: delivery::count(conn, row.key, State::Dead)?,
        isolation: seen.isolation.isolation,
        isolation_notes: seen.isolation.notes,
        open_turn,
        context_time: row.context_time,
        kick_on_start,
        available_models: row.available_models,
        stopped: row.stopped,
        model_in_use: turn::model_of_newest(conn, row.key)?,
    })
}

/// Returns the state of an agent's harness, as others see it.
pub(super) fn state_of(row: &AgentRow, live: bool, turn_open: bool, now: Now) -> HarnessState {
    // A turn that runs when its agent is stopped is shown until it ends.
    if row.stopped && !turn_open {
        return HarnessState::Stopped;
    }
    match (row.parked(now), live) {
        (_, false) => HarnessState::Offline,
        (Some(parked), true) => park::state_of(parked.cause),
        (None, true) => row.harness_state,
    }
}

/// Returns the approximate size of an agent on the wire, in bytes: its texts, and room for the
/// rest.
fn bytes_of(agent: &Agent) -> usize {
    let Policy { tool_groups, allowed_recipients, capabilities, .. } = &agent.policy;
    let lists = [
        tool_groups,
        allowed_recipients,
        capabilities,
        &agent.available_models,
        &agent.isolation_notes,
    ];
    let lists: usize = lists.into_iter().flatten().map(|text| text.len() + 2).sum();
    let park = agent.park.as_ref().map_or(0, |park| park.error.len());
    agent.role.len()
        + agent.status_text.len()
        + agent.model.len()
        + agent.model_in_use.len()
        + lists
        + park
        + 400
}

pub(super) fn parse(name: &str) -> Result<AgentName, Refusal> {
    AgentName::parse(name)
        .map_err(|problem| Refusal::Field { field: "name", problem: problem.to_string() })
}

impl Engine {
    /// Reads agents with `query`, with their present state.
    async fn shown_agents<F>(&self, query: F) -> Result<Vec<Agent>, Refusal>
    where
        F: FnOnce(&Connection) -> Result<Vec<AgentRow>, Refusal> + Send + 'static,
    {
        let (presences, sandboxes) = (Arc::clone(&self.presences), Arc::clone(&self.sandboxes));
        let identity = self.identity.clone();
        self.store
            .read(move |conn, now| {
                let rows = query(conn)?.into_iter().map(|row| {
                    let isolation = sandboxes.shown(&row.name, presences.isolation(row.key));
                    let seen = Seen { live: presences.is_live(row.key), isolation };
                    view(conn, row, seen, &identity, now)
                });
                rows.collect()
            })
            .await
    }

    async fn shown_agent<F>(&self, query: F) -> Result<Agent, Refusal>
    where
        F: FnOnce(&Connection) -> Result<AgentRow, Refusal> + Send + 'static,
    {
        let mut found = self.shown_agents(move |conn| query(conn).map(|row| vec![row])).await?;
        found.pop().ok_or(Refusal::NotAnAgent)
    }

    pub(crate) async fn agent_by_key(&self, key: AgentKey) -> Result<Agent, Refusal> {
        self.shown_agent(move |conn| Ok(agents::by_key(conn, key)?)).await
    }

    /// Returns the key of a calling agent.
    pub(crate) async fn key_of(&self, caller: &Caller) -> Result<AgentKey, Refusal> {
        let Some(name) = caller.agent() else { return Ok(AgentKey::OPERATOR) };
        let generation = match self.keys.get(name.as_str()) {
            Ok(key) => return Ok(key),
            Err(generation) => generation,
        };
        let wanted = name.clone();
        let key = self
            .store
            .read(move |conn, _| Ok::<_, Refusal>(actor::known(conn, wanted.as_str())?.key))
            .await?;
        self.keys.keep(generation, name.as_str(), key);
        Ok(key)
    }

    /// Returns the calling agent.
    pub async fn get_self(&self, caller: Caller) -> Result<Agent, Refusal> {
        if caller.agent().is_none() {
            return Err(Refusal::NotAnAgent);
        }
        self.shown_agent(move |conn| actor::row(conn, &caller)).await
    }

    /// Refuses an agent whose policy does not let it look others up. It may always read its own
    /// state.
    pub async fn check_lookup(&self, caller: Caller) -> Result<(), Refusal> {
        let asker = caller.clone();
        let checked = self
            .store
            .read(move |conn, _| actor::check_group(&asker, &actor::row(conn, &asker)?, "meta"))
            .await;
        self.noting(&caller, "look up", checked).await
    }

    /// Returns an agent by name, retired or not.
    pub async fn get_agent(&self, name: AgentName) -> Result<Agent, Refusal> {
        self.shown_agent(move |conn| actor::known(conn, name.as_str())).await
    }

    /// Lists agents by name, after `after`; also returns whether there are more.
    pub async fn list_agents(
        &self,
        after: String,
        include_retired: bool,
        rows: u32,
    ) -> Result<(Vec<Agent>, bool), Refusal> {
        let mut found = self
            .shown_agents(move |conn| Ok(agents::page(conn, &after, include_retired, rows + 1)?))
            .await?;
        let (mut bytes, mut fit) = (0, 0);
        for agent in found.iter().take(rows as usize) {
            bytes += bytes_of(agent);
            if bytes > PAGE_BYTES_MAX && fit > 0 {
                break;
            }
            fit += 1;
        }
        let more = found.len() > fit;
        found.truncate(fit);
        Ok((found, more))
    }

    /// Lists the children of an agent, or of the caller.
    pub async fn list_children(
        &self,
        caller: Caller,
        name: Option<AgentName>,
    ) -> Result<Vec<Agent>, Refusal> {
        self.shown_agents(move |conn| {
            let parent = match name {
                Some(name) => actor::known(conn, name.as_str())?,
                None => actor::row(conn, &caller)?,
            };
            Ok(agents::children(conn, parent.key)?)
        })
        .await
    }

    /// Returns the names of the active agents.
    pub async fn active_names(&self) -> Result<Vec<String>, Refusal> {
        self.store.read(|conn, _| Ok(agents::names(conn)?)).await
    }

    /// Creates an agent at run time.
    pub async fn create_agent(
        &self,
        caller: Caller,
        request: RequestKey,
        create: Create,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        check_create(&create)?;
        let name = create.name.clone();
        self.store
            .write(move |tx| {
                let me = actor::row(tx, &caller)?;
                once(tx, me.key, &request, || insert(tx, &create))
            })
            .await?;
        self.get_agent(name).await
    }

    /// Retires an agent; returns how many unsettled deliveries are kept.
    pub async fn remove_agent(
        &self,
        caller: Caller,
        request: RequestKey,
        name: AgentName,
    ) -> Result<u32, Refusal> {
        self.check_open()?;
        let limits = Arc::clone(&self.limits);
        self.store
            .write(move |tx| {
                let me = actor::row(tx, &caller)?;
                once(tx, me.key, &request, || {
                    let row = actor::active(tx, name.as_str())?;
                    retire(tx, &limits, &row)?;
                    Ok(crate::store::inbox::get(tx, row.key)?.open_count)
                })
            })
            .await
    }

    /// Moves an agent in the tree.
    pub async fn set_parent(
        &self,
        caller: Caller,
        request: RequestKey,
        name: AgentName,
        parent: Option<AgentName>,
    ) -> Result<Agent, Refusal> {
        self.check_open()?;
        let wanted = name.clone();
        self.store
            .write(move |tx| {
                let me = actor::row(tx, &caller)?;
                once(tx, me.key, &request, || {
                    let mut row = actor::active(tx, name.as_str())?;
                    row.parent = match parent {
                        Some(parent) => Some(actor::active(tx, parent.as_str())?.key),
                        None => None,
                    };
                    check_tree(tx, &row)?;
                    agents::update(tx, &row)?;
                    Ok(log(
                        tx,
                        Fact { detail: "parent", ..Fact::about(Kind::AgentChanged, row.key) },
                    )?)
                })
            })
            .await?;
        self.get_agent(wanted).await
    }
}

/// Refuses fields with which no agent can run.
fn check_create(create: &Create) -> Result<(), Refusal> {
    let refuse = |field, problem| Err(Refusal::Field { field, problem });
    if create.role.chars().count() > ROLE_CHARS_MAX {
        return refuse("role", format!("it has more than {ROLE_CHARS_MAX} characters"));
    }
    if !create.model.is_empty() && !is_model_name(&create.model) {
        return refuse(
            "model",
            format!(
                "it has at most {MODEL_CHARS_MAX} printable characters and does not begin with `-`"
            ),
        );
    }
    policy::check(&create.policy)
}

fn insert(tx: &Tx<'_>, create: &Create) -> Result<(), Refusal> {
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
                retired: false,
                ..row
            };
            check_tree(tx, &adopted)?;
            agents::update(tx, &adopted)?;
            key
        }
        Some(row) if row.retired => return Err(Refusal::AgentRetired { name: row.name }),
        Some(row) => return Err(Refusal::AgentExists { name: row.name }),
    };
    tx.after_commit(Effect::Told(key));
    log(tx, Fact { detail: "by the operator", ..Fact::about(Kind::AgentCreated, key) })?;
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
    crate::store::loose_end::clear(tx, row.key)?;
    agents::clear_session(tx, row.key)?;
    tx.after_commit(Effect::Presence(row.key, PresenceChange::Ended { epoch: row.session_epoch }));
    // An agent that gets the name later must run.
    agents::update(tx, &AgentRow { retired: true, stopped: false, ..row.clone() })?;
    log(tx, Fact::about(Kind::AgentRetired, row.key))?;
    Ok(())
}

/// Refuses a parent that is the agent itself or below it, and an agent below a circle of others.
pub(crate) fn check_tree(tx: &Tx<'_>, row: &AgentRow) -> Result<(), Refusal> {
    let (mut below, mut seen) = (row.clone(), vec![row.key]);
    while let Some(key) = below.parent {
        let above = agents::by_key(tx, key)?;
        if seen.contains(&key) {
            return Err(Refusal::TopologyCycle {
                name: above.name,
                parent: parent_of(tx, key, row)?,
            });
        }
        seen.push(key);
        below = above;
    }
    Ok(())
}

/// Returns the name of the parent that `key` has, or would have if it is `wanted`.
fn parent_of(tx: &Tx<'_>, key: AgentKey, wanted: &AgentRow) -> Result<String, Refusal> {
    let parent = if key == wanted.key { wanted.parent } else { agents::by_key(tx, key)?.parent };
    Ok(parent.map(|parent| agents::name_of(tx, parent)).transpose()?.unwrap_or_default())
}
