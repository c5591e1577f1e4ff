//! Agents as callers see them: their rows, with the state of their harnesses.

use std::sync::Arc;

use hive_core::agent::{Agent, HarnessState, Policy, Source};
use hive_core::caller::Caller;
use hive_core::delivery::State;
use hive_core::limits::PAGE_BYTES_MAX;
use hive_core::name::AgentName;
use hive_core::park;
use hive_core::time::Now;
use rusqlite::Connection;

use super::etag::Etags;
use crate::engine::declared::kick_on_start;
use crate::engine::sandboxes::Shown;
use crate::engine::{Engine, Identity, Refusal, actor};
use crate::store::agent::{self as agents, AgentRow};
use crate::store::{AgentKey, delivery, tree, turn};

/// The state of an agent that is not in its row.
#[derive(Clone, Debug)]
struct Attached {
    live: bool,
    isolation: Shown,
}

fn view(
    conn: &Connection,
    row: AgentRow,
    attached: Attached,
    identity: &Identity,
    etags: Etags<'_>,
    now: Now,
) -> Result<Agent, Refusal> {
    let parent = match row.parent {
        Some(AgentKey::OPERATOR) | None => None,
        Some(parent) => Some(parse(&agents::name_of(conn, parent)?)?),
    };
    let park = row.parked(now).map(|park| park.view(now));
    let open_turns: Vec<_> = turn::open_all(conn, row.key)?.iter().map(|open| open.id).collect();
    let state = state_of(&row, attached.live, !open_turns.is_empty(), now);
    let kick_on_start = kick_on_start(&row);
    let (etag, policy_etag) = (etags.of_agent(&row), etags.of_policy(&row));
    Ok(Agent {
        name: parse(&row.name)?,
        role: row.role,
        parent,
        source: row.source.unwrap_or(Source::Runtime),
        state,
        state_time: row.harness_state_time,
        running: attached.live,
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
        isolation: attached.isolation.isolation,
        isolation_notes: attached.isolation.notes,
        open_turns,
        context_time: row.context_time,
        kick_on_start,
        available_models: row.available_models,
        stopped: row.stopped,
        on_demand: row.on_demand,
        restart_count: row.restart_count,
        model_in_use: turn::model_of_newest(conn, row.key)?,
        etag,
        policy_etag,
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
pub(crate) fn bytes_of(agent: &Agent) -> usize {
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
        + 500
}

/// Returns the agents that fit one page, and whether there are more.
fn first_fitting(mut found: Vec<Agent>, rows: u32) -> (Vec<Agent>, bool) {
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
    (found, more)
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
        let shown = self.shown_rows(move |conn| Ok((query(conn)?, ()))).await?.0;
        Ok(shown.into_iter().map(|(_, agent)| agent).collect())
    }

    /// Reads agents with `query`, with their keys and their present state, and what else it
    /// returns.
    pub(super) async fn shown_rows<F, T>(
        &self,
        query: F,
    ) -> Result<(Vec<(AgentKey, Agent)>, T), Refusal>
    where
        F: FnOnce(&Connection) -> Result<(Vec<AgentRow>, T), Refusal> + Send + 'static,
        T: Send + 'static,
    {
        let (presences, sandboxes) = (Arc::clone(&self.presences), Arc::clone(&self.sandboxes));
        let (identity, log_id) = (self.identity.clone(), Arc::clone(&self.log_id));
        self.store
            .read(move |conn, now| {
                let (rows, rest) = query(conn)?;
                let etags = Etags::new(&log_id);
                let shown = rows.into_iter().map(|row| {
                    let isolation = sandboxes.shown(&row.name, presences.isolation(row.key));
                    let attached = Attached { live: presences.is_live(row.key), isolation };
                    Ok((row.key, view(conn, row, attached, &identity, etags, now)?))
                });
                Ok((shown.collect::<Result<_, Refusal>>()?, rest))
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

    /// Refuses an agent whose policy does not allow lookups of others. An agent may always read its
    /// own state.
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
        let found = self
            .shown_agents(move |conn| Ok(agents::page(conn, &after, include_retired, rows + 1)?))
            .await?;
        Ok(first_fitting(found, rows))
    }

    /// Lists the children of an agent, or of the caller, by name, after `after`; also returns
    /// whether there are more.
    pub async fn list_children(
        &self,
        caller: Caller,
        name: Option<AgentName>,
        after: String,
        rows: u32,
    ) -> Result<(Vec<Agent>, bool), Refusal> {
        let found = self
            .shown_agents(move |conn| {
                let parent = match name {
                    Some(name) => actor::known(conn, name.as_str())?,
                    None => actor::row(conn, &caller)?,
                };
                Ok(tree::children_page(conn, parent.key, &after, rows + 1)?)
            })
            .await?;
        Ok(first_fitting(found, rows))
    }

    /// Returns whether there is an active agent of this name.
    pub async fn is_active(&self, name: AgentName) -> Result<bool, Refusal> {
        let row =
            self.store.read(move |conn, _| Ok::<_, Refusal>(agents::by_name(conn, name.as_str())?));
        Ok(row.await?.is_some_and(|row| !row.retired))
    }

    /// Returns the names of the active agents. The writer reads them, because a start has no other
    /// connection yet.
    pub async fn active_names(&self) -> Result<Vec<String>, Refusal> {
        self.store.write(|tx| Ok(agents::names(tx)?)).await
    }
}
