//! The tree as one agent sees it: the agents that it can find, and the kin in its prompt.
//!
//! Invariant: the rule for whether an agent may write to another is the rule of a send.

use std::sync::Arc;

use hive_core::caller::Caller;
use hive_core::tree::{Child, FIND_TEXT_CHARS_MAX, Found, KIN_CHILDREN_MAX, Kin, shown_role};
use rusqlite::Connection;

use super::view::{parse, state_of};
use crate::engine::mail::admission::may_write;
use crate::engine::{Engine, Refusal, actor};
use crate::store::agent::AgentRow;
use crate::store::{AgentKey, agent, tree, turn};

/// The place of an agent in the answer to a search.
pub type FoundCursor = tree::Around;

impl Engine {
    /// Finds active agents by a part of their name, role or status; the caller's children first,
    /// then its parent. Also returns the place of the last one, if there are more.
    pub async fn find_agents(
        &self,
        caller: Caller,
        text: String,
        after: Option<FoundCursor>,
        rows: u32,
    ) -> Result<(Vec<Found>, Option<FoundCursor>), Refusal> {
        let text = text.trim().to_owned();
        if text.chars().count() > FIND_TEXT_CHARS_MAX {
            return Err(Refusal::Field {
                field: "text",
                problem: format!("it has more than {FIND_TEXT_CHARS_MAX} characters"),
            });
        }
        let (presences, asker) = (Arc::clone(&self.presences), caller.clone());
        let found = self
            .store
            .read(move |conn, now| {
                let me = actor::row(conn, &asker)?;
                actor::check_group(&asker, &me, "meta")?;
                let mut found = tree::around(conn, &me, &text, after.as_ref(), rows + 1)?;
                let more = found.len() > rows as usize;
                found.truncate(rows as usize);
                let next = found
                    .last()
                    .filter(|_| more)
                    .map(|(group, row)| FoundCursor { group: *group, name: row.name.clone() });
                let show = |row: AgentRow| {
                    let parent = match row.parent {
                        Some(AgentKey::OPERATOR) | None => None,
                        Some(parent) => Some(parse(&agent::name_of(conn, parent)?)?),
                    };
                    Ok(Found {
                        name: parse(&row.name)?,
                        parent,
                        role: shown_role(&row.role),
                        state: state_of(
                            &row,
                            presences.is_live(row.key),
                            !turn::open_all(conn, row.key)?.is_empty(),
                            now,
                        ),
                        may_write: asker.agent().is_none() || may_write(&me, &row),
                        status_text: row.status_text,
                    })
                };
                let found = found.into_iter().map(|(_, row)| show(row));
                Ok((found.collect::<Result<Vec<Found>, Refusal>>()?, next))
            })
            .await;
        self.noting(&caller, "look up", found).await
    }

    /// Returns the kin of an agent.
    pub(crate) async fn kin(&self, key: AgentKey) -> Result<Kin, Refusal> {
        self.store.read(move |conn, _| kin(conn, &agent::by_key(conn, key)?)).await
    }
}

fn kin(conn: &Connection, row: &AgentRow) -> Result<Kin, Refusal> {
    let children = tree::children(conn, row.key, KIN_CHILDREN_MAX)?;
    let children_count = tree::children_count(conn, row.key)?;
    let child =
        |(name, role): (String, String)| Ok(Child { name: parse(&name)?, role: shown_role(&role) });
    let children = children.into_iter().map(child).collect::<Result<Vec<Child>, Refusal>>()?;
    Ok(Kin { parent_role: shown_role(&tree::parent_role(conn, row)?), children, children_count })
}
