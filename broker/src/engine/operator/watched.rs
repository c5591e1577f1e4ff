//! Watched agents: those that a watch shows, and those that changed.
//!
//! The journal of changes says which agents changed; their rows say how they are now. Invariant: a
//! read costs a few rows for each changed agent, however many agents there are.

use hive_core::agent::Agent;
use hive_core::caller::Caller;

use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::{self as agents, AgentRow};
use crate::store::{AgentKey, StoreError};

/// Agents with their keys.
pub type Keyed = Vec<(AgentKey, Agent)>;

/// The changes of one read.
#[derive(Clone, Debug, Default)]
pub struct ChangedAgents {
    /// Agents of the watch, in their present state.
    pub shown: Keyed,
    /// Agents that were purged, or are not of the watch, with their names.
    pub others: Vec<(AgentKey, String)>,
}

/// Returns whether a row is of a watch: of all agents, or of one and its children.
fn is_of(scope: Option<AgentKey>, row: &AgentRow) -> bool {
    scope.is_none_or(|scope| row.key == scope || row.parent.unwrap_or(AgentKey::OPERATOR) == scope)
}

impl Engine {
    /// Returns the agent that a caller may watch with its children; `None` for all agents.
    pub async fn agent_scope(
        &self,
        caller: Caller,
        name: String,
    ) -> Result<Option<AgentKey>, Refusal> {
        self.check_lookup(caller.clone()).await?;
        self.store
            .read(move |conn, _| actor::scope(conn, &caller, &name, "that agent's state"))
            .await
    }

    /// Returns the next active agents of a watch, by name, after `after`; of one agent and its
    /// children all at once. Empty at the end.
    pub async fn agents_now(
        &self,
        scope: Option<AgentKey>,
        after: String,
        rows: u32,
    ) -> Result<Keyed, Refusal> {
        let shown = self.shown_rows(move |conn| {
            let Some(scope) = scope else {
                return Ok((agents::page(conn, &after, false, rows)?, ()));
            };
            if !after.is_empty() {
                return Ok((Vec::new(), ()));
            }
            let mut found = agents::children(conn, scope)?;
            if scope != AgentKey::OPERATOR {
                found.push(agents::by_key(conn, scope)?);
            }
            found.sort_by(|one, other| one.name.cmp(&other.name));
            Ok((found, ()))
        });
        Ok(shown.await?.0)
    }

    /// Returns the agents that changed after a place of the journal, at most `rows`, and the place
    /// after which the next read begins. Refuses a place before a failure of the database.
    pub fn changes_after(&self, place: u64, rows: usize) -> Result<(Vec<AgentKey>, u64), Refusal> {
        let changes = self.hints.changes.after(place, rows);
        changes.ok_or_else(|| StoreError::Recovered.into())
    }

    /// Returns these agents as they are now.
    pub async fn agents_changed(
        &self,
        scope: Option<AgentKey>,
        keys: Vec<AgentKey>,
    ) -> Result<ChangedAgents, Refusal> {
        let (shown, others) = self
            .shown_rows(move |conn| {
                let (mut rows, mut others) = (Vec::new(), Vec::new());
                for key in keys.into_iter().filter(|key| *key != AgentKey::OPERATOR) {
                    let row = agents::by_key(conn, key)?;
                    let name = agents::name_of(conn, key)?;
                    // The row of a purged agent has another name.
                    if is_of(scope, &row) && row.name == name {
                        rows.push(row);
                    } else {
                        others.push((key, name));
                    }
                }
                Ok((rows, others))
            })
            .await?;
        Ok(ChangedAgents { shown, others })
    }
}
